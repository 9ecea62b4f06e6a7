import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
import autograd.scipy.stats.norm as norm
from autograd import grad
from autograd.misc.optimizers import adam


def black_box_variational_inference(logprob, D, num_samples):
    rs = npr.RandomState(0)

    def unpack_params(params):
        return params[:D], params[D:]

    def gaussian_entropy(log_std):
        return 0.5 * D * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)

    def objective(params, t):
        mean, log_std = unpack_params(params)
        samples = rs.randn(num_samples, D) * np.exp(log_std) + mean
        return -(gaussian_entropy(log_std) + np.mean(logprob(samples, t)))

    return objective, grad(objective), unpack_params


def log_density(x, t):
    mu, log_sigma = x[:, 0], x[:, 1]
    return norm.logpdf(log_sigma, 0, 1.35) + norm.logpdf(mu, 0, np.exp(log_sigma))


objective, gradient, unpack_params = black_box_variational_inference(log_density, 2, 50)
params = adam(gradient, np.concatenate([-np.ones(2), -5 * np.ones(2)]), step_size=0.1, num_iters=30)
mean, log_std = unpack_params(params)
show(params, mvn.entropy(mean, np.diag(np.exp(2 * log_std))), mvn.pdf(mean, mean, np.diag(np.exp(2 * log_std))))
show(grad(lambda s: mvn.entropy(mean, np.diag(np.exp(2 * s))))(log_std))
