import math
import torch

def gelu(x):
    """Gaussian Error Linear Unit, original BERT implementation."""
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
