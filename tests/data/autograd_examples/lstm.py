import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import rmsprop
from autograd.scipy.special import logsumexp

rs = npr.RandomState(0)
K, size, T, N = 5, 3, 6, 4
inputs = np.eye(K)[rs.randint(K, size=(T, N))]


def sigmoid(x):
    return 0.5 * (np.tanh(x) + 1.0)


def concat_and_multiply(weights, *args):
    return np.dot(np.hstack(args + (np.ones((args[0].shape[0], 1)),)), weights)


gates = ("change", "forget", "ingate", "outgate")
init_params = {name: rs.randn(K + size + 1, size) * 0.3 for name in gates}
init_params["predict"] = rs.randn(size + 1, K)
init_params["init cells"], init_params["init hiddens"] = rs.randn(1, size), rs.randn(1, size)


def lstm_loss(params, i=0):
    hiddens = np.repeat(params["init hiddens"], N, axis=0)
    cells = np.repeat(params["init cells"], N, axis=0)
    loglik = 0.0
    for x in inputs:
        output = concat_and_multiply(params["predict"], hiddens)
        loglik += np.sum((output - logsumexp(output, axis=1, keepdims=True)) * x)
        change = np.tanh(concat_and_multiply(params["change"], x, hiddens))
        forget, ingate, outgate = (sigmoid(concat_and_multiply(params[name], x, hiddens)) for name in gates[1:])
        cells = cells * forget + ingate * change
        hiddens = outgate * np.tanh(cells)
    return -loglik / (T * N)


params = rmsprop(grad(lstm_loss), init_params, num_iters=10, step_size=0.05)
show(lstm_loss(init_params), lstm_loss(params), params)
