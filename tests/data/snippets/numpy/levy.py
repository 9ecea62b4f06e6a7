import numpy as np

def levy(x):
    w = 1 + (x - 1) / 4
    term1 = np.sin(np.pi * w[0])**2
    term3 = (w[-1] - 1)**2 * (1 + np.sin(2 * np.pi * w[-1])**2)
    wi = w[:-1]
    total = np.sum((wi - 1)**2 * (1 + 10 * np.sin(np.pi * wi + 1)**2))
    return term1 + total + term3
