import torch

def raw2outputs(sigma, rgb, z_vals):
    dists = z_vals[1:] - z_vals[:-1]
    dists = torch.cat([dists, torch.tensor([1e10])], -1)
    alpha = 1. - torch.exp(-torch.relu(sigma) * dists)
    T = torch.cumprod(torch.cat([torch.ones(1), 1. - alpha + 1e-10], -1), -1)[:-1]
    weights = alpha * T
    rgb_map = torch.sum(weights[..., None] * rgb, -2)
    return rgb_map
