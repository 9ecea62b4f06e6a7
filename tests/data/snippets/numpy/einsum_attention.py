import numpy as np

scores = np.einsum('id,jd->ij', q, k) / np.sqrt(q.shape[-1])
weights = np.exp(scores)
weights = weights / weights.sum(axis=-1, keepdims=True)
np.einsum('ij,jd->id', weights, v)
