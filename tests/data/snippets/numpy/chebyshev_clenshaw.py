def clenshaw(c, x):
    b1, b2 = 0.0, 0.0
    for ck in c[:0:-1]:
        b1, b2 = ck + 2 * x * b1 - b2, b1
    return c[0] + x * b1 - b2
