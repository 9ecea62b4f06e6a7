import numpy as np

def householder_logdet(A):
    R = A.copy()
    n = R.shape[0]
    for k in range(n - 1):
        x = R[k:, k]
        e = np.zeros_like(x)
        e[0] = np.sign(x[0]) * np.linalg.norm(x)
        v = x + e
        v = v / np.linalg.norm(v)
        R[k:, k:] = R[k:, k:] - 2.0 * np.outer(v, v @ R[k:, k:])
    return np.log(np.abs(np.diag(R))).sum()
