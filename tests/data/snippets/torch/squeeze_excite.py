import torch
import torch.nn.functional as F

def se_block(x, w1, w2):
    s = x.mean(dim=(1, 2))
    s = torch.sigmoid(w2 @ F.relu(w1 @ s))
    return (x * s.view(-1, 1, 1)).sum()
