import torch

def func(t, y):
    return torch.mv(A, y ** 3)

def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + (k1 + 2 * k2 + 2 * k3 + k4) * dt / 6

y = y0
t = 0.0
dt = 0.05
while t < 0.28:
    y = rk4_step(func, t, dt, y)
    t += dt
y
