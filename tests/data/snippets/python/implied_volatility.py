from math import log, sqrt, exp, erf, pi

def implied_vol(price, S, K, T, r):
    N = lambda x: 0.5 * (1 + erf(x / sqrt(2)))
    n = lambda x: exp(-x * x / 2) / sqrt(2 * pi)
    sigma = 0.3
    for i in range(8):
        d1 = (log(S / K) + (r + sigma ** 2 / 2) * T) / (sigma * sqrt(T))
        d2 = d1 - sigma * sqrt(T)
        value = S * N(d1) - K * exp(-r * T) * N(d2)
        vega = S * n(d1) * sqrt(T)
        sigma = sigma - (value - price) / vega
    return sigma
