import numpy as np

def tree_price(r0, u, d, p, K):
    """Zero coupon bond option on a recombining short-rate lattice."""
    n = 4
    V = np.ones(n + 1)
    for i in range(n - 1, -1, -1):
        j = np.arange(i + 1)
        r = r0 * u**j * d**(i - j)
        V = (p * V[1:i+2] + (1 - p) * V[:i+1]) / (1 + r)
        if i == 2:
            V = np.maximum(V - K, 0.0)
    return V[0]
