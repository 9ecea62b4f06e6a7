import numpy as np

X_centered = X - np.mean(X, axis=0)
cov = X_centered.T @ X_centered / (X.shape[0] - 1)
eigvals, eigvecs = np.linalg.eigh(cov)
eigvals[-1] / eigvals.sum()
