Z = (X - X.mean(axis=0)) / X.std(axis=0)
(Z @ v)[0] + np.tanh(Z).sum()
