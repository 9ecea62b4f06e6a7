import numpy as np

def mmd2(X, Y, gamma=0.5):
    def k(A, B):
        d = A[:, np.newaxis, :] - B[np.newaxis, :, :]
        return np.exp(-gamma * np.sum(d**2, axis=-1))
    m, n = len(X), len(Y)
    Kxx, Kyy, Kxy = k(X, X), k(Y, Y), k(X, Y)
    return (Kxx.sum() - np.trace(Kxx)) / (m*(m-1)) + (Kyy.sum() - np.trace(Kyy)) / (n*(n-1)) - 2*Kxy.mean()
