import numpy as np

def lorenz(xyz, s, r, b):
    x, y, z = xyz
    x_dot = s*(y - x)
    y_dot = r*x - y - x*z
    z_dot = x*y - b*z
    return np.array([x_dot, y_dot, z_dot])

dt = 0.01
xyzs = np.zeros((num_steps + 1, 3))
xyzs[0] = state
for i in range(num_steps):
    xyzs[i + 1] = xyzs[i] + lorenz(xyzs[i], sigma, rho, beta) * dt

xyzs[-1]
