gram = W.T @ W
torch.linalg.norm(gram - torch.eye(gram.shape[0]), 2) + torch.linalg.matrix_norm(W, ord='fro')
