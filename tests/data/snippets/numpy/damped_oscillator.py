import numpy as np

def damped(t, A, gamma, omega0, phi):
    omega = np.sqrt(omega0**2 - gamma**2)
    return A * np.exp(-gamma * t) * np.cos(omega * t + phi)
