import scipy.optimize

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.scipy.special import gammaln


def loglike(r, p, x):
    return gammaln(r + x) - gammaln(r) - gammaln(x + 1) + x * np.log(p) + r * np.log(1 - p)


npr.seed(0)
data = npr.poisson(npr.gamma(5, 1.0, size=200))


def best_p(r):
    return np.sum(data) / np.sum(r + data)


def slope(r):
    return grad(lambda r, p: np.sum(loglike(r, p, data)))(r, best_p(r))


r = scipy.optimize.newton(slope, 1.0, fprime=grad(slope), fprime2=grad(grad(slope)))
show(r, best_p(r), grad(lambda rp: np.sum(loglike(rp[0], rp[1], data)))((2.0, 0.3)))
