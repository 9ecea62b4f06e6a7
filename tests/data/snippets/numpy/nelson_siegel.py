import numpy as np
tau = np.array([0.5, 1.0, 2.0, 5.0, 10.0])

def nelson_siegel(b0, b1, b2, lam, yields):
    x = tau / lam
    load = (1 - np.exp(-x)) / x
    fit = b0 + b1 * load + b2 * (load - np.exp(-x))
    return ((fit - yields) ** 2).mean()
