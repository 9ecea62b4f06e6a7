import numpy as np

def maxout(x, W, b):
    z = np.einsum('i,kij->kj', x, W) + b   # (k, out)
    return z.max(axis=0)

def prelu(z, a):
    return np.maximum(0, z) + a * np.minimum(0, z)

def net(x, W, b, a):
    return prelu(maxout(x, W, b), a).sum()
