import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.t as t
from autograd import value_and_grad

rs = npr.RandomState(0)
observed, latent, n = 5, 2, 8
true_weights = np.zeros((observed, latent))
for i in range(latent):
    true_weights[:, i] = np.sin(np.linspace(0, 4 + i * 3.2, observed))
data = np.dot(true_weights, rs.randn(latent, n)).T + rs.randn(n, observed)


def objective(params):
    weights = np.reshape(params[: observed * latent], (observed, latent))
    latents = np.reshape(params[observed * latent : -1], (latent, n))
    return -np.sum(t.logpdf(np.dot(weights, latents).T, 2.4, data, np.exp(params[-1]))) / n


show(value_and_grad(objective)(rs.randn(observed * latent + latent * n + 1)))
