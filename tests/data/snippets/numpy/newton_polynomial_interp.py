import numpy as np

def divided_differences(x, y):
    n = len(y)
    c = np.array(y, dtype=float)
    for j in range(1, n):
        c[j:] = (c[j:] - c[j-1:-1]) / (x[j:] - x[:-j])
    return c

def newton_eval(x, y, t):
    c = divided_differences(x, y)
    p = c[-1]
    for k in range(len(x) - 2, -1, -1):
        p = p * (t - x[k]) + c[k]
    return p
