def rbf_kernel(X, gamma):
    sq = np.sum(X**2, axis=1)
    dists = sq[:, np.newaxis] + sq[np.newaxis, :] - 2 * X @ X.T
    return np.exp(-gamma * dists)
