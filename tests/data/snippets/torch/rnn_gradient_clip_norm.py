import torch

def clipped_step(w, x, max_norm):
    loss = (torch.tanh(x @ w) ** 2).sum()
    g = torch.autograd.grad(loss, w, create_graph=True)[0]
    norm = g.norm()
    scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    w_new = w - 0.1 * scale * g
    return (torch.tanh(x @ w_new) ** 2).sum()
