import numpy as np

def interpolate(xs, ys, x):
    i = np.searchsorted(xs, x) - 1
    t = (x - xs[i]) / (xs[i + 1] - xs[i])
    return (1 - t) * ys[i] + t * ys[i + 1]
