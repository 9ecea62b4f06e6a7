import torch
import torch.nn.functional as F

y_soft = F.softmax((logits + g) / tau, dim=-1)
index = y_soft.max(dim=-1, keepdim=True)[1]
y_hard = torch.zeros_like(logits).scatter(-1, index, 1.0)
ret = y_hard - y_soft.detach() + y_soft
(ret * torch.tensor([1.0, 2.0, 3.0])).sum()
