import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(2, 1, 8, 8)
w = torch.randn(3, 1, 3, 3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
y = F.conv2d(x, w, b, stride=1, padding=1)
y = F.max_pool2d(F.relu(y), 2)
flat = torch.flatten(y, 1)
W = torch.randn(10, flat.shape[1]) / flat.shape[1] ** 0.5
W.requires_grad_()
logits = F.linear(flat, W)
target = torch.tensor([3, 7])
loss = F.cross_entropy(logits, target)
loss.backward()

patches = x.unfold(2, 3, 1).unfold(3, 3, 1).contiguous().view(2, 36, 9)
same = patches @ w.detach().view(3, 9).t()
valid = F.conv2d(x, w.detach()).flatten(2).transpose(1, 2)
assert torch.allclose(same, valid)
pred = logits.argmax(dim=1, keepdim=True)
correct = pred.eq(target.view_as(pred)).sum().item()
onehot = F.one_hot(target, num_classes=10)
nll = -(onehot * F.log_softmax(logits, dim=-1)).sum(dim=1).mean()
print(correct, nll.item(), loss.item())
