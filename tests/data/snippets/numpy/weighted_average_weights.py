import numpy as np

def decay_mean(values, t, halflife, weights=None):
    if weights is None:
        weights = 0.5 ** ((t.max() - t) / halflife)
    return np.average(values, weights=weights)
