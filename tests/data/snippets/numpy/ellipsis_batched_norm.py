import numpy as np
A = T / np.sqrt((T**2).sum(axis=-1))[..., None]
S = np.einsum('...ij,...kj->...ik', A, A)
np.sum(S[..., 0, 1]) + S[0, ..., -1].sum()
