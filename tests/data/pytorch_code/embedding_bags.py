import torch
from torch import nn
bag = nn.EmbeddingBag(10, 3, mode="mean")
text = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
offsets = torch.tensor([0, 4])
fc = nn.Linear(3, 2)
out = fc(bag(text, offsets))
loss = nn.functional.cross_entropy(out, torch.tensor([0, 1]))
loss.backward()
g = bag.weight.grad
s = nn.functional.embedding_bag(torch.tensor([[1, 2], [3, 4]]), bag.weight, mode="sum")
m = nn.functional.embedding_bag(torch.tensor([[1, 2], [3, 4]]), bag.weight, mode="max")
w = nn.functional.embedding_bag(torch.tensor([[1, 2], [3, 4]]), bag.weight, mode="sum", per_sample_weights=torch.tensor([[0.5, 2.0], [1.0, -1.0]]))
pad = nn.EmbeddingBag(6, 3, mode="max", padding_idx=0)
padded = pad(torch.tensor([[1, 0, 2], [0, 0, 0]]))
ends = nn.functional.embedding_bag(torch.tensor([1, 2, 4]), bag.weight, torch.tensor([0, 0, 2, 3]), include_last_offset=True, mode="sum")
print(pad)
