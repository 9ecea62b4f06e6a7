eps = y[1:] - c - phi * y[:-1]
np.sum(eps ** 2)
