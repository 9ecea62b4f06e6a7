m = torch.max(x, dim=1)[0]
torch.sum(m * w)
