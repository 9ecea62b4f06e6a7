import autograd.numpy as np
from autograd import grad
from autograd.misc.fixed_points import fixed_point


def descent(a):
    return lambda x: x - 0.05 * (x**2 - a)


def sqrt(a, guess=10.0):
    return fixed_point(descent, a, guess, lambda x, y: np.abs(x - y), 1e-4)


show(sqrt(2.0), grad(sqrt)(2.0), grad(grad(sqrt))(2.0))
