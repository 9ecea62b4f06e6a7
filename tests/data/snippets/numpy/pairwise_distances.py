import numpy as np

def dist(A, B):
    return np.sqrt(((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

dist(A, B).min(axis=1).sum()
