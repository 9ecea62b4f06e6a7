import numpy as np

def neg_log_partial_likelihood(beta, X, event):
    eta = X @ beta                      # sorted by descending time
    log_risk = np.log(np.cumsum(np.exp(eta)))
    return -np.sum((eta - log_risk) * event) / event.sum()
