import numpy as np

def relu(x):
    return np.maximum(0, x)

def loss(x, W0, W1, labels):
    h = relu(x @ W0)
    scores = h @ W1
    scores = scores - np.max(scores, axis=1, keepdims=True)
    exp_scores = np.exp(scores)
    probs = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
    N = x.shape[0]
    correct_logprobs = -np.log(probs[range(N), labels])
    data_loss = np.sum(correct_logprobs) / N
    reg_loss = 0.5 * 1e-3 * np.sum(W0 * W0) + 0.5 * 1e-3 * np.sum(W1 * W1)
    return data_loss + reg_loss
