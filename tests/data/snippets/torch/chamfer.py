import torch

def chamfer(a, b):
    d = torch.cdist(a, b)
    return d.min(dim=1)[0].mean() + d.min(dim=0).values.mean()
