0.5*np.sum((u-f)**2) + lam*np.sum(np.sqrt(np.diff(u)**2 + eps))
