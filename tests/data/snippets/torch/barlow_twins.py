import torch

def barlow(z1, z2, lambd=0.005):
    z1 = (z1 - z1.mean(0)) / z1.std(0)
    z2 = (z2 - z2.mean(0)) / z2.std(0)
    c = z1.T @ z2 / z1.shape[0]
    on = torch.diagonal(c).add(-1).pow(2).sum()
    off = (c - torch.diag(torch.diagonal(c))).pow(2).sum()
    return on + lambd * off
