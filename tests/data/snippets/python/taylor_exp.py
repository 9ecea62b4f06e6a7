def my_exp(x, terms=20):
    total = 1.0
    term = 1.0
    for k in range(1, terms):
        term *= x / k
        total += term
    return total
