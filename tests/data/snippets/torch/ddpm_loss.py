import torch
import torch.nn.functional as F

betas = torch.linspace(0.01, 0.2, 10)
alphas = 1. - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
x_t = torch.sqrt(alphas_cumprod[t]) * x0 + torch.sqrt(1 - alphas_cumprod[t]) * noise
pred = w * x_t
F.mse_loss(pred, noise)
