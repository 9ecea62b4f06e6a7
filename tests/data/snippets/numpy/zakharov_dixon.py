import numpy as np

def zakharov(x):
    i = np.arange(1, len(x) + 1)
    s = np.sum(0.5 * i * x)
    return np.sum(x**2) + s**2 + s**4

def dixon_price(x):
    i = np.arange(2, len(x) + 1)
    return (x[0] - 1)**2 + np.sum(i * (2 * x[1:]**2 - x[:-1])**2)

zakharov(x) + dixon_price(x)
