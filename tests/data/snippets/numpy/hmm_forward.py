import numpy as np

def forward(pi, A, B, obs):
    """Log-likelihood of an observation sequence (scaled forward algorithm)."""
    alpha = pi * B[:, obs[0]]
    scale = alpha.sum()
    alpha = alpha / scale
    loglik = np.log(scale)
    for o in obs[1:]:
        alpha = (alpha @ A) * B[:, o]
        scale = alpha.sum()
        alpha = alpha / scale
        loglik += np.log(scale)
    return loglik
