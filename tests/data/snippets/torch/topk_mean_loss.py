import torch

def ohem(losses, k):
    top, idx = torch.topk(losses, k)
    return top.mean()
