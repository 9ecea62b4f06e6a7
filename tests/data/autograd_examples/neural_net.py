import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.flatten import flatten
from autograd.misc.optimizers import adam
from autograd.scipy.special import logsumexp


def init_random_params(scale, layer_sizes, rs=npr.RandomState(0)):
    return [(scale * rs.randn(m, n), scale * rs.randn(n)) for m, n in zip(layer_sizes[:-1], layer_sizes[1:])]


def predict(params, inputs):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def log_posterior(params, inputs, targets, L2_reg):
    return -L2_reg * np.dot(*2 * [flatten(params)[0]]) + np.sum(predict(params, inputs) * targets)


def accuracy(params, inputs, targets):
    return np.mean(np.argmax(predict(params, inputs), axis=1) == np.argmax(targets, axis=1))


rs = npr.RandomState(1)
images, labels = rs.rand(60, 16), np.eye(4)[rs.randint(4, size=60)]
seen = []


def objective(params, i):
    batch = slice(i % 3 * 20, (i % 3 + 1) * 20)
    return -log_posterior(params, images[batch], labels[batch], 0.1)


def callback(params, i, gradient):
    if i % 5 == 0:
        seen.append((accuracy(params, images, labels), objective(params, i)))


params = adam(grad(objective), init_random_params(0.1, [16, 12, 4]), step_size=0.01, num_iters=20, callback=callback)
show(seen, params)
