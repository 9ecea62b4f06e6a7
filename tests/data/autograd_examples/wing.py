import autograd.numpy as np
from autograd import value_and_grad

rows, cols = 8, 10


def continuous(f, occlusion):
    open_ = 1 - occlusion
    rolls = [(1, 0), (-1, 0), (1, 1), (-1, 1)]
    num = sum(np.roll(f, s, axis=a) * np.roll(open_, s, axis=a) for s, a in rolls)
    den = sum(np.roll(open_, s, axis=a) for s, a in rolls)
    return f * open_ + (1 - open_) * num / (den + 0.001)


def objective(params):
    mask = np.zeros((rows, cols))
    mask[2:6, 2:6] = 1.0
    occlusion = 0.5 * (np.tanh(np.reshape(params, (rows, cols))) + 1.0) * mask
    vx, vy = np.ones((rows, cols)), np.zeros((rows, cols))
    for _ in range(3):
        div = continuous(
            -0.5
            * (np.roll(vx, -1, axis=1) - np.roll(vx, 1, axis=1) + np.roll(vy, -1, axis=0) - np.roll(vy, 1, axis=0)),
            occlusion,
        )
        p = np.zeros(vx.shape)
        for _ in range(4):
            p = continuous((div + sum(np.roll(p, s, axis=a) for s in (1, -1) for a in (0, 1))) / 4.0, occlusion)
        vx = (vx - 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))) * (1 - occlusion)
        vy = (vy - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0))) * (1 - occlusion)
    return -np.mean(vy) / np.mean(1.0 - vx)


block = -np.ones((rows, cols))
block[3:5, 3:6] = 0.3
block[2, 4] = 1.0
show(value_and_grad(objective)(block.ravel()))
