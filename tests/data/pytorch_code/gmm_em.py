import math
import torch

torch.manual_seed(11)
x = torch.cat([torch.randn(30, 2) + torch.tensor([2.0, 0.0]), 0.5 * torch.randn(30, 2) - torch.tensor([1.0, 1.0])])
K, (n, d) = 2, x.size()
mu = x[torch.randperm(n)[:K]].clone()
var = torch.ones(K, d)
pi = torch.full((K,), 1.0 / K)
for it in range(10):
    log_p = -0.5 * (((x[:, None] - mu[None]) ** 2 / var).sum(-1) + var.log().sum(-1) + d * math.log(2 * math.pi))
    log_r = log_p + pi.log()
    ll = torch.logsumexp(log_r, dim=1, keepdim=True)
    r = (log_r - ll).exp()
    nk = r.sum(0)
    mu = (r.t() @ x) / nk.unsqueeze(1)
    var = (r.t() @ x.pow(2)) / nk[:, None] - mu ** 2 + 1e-6
    pi = nk / n
    print(it, ll.mean().item())
labels = r.argmax(dim=1)
counts = torch.bincount(labels, minlength=K)
sizes = [(labels == k).sum().item() for k in range(K)]

# k-means
centers = x[:2].clone()
for _ in range(5):
    distances = torch.cdist(x, centers)
    assign = distances.argmin(dim=1)
    centers = torch.stack([x[assign == k].mean(dim=0) for k in range(2)])
inertia = distances.min(dim=1).values.sum()
