import numpy as np

def hotelling(X, mu):
    n, p = X.shape
    d = X.mean(axis=0) - mu
    Xc = X - X.mean(axis=0, keepdims=True)
    S = Xc.T @ Xc / (n - 1)
    return n * d @ np.linalg.solve(S, d)
