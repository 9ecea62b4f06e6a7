import numpy as np

sigmoid = lambda z: 1 / (1 + np.exp(-z))

def lstm_cell(x, h, c, W, b):
    H = len(h)
    z = W @ np.concatenate([x, h]) + b
    i = sigmoid(z[:H])
    f = sigmoid(z[H:2*H])
    o = sigmoid(z[2*H:3*H])
    g = np.tanh(z[3*H:])
    c_next = f * c + i * g
    h_next = o * np.tanh(c_next)
    return h_next
