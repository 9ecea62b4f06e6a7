import numpy as np

def cost(w, b, X, y):
    m = X.shape[0]
    z = X @ w + b
    a = 1.0 / (1.0 + np.exp(-z))
    return -1/m * np.sum(y * np.log(a) + (1 - y) * np.log(1 - a))
