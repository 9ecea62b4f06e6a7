import math
import torch

def log_prob(x, logits, mu, log_sigma):
    z = (x.unsqueeze(-1) - mu) * torch.exp(-log_sigma)
    lp = -0.5 * z**2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return torch.logsumexp(lp + torch.log_softmax(logits, dim=-1), dim=-1).sum()
