import autograd.numpy as np
from autograd import grad
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads


@primitive
def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def vjp(ans, x):
    shape = x.shape
    return lambda g: np.full(shape, g) * np.exp(x - np.full(shape, ans))


defvjp(logsumexp, vjp)


def example(y):
    return logsumexp(y**2) + np.sum(logsumexp(y) * y)


point = np.array([1.5, -0.7, 1e-10])
show(example(point), grad(example)(point))
check_grads(example, modes=["rev"])(point)
