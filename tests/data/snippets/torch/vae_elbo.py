import torch
from torch.nn import functional as F

def loss_function(x, logits, mu, logvar):
    recon_x = torch.sigmoid(logits)
    BCE = F.binary_cross_entropy(recon_x, x, reduction='sum')
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD
