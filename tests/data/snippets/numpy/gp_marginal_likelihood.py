import numpy as np

def rbf(a, b, length_scale, sigma_f):
    sqdist = (a[:, None] - b[None, :]) ** 2
    return sigma_f**2 * np.exp(-0.5 * sqdist / length_scale**2)

def nll(X, y, length_scale, sigma_f, noise):
    """Negative log marginal likelihood of a Gaussian process."""
    K = rbf(X, X, length_scale, sigma_f) + noise**2 * np.eye(len(X))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return (0.5 * y.dot(alpha)
            + np.sum(np.log(np.diagonal(L)))
            + 0.5 * len(X) * np.log(2*np.pi))
