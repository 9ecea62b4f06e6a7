import numpy as np

def rnn(inputs, Wxh, Whh, bh, Why):
    h = np.zeros(Whh.shape[0])
    outputs = []
    for t, x in enumerate(inputs):
        h = np.tanh(np.dot(Wxh, x) + np.dot(Whh, h) + bh)
        outputs.append(np.dot(Why, h))
    return np.sum(np.array(outputs) ** 2)
