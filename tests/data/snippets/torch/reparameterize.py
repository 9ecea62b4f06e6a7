std = torch.exp(0.5 * logvar)
z = mu + eps * std
torch.dot(w, z ** 2)
