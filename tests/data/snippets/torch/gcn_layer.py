import torch

def gcn(A, X, W):
    A_hat = A + torch.eye(A.size(0))
    D = torch.diag(A_hat.sum(1) ** -0.5)
    return torch.relu(D @ A_hat @ D @ X @ W)
