import torch.nn.functional as F

h = F.relu(F.linear(x, w1, b1))
out = F.linear(h, w2, b2)
F.mse_loss(out, y)
