import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.norm as norm
from autograd import grad
from autograd.misc.optimizers import adam
from autograd.scipy.special import logsumexp

k, D, num_samples = 3, 2, 20
rs = npr.RandomState(0)


def component_density(params, x):
    return np.sum(norm.logpdf(x, params[:D], np.exp(params[D:])), axis=-1)


def unpack(params):
    return params[:k] - logsumexp(params[:k]), np.reshape(params[k:], (k, -1))


def mixture_density(params, x):
    log_weights, components = unpack(params)
    each = np.vstack([component_density(c, x) for c in components]).T
    return logsumexp(each + log_weights, axis=1, keepdims=False)


def log_density(x):
    mu, log_sigma = x[:, 0], x[:, 1]
    one = norm.logpdf(log_sigma, 0, 1.35) + norm.logpdf(mu, -0.5, np.exp(log_sigma))
    return np.logaddexp(one, norm.logpdf(log_sigma, 0.1, 1.35) + norm.logpdf(mu, 0.5, np.exp(log_sigma)))


def elbo(params, t):
    def lower_bound(component):
        samples = rs.randn(num_samples, D) * np.exp(component[D:]) + component[:D]
        return np.mean(log_density(samples) - mixture_density(params, samples))

    log_weights, components = unpack(params)
    return np.sum(np.stack([lower_bound(c) for c in components]) * np.exp(log_weights))


start = np.concatenate([np.ones(k)] + [rs.randn(2 * D) * 0.1 - 1 for _ in range(k)])
params = adam(grad(lambda p, t: -elbo(p, t)), start, step_size=0.1, num_iters=10)
show(params, np.array([params[i] for i in np.argsort(params)]))
