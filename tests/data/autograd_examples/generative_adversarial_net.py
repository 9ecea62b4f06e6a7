import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc import flatten

rs = npr.RandomState(0)


def init(sizes):
    return [(0.5 * rs.randn(m, n), 0.5 * rs.randn(n)) for m, n in zip(sizes[:-1], sizes[1:])]


def batch_normalize(a):
    return (a - np.mean(a, axis=0, keepdims=True)) / (np.std(a, axis=0, keepdims=True) + 1)


def predict(params, x):
    for W, b in params[:-1]:
        x = np.maximum(0, batch_normalize(np.dot(x, W) + b))
    W, b = params[-1]
    return np.dot(x, W) + b


def logsigmoid(x):
    return x - np.logaddexp(0, x)


real, noise = rs.rand(6, 4), rs.rand(6, 2)


def objective(generator, discriminator, i):
    fake = 0.5 * (np.tanh(predict(generator, noise)) + 1.0)
    return np.mean(logsigmoid(predict(discriminator, real))) - np.mean(logsigmoid(predict(discriminator, fake)))


both = grad(objective, argnum=(0, 1))
x, unflatten_x = flatten(init([2, 5, 5, 4]))
y, unflatten_y = flatten(init([4, 5, 1]))
for i in range(5):
    gx, gy = (flatten(g)[0] for g in both(unflatten_x(x), unflatten_y(y), i))
    x, y = x + 0.1 * gx, y - 0.1 * gy
show(x, y, objective(unflatten_x(x), unflatten_y(y), 0))
