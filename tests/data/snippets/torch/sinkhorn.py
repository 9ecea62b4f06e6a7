import torch

def sinkhorn(C, a, b, eps, n_iters=10):
    K = torch.exp(-C / eps)
    u = torch.ones_like(a)
    for _ in range(n_iters):
        v = b / (K.t() @ u)
        u = a / (K @ v)
    P = u[:, None] * K * v[None, :]
    return (P * C).sum()
