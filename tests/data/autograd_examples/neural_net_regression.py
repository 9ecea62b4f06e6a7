import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.norm as norm
from autograd import grad
from autograd.misc import flatten
from autograd.misc.optimizers import adam

rs = npr.RandomState(0)
inputs = np.concatenate([np.linspace(0, 2, num=20), np.linspace(6, 8, num=20)])
targets = (np.cos(inputs) + rs.randn(40) * 0.1).reshape((40, 1))
inputs = ((inputs - 4.0) / 4.0).reshape((40, 1))
sizes = [1, 4, 4, 1]
init_params = [(0.1 * rs.randn(m, n), 0.1 * rs.randn(n)) for m, n in zip(sizes[:-1], sizes[1:])]


def predict(params, x):
    for W, b in params:
        outputs = np.dot(x, W) + b
        x = np.tanh(outputs)
    return outputs


def logprob(weights, noise_scale=0.1):
    prior = np.sum(norm.logpdf(flatten(weights)[0], 0.0, 1.0))
    return prior + np.sum(norm.logpdf(predict(weights, inputs), targets, noise_scale))


params = adam(grad(lambda weights, t: -logprob(weights)), init_params, step_size=0.01, num_iters=30)
show(logprob(params), params)
