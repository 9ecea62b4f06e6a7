import numpy as np

def mvn_logpdf(x, mu, Sigma):
    d = x.shape[0]
    diff = x - mu
    sign, logdet = np.linalg.slogdet(Sigma)
    maha = diff @ np.linalg.solve(Sigma, diff)
    return -0.5 * (d * np.log(2 * np.pi) + logdet + maha)
