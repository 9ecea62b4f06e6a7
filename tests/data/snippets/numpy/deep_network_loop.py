import numpy as np

def mlp(x, weights, biases):
    a = x
    for W, b in zip(weights, biases):
        a = np.tanh(W @ a + b)
    return a
