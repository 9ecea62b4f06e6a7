import numpy as np
from scipy.special import gammaln

def neg_log_lik(beta, X, counts):
    eta = np.dot(X, beta)
    return -np.sum(counts * eta - np.exp(eta) - gammaln(counts + 1))
