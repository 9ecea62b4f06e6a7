import torch

def residual(x, t, nu):
    u = torch.exp(-nu * t) * torch.sin(x)
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    return ((u_t - 1.3 * nu * u_xx + u * u_x) ** 2).mean()
