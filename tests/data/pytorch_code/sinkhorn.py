import torch

torch.manual_seed(2)
x = torch.randn(7, 2, requires_grad=True)
y = torch.randn(5, 2) + 1
a = torch.full((7,), 1 / 7)
b = torch.full((5,), 1 / 5)
eps = 0.5

C = torch.cdist(x, y, p=2) ** 2
f, g = torch.zeros_like(a), torch.zeros_like(b)
for _ in range(20):
    f = -eps * torch.logsumexp((g[None, :] - C) / eps + b.log()[None, :], dim=1)
    g = -eps * torch.logsumexp((f[:, None] - C) / eps + a.log()[:, None], dim=0)
P = torch.exp((f[:, None] + g[None, :] - C) / eps) * a[:, None] * b[None, :]
cost = (P * C).sum()
cost.backward()
marginals = P.sum(0), P.sum(1)
print(cost.item())

values, indices = P.max(dim=1)
ranked = torch.sort(P.flatten(), descending=True).values[:3]
top, where = torch.topk(P, k=2, dim=0)
