from scipy.optimize import minimize

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import value_and_grad
from autograd.numpy.linalg import solve

rs = npr.RandomState(0)
X = np.linspace(0, 8, 12).reshape((12, 1))
y = (np.cos(X[:, 0]) + rs.randn(12) * 0.1) / 2.0


def covariance(params, x, xp):
    lengths = np.exp(params[1:])
    diffs = np.expand_dims(x / lengths, 1) - np.expand_dims(xp / lengths, 0)
    return np.exp(params[0]) * np.exp(-0.5 * np.sum(diffs**2, axis=2))


def unpack(params):
    return params[0], params[2:], np.exp(params[1]) + 0.0001


def log_marginal_likelihood(params):
    mean, cov_params, noise = unpack(params)
    cov = covariance(cov_params, X, X) + noise * np.eye(len(y))
    return mvn.logpdf(y, mean * np.ones(len(y)), cov)


def predict(params, xstar):
    mean, cov_params, noise = unpack(params)
    cov_y_f, cov_ff = covariance(cov_params, X, xstar), covariance(cov_params, xstar, xstar)
    cov_yy = covariance(cov_params, X, X) + noise * np.eye(len(y))
    return mean + np.dot(solve(cov_yy, cov_y_f).T, y - mean), cov_ff - np.dot(solve(cov_yy, cov_y_f).T, cov_y_f)


init = 0.1 * rs.randn(4)
objective = value_and_grad(lambda params: -log_marginal_likelihood(params))
found = minimize(objective, init, jac=True, method="CG", options={"maxiter": 5})
show(objective(init), found.fun, predict(init, np.linspace(-1, 9, 5).reshape((5, 1))))
