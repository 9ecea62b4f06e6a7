import torch
from torch.func import grad

def f(w, x):
    return torch.sin(w @ x) ** 2

g = torch.stack([grad(f)(w, x) for x in X])
g.pow(2).sum(dim=0)
