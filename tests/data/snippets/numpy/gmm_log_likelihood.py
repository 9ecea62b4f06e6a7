import numpy as np
from scipy.special import logsumexp

def gmm_nll(x, means, log_sigmas, logits):
    log_w = logits - logsumexp(logits)
    z = (x[:, None] - means) / np.exp(log_sigmas)
    log_p = -0.5 * z**2 - log_sigmas - 0.5 * np.log(2 * np.pi)
    return -np.mean(logsumexp(log_w + log_p, axis=1))
