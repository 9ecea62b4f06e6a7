import autograd.numpy as np
import autograd.scipy.stats.norm as norm
from autograd import grad
from autograd.misc.optimizers import sgd

np.random.seed(42)
D = 6
Y = np.random.randn(3, 3).dot(np.random.randn(3))
noise = np.random.RandomState(0).randn(40, D)


def log_density(x):
    mu, log_sigma = x[:, :3], x[:, 3:]
    return np.sum(norm.logpdf(log_sigma, 0, 1.35), axis=1) + np.sum(norm.logpdf(Y, mu, np.exp(log_sigma)), axis=1)


def objective(lam, t):
    mean, log_std = lam[:D], lam[D:]
    return -np.sum(log_std) - np.mean(log_density(noise * np.exp(log_std) + mean))


def fisher_diag(lam):
    return np.concatenate([np.exp(-2.0 * lam[D:]), np.ones(D) * 2])


gradient = grad(objective)
lam = sgd(
    lambda lam, t: (1.0 / fisher_diag(lam)) * gradient(lam, t),
    np.concatenate([-np.ones(D), -2 * np.ones(D)]),
    step_size=0.1,
    num_iters=25,
    mass=0.001,
)
show(objective(lam, 0), lam)
