import numpy as np

R = M - U @ V.T
loss = np.linalg.norm(R, 'fro')**2 + reg*(np.linalg.norm(U)**2 + np.linalg.norm(V)**2)
loss
