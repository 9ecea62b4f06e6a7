import numpy as np

U, s, Vt = np.linalg.svd(A, full_matrices=False)
np.sum(np.maximum(s - tau, 0)) + np.linalg.norm(A, 'nuc')
