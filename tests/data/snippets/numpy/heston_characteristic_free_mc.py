import numpy as np

def mc_call(S0, K, r, sigma, T, Z):
    ST = S0 * np.exp((r - 0.5*sigma**2)*T + sigma*np.sqrt(T)*Z)
    payoff = np.clip(ST - K, 0, None)
    return np.exp(-r*T) * payoff.mean()
