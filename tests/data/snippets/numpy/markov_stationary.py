import numpy as np

n = P.shape[0]
A = np.vstack([P.T - np.eye(n), np.ones((1, n))])
b = np.zeros(n + 1)
b[-1] = 1.0
pi = np.linalg.solve(A.T @ A, A.T @ b)
pi @ r
