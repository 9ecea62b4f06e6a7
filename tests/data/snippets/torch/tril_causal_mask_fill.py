import torch

def attn(q, k):
    n, d = q.shape
    scores = q @ k.transpose(-2, -1) / d ** 0.5
    mask = torch.tril(torch.ones(n, n))
    scores = scores.masked_fill(mask == 0, float('-inf'))
    w = scores.softmax(dim=-1)
    return (w * torch.arange(n)).sum()
