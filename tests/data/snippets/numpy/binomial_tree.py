import numpy as np

def binomial_put(S, K, r, sigma, T, N):
    dt = T / N
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)

    # terminal payoffs
    j = np.arange(N + 1)
    ST = S * u ** (N - j) * d ** j
    V = np.maximum(K - ST, 0)
    for i in range(N - 1, -1, -1):
        V = disc * (p * V[:-1] + (1 - p) * V[1:])
    return V[0]
