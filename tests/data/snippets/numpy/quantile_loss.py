import numpy as np

def quantile_loss(q, y, f):
    e = y - f
    return np.mean(np.maximum(q * e, (q - 1) * e))
