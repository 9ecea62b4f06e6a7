torch.einsum('bi,kij,bj->bk', x, W, y)
