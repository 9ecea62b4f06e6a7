import numpy as np
from scipy.linalg import solve_triangular

cov = A @ A.T + 0.1 * np.eye(2)
L = np.linalg.cholesky(cov)
z = solve_triangular(L, x - mean, lower=True)
log_det = 2 * np.sum(np.log(np.diag(L)))
-0.5 * (z @ z + log_det + len(x) * np.log(2 * np.pi))
