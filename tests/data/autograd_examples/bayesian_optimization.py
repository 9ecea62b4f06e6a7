from scipy.optimize import minimize

import autograd.numpy as np
from autograd import value_and_grad
from autograd.scipy.stats import norm

X = np.array([[0.1], [0.4], [0.9]])
y = np.sin(10 * X[:, 0]) * X[:, 0]


def kernel(a, b):
    return np.exp(-0.5 * np.sum((np.expand_dims(a, 1) - np.expand_dims(b, 0)) ** 2, axis=2) / 0.04)


def predict(x):
    K = kernel(X, X) + 1e-6 * np.eye(3)
    cross = kernel(X, x)
    return np.dot(np.linalg.solve(K, cross).T, y), np.sqrt(
        np.diag(kernel(x, x) - np.dot(cross.T, np.linalg.solve(K, cross)))
    )


def expected_new_max(x):
    mean, std = predict(np.atleast_2d(x))
    best = np.max(y)
    return np.sum(best - (mean - best) * norm.cdf(mean, best, std) + std * norm.pdf(mean, best, std))


objective = value_and_grad(lambda x: -expected_new_max(x))
for start in (0.2, 0.6):
    found = minimize(
        objective, x0=np.array([start]), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.1)], options={"maxiter": 4}
    )
    show(objective(np.array([start])), found.x)
