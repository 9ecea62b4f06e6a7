import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import adam

rs = npr.RandomState(0)
shapes = [(1, 5), (5, 1)]
num_weights = sum((m + 1) * n for m, n in shapes)
X = np.linspace(-1, 1, 9).reshape((9, 1))
y = np.cos(X * 3)


def predictions(weights, inputs):
    inputs = np.expand_dims(inputs, 0)
    num_weight_sets = len(weights)
    for m, n in shapes:
        W, b = (
            weights[:, : m * n].reshape((num_weight_sets, m, n)),
            weights[:, m * n : m * n + n].reshape((num_weight_sets, 1, n)),
        )
        weights = weights[:, (m + 1) * n :]
        outputs = np.einsum("mnd,mdo->mno", inputs * np.ones((num_weight_sets, 1, 1)), W) + b
        inputs = np.sqrt(2) * np.exp(-(outputs**2))
    return outputs


def logprob(weights, t):
    log_prior = -0.1 * np.sum(weights**2, axis=1)
    log_lik = -np.sum((predictions(weights, X) - y) ** 2, axis=1)[:, 0] / 0.02
    return log_prior + log_lik


def objective(params, t):
    mean, log_std = params[:num_weights], params[num_weights:]
    samples = rs.randn(4, num_weights) * np.exp(log_std) + mean
    return -np.sum(log_std) - np.mean(logprob(samples, t))


start = np.concatenate([rs.randn(num_weights), -5 * np.ones(num_weights)])
show(adam(grad(objective), start, step_size=0.1, num_iters=10))
