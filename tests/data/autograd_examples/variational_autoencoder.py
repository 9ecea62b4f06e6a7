import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.norm as norm
from autograd import grad
from autograd.misc.optimizers import adam

rs = npr.RandomState(0)
images = (rs.rand(8, 6) > 0.5).astype(float)


def init(sizes):
    return [(0.1 * rs.randn(m, n), 0.1 * rs.randn(n)) for m, n in zip(sizes[:-1], sizes[1:])]


def predict(params, x):
    for W, b in params:
        outputs = np.dot(x, W) + b
        x = np.maximum(0, outputs)
    return outputs


def lower_bound(gen_params, rec_params):
    q = predict(rec_params, images)
    means, log_stds = q[:, :2], q[:, 2:]
    latents = rs.randn(*means.shape) * np.exp(log_stds) + means
    log_q = np.sum(norm.logpdf(latents, means, np.exp(log_stds)), axis=-1)
    signed = images * 2 - 1.0
    likelihood = np.sum(-np.logaddexp(0.0, -predict(gen_params, latents) * signed), axis=-1)
    prior = np.sum(norm.logpdf(latents, 0.0, 1.0), axis=-1)
    return np.mean(prior + likelihood - log_q)


params = adam(
    grad(lambda params, i: -lower_bound(*params) / 6), (init([2, 5, 6]), init([6, 5, 4])), step_size=0.01, num_iters=10
)
show(params)
