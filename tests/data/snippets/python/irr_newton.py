def irr(cashflows, guess=0.1):
    rate = guess
    for _ in range(50):
        f = 0.0
        df = 0.0
        for t, cf in enumerate(cashflows):
            f += cf / (1 + rate) ** t
            df -= t * cf / (1 + rate) ** (t + 1)
        step = f / df
        rate -= step
        if abs(step) < 1e-12:
            break
    return rate
