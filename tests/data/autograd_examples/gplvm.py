import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import value_and_grad
from autograd.scipy.stats import norm

rs = npr.RandomState(1)
data = rs.randn(8, 2)


def likelihood(params, latents, y):
    diffs = np.expand_dims(latents, 1) - np.expand_dims(latents, 0)
    cov = np.exp(params[0] - 0.5 * np.sum(diffs**2, axis=2) / np.exp(params[1])) + np.exp(params[2]) * np.eye(len(y))
    return mvn.logpdf(y, np.zeros(len(y)), cov)


def objective(params):
    gp_params, latents = np.reshape(params[:6], (2, 3)), np.reshape(params[6:], (8, 2))
    gps = sum([likelihood(gp_params[i], latents, data[:, i]) for i in range(2)])
    return -gps - np.sum(norm.logpdf(latents))


show(value_and_grad(objective)(rs.randn(22) * 0.3))
