import numpy as np

def pendulum(theta0, omega0, g, L, steps=10, dt=0.02):
    def f(y):
        theta, omega = y
        return np.array([omega, -g / L * np.sin(theta)])

    y = np.array([theta0, omega0])
    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + 0.5 * dt * k1)
        k3 = f(y + 0.5 * dt * k2)
        k4 = f(y + dt * k3)
        y = y + dt / 6 * (k1 + 2*k2 + 2*k3 + k4)
    return y[0]
