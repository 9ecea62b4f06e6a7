import numpy as np

def garch11(omega, alpha, beta, r):
    T = len(r)
    sigma2 = np.zeros(T)
    sigma2[0] = omega / (1 - alpha - beta)
    for t in range(1, T):
        sigma2[t] = omega + alpha * r[t-1]**2 + beta * sigma2[t-1]
    return 0.5 * np.sum(np.log(2*np.pi) + np.log(sigma2) + r**2 / sigma2)
