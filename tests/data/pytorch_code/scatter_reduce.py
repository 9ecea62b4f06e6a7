import torch
src = torch.tensor([1., 2., 3., 4., 5., 6.], requires_grad=True)
index = torch.tensor([0, 1, 0, 1, 2, 1])
base = torch.tensor([1.5, 2.2, 2.5, 4.], requires_grad=True)
results = []
grads = []
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for include in (True, False):
        out = base.scatter_reduce(0, index, src, reduce=reduce, include_self=include)
        gb, gs = torch.autograd.grad((out * torch.arange(1., 5.)).sum(), (base, src))
        results.append(out); grads.append((gb, gs))
print([r.tolist() for r in results])
m = torch.zeros(2, 3).scatter_reduce(1, torch.tensor([[0, 0, 2], [1, 1, 1]]), torch.tensor([[1., 5., 2.], [3., 2., 9.]]), "amax", include_self=False)
n = torch.scatter_reduce(torch.ones(3), 0, torch.tensor([0, 0, 2]), torch.tensor([2., 3., 4.]), reduce="prod")
z = torch.ones(4)
z.scatter_reduce_(0, torch.tensor([1, 1, 3]), torch.tensor([2., 3., 4.]), reduce="sum")
i = torch.zeros(4).index_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([2., 3., 4.]), "mean", include_self=False)
ties = torch.tensor([2., 2., 1.], requires_grad=True)
t = torch.tensor([2., 0.], requires_grad=True)
o = t.scatter_reduce(0, torch.tensor([0, 0, 1]), ties, "amax")
o.sum().backward()
