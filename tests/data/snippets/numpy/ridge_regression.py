import numpy as np

def ridge(X, y, lam):
    n_features = X.shape[1]
    beta = np.linalg.solve(X.T @ X + lam * np.eye(n_features), X.T @ y)
    residual = y - X @ beta
    return np.sum(residual**2) + lam * np.sum(beta**2)
