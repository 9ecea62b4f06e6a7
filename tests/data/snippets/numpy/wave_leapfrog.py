import numpy as np

def wave(u0, c, dt):
    u_prev = u0.copy()
    u = u0.copy()
    for _ in range(5):
        lap = np.zeros_like(u)
        lap[1:-1] = u[2:] - 2*u[1:-1] + u[:-2]
        u, u_prev = 2*u - u_prev + (c*dt)**2 * lap, u
    return (u**2).sum() + u[2]*u_prev[3]
