import torch

def critic(x):
    return torch.tanh(x @ w) @ v

d = critic(x)
gradients = torch.autograd.grad(d.sum(), x, create_graph=True)[0]
gradient_penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
gradient_penalty
