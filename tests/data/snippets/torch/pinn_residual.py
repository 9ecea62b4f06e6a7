import torch

def u(x):
    return torch.tanh(x[:, None] * w + b) @ a

y = u(x)
du = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
d2u = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
residual = d2u + torch.pi ** 2 * torch.sin(torch.pi * x)
torch.mean(residual ** 2)
