(x * torch.sigmoid(beta * x)).sum()
