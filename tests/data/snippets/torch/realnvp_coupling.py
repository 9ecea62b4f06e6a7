import torch

x1, x2 = x.chunk(2, dim=1)
s = torch.tanh(x1 @ W_s)
t = x1 @ W_t
y = torch.cat([x1, x2 * torch.exp(s) + t], dim=1)
log_det = s.sum(dim=1)
(0.5 * y.pow(2).sum(dim=1) - log_det).mean()
