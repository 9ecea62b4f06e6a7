import torch

def linear_attention(q, k, v):
    phi = lambda t: torch.nn.functional.elu(t) + 1
    q, k = phi(q), phi(k)
    S = torch.zeros(k.shape[-1], v.shape[-1])
    z = torch.zeros(k.shape[-1])
    outs = []
    for i in range(q.shape[0]):
        S = S + torch.outer(k[i], v[i])
        z = z + k[i]
        outs.append((q[i] @ S) / (q[i] @ z))
    return torch.stack(outs).pow(2).sum()
