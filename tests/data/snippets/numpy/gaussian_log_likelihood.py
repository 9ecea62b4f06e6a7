def log_likelihood(mu, sigma, data):
    n = data.size
    return -n/2 * np.log(2*np.pi) - n*np.log(sigma) - np.sum((data - mu)**2) / (2*sigma**2)
