import torch.nn.functional as F
loss = F.cross_entropy(logits, labels)
