import autograd.numpy as np
from autograd import value_and_grad

rows = cols = 8


def project(vx, vy):
    p = np.zeros(vx.shape)
    div = (
        -0.5
        / rows
        * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
    )
    for _ in range(5):
        p = (
            div + np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0) + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)
        ) / 4.0
    vx -= 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) * rows
    vy -= 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)) * rows
    return vx, vy


def advect(f, vx, vy):
    cell_ys, cell_xs = np.meshgrid(np.arange(rows), np.arange(cols))
    center_xs, center_ys = (cell_xs - vx).ravel(), (cell_ys - vy).ravel()
    left, top = np.floor(center_xs).astype(int), np.floor(center_ys).astype(int)
    rw, bw = center_xs - left, center_ys - top
    left, top = np.mod(left, rows), np.mod(top, cols)
    right, bottom = np.mod(left + 1, rows), np.mod(top + 1, cols)
    flat = (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom])
    flat = flat + rw * ((1 - bw) * f[right, top] + bw * f[right, bottom])
    return np.reshape(flat, (rows, cols))


rs = np.random.RandomState(0)
smoke, target, start = rs.rand(rows, cols), rs.rand(rows, cols), rs.randn(2 * rows * cols) * 0.5


def objective(params):
    vx, vy, f = np.reshape(params[: rows * cols], (rows, cols)), np.reshape(params[rows * cols :], (rows, cols)), smoke
    for _ in range(4):
        vx, vy = project(advect(vx, vx, vy), advect(vy, vx, vy))
        f = advect(f, vx, vy)
    return np.mean((target - f) ** 2)


show(value_and_grad(objective)(start))
