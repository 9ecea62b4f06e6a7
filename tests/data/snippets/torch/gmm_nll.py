import math
import torch

log_pi = torch.log_softmax(logits, dim=0)
sigma = log_sigma.exp()
log_prob = -0.5 * ((x.unsqueeze(1) - mu) / sigma) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
-torch.logsumexp(log_pi + log_prob, dim=1).mean()
