import numpy as np

def inertia(X, centers):
    d2 = np.sum((X[:, np.newaxis] - centers)**2, axis=-1)
    labels = np.argmin(d2, axis=1)
    return np.sum((X - centers[labels])**2)
