import torch
from typing import List

def run_lstm(xs, W, U, b):
    hidden = U.shape[1]
    h, c = torch.zeros(hidden), torch.zeros(hidden)
    outputs: List[torch.Tensor] = []
    for x_t in xs:
        gates = W @ x_t + U @ h + b
        i, f, g, o = torch.chunk(gates, 4, dim=0)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs, dim=0)
