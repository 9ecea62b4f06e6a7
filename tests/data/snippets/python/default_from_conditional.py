def huber(residuals, delta=None):
    if delta is None:
        delta = 1.345
    loss = 0
    for r in residuals:
        a = abs(r)
        loss += 0.5*a**2 if a <= delta else delta*(a - 0.5*delta)
    return loss / len(residuals)

huber(r) + huber(r, delta=d)
