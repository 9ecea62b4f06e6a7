import torch
taus = torch.tensor([0.1, 0.5, 0.9])

def pinball(pred, y):
    err = y.unsqueeze(-1) - pred
    return torch.max(taus * err, (taus - 1) * err).mean()
