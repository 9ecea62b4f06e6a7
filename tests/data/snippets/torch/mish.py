import torch
import torch.nn.functional as F

def mish(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tanh(F.softplus(x))
