import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import value_and_grad

rs = npr.RandomState(0)
X = np.linspace(-2, 2, num=10).reshape((10, 1))
y = np.sign(X[:, 0]) + rs.randn(10) * 0.1


def log_marginal_likelihood(params, x, y):
    lengths = np.exp(params[3:])
    diffs = np.expand_dims(x / lengths, 1) - np.expand_dims(x / lengths, 0)
    cov = np.exp(params[2]) * np.exp(-0.5 * np.sum(diffs**2, axis=2)) + np.exp(params[1]) * np.eye(len(y))
    return mvn.logpdf(y, params[0] * np.ones(len(y)), cov)


def deep(params):
    hiddens = params[8:]
    first = log_marginal_likelihood(params[:4], X, hiddens)
    return first + log_marginal_likelihood(params[4:8], np.atleast_2d(hiddens).T, y)


show(value_and_grad(deep)(0.5 * rs.randn(18)))
