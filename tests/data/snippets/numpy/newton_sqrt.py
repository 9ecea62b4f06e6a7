import numpy as np

def newton_sqrt(a, tol=1e-12):
    x = a
    while np.abs(x * x - a) > tol:
        x = 0.5 * (x + a / x)
    return x
