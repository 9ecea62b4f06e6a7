import numpy as np

xs = np.array([0.0, 1.0, 2.5, 4.0])

def hermite(ys, q):
    d = np.diff(ys) / np.diff(xs)
    m = np.concatenate(([d[0]], 0.5 * (d[:-1] + d[1:]), [d[-1]]))
    k = np.searchsorted(xs, q) - 1
    h = xs[k + 1] - xs[k]
    t = (q - xs[k]) / h
    h00 = 2 * t**3 - 3 * t**2 + 1
    h10 = t**3 - 2 * t**2 + t
    h01 = -2 * t**3 + 3 * t**2
    h11 = t**3 - t**2
    return h00 * ys[k] + h10 * h * m[k] + h01 * ys[k + 1] + h11 * h * m[k + 1]
