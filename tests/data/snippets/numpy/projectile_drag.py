import numpy as np

def projectile(v0, angle, cd, dt=0.05, steps=20):
    theta = np.deg2rad(angle)
    vx, vy = v0 * np.cos(theta), v0 * np.sin(theta)
    x, y = 0.0, 0.0
    g = 9.81
    for _ in range(steps):
        speed = np.hypot(vx, vy)
        ax = -cd * speed * vx
        ay = -g - cd * speed * vy
        vx += ax * dt
        vy += ay * dt
        x += vx * dt
        y += vy * dt
    return x + y
