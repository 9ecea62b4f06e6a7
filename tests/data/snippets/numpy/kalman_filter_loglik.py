import numpy as np

def kalman_loglik(zs, q, r):
    m, P = 0.0, 1.0
    ll = 0.0
    for z in zs:
        P = P + q
        S = P + r
        K = P / S
        resid = z - m
        ll += -0.5 * (np.log(2 * np.pi * S) + resid**2 / S)
        m = m + K * resid
        P = (1 - K) * P
    return ll
