import numpy as np

def diffuse(u, alpha, nt=5, dx=1.0, dt=0.5):
    for n in range(nt):
        un = u.copy()
        u[1:-1] = un[1:-1] + alpha * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
    return np.sum(u**2)
