import torch

def deep_set(x, W1, b1, w2):
    h = torch.relu(x @ W1 + b1)
    pooled = h.max(dim=0, keepdim=True).values - h.mean(dim=0, keepdim=True)
    std = h.std(dim=0)
    return (pooled @ w2).squeeze() + std.sum()
