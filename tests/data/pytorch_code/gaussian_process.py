import math
import torch

torch.manual_seed(0)
X = torch.linspace(0, 1, 12).unsqueeze(-1)
y = torch.sin(2 * math.pi * X).squeeze(-1) + 0.1 * torch.randn(12)
log_ls = torch.tensor(-1.0, requires_grad=True)
log_amp = torch.zeros((), requires_grad=True)
log_noise = torch.full((), -2.0, requires_grad=True)

def kernel(a, b):
    d2 = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)
    return log_amp.exp() ** 2 * torch.exp(-0.5 * d2 / log_ls.exp() ** 2)

def nll():
    K = kernel(X, X) + (log_noise.exp() ** 2 + 1e-6) * torch.eye(len(X))
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
    return 0.5 * y @ alpha + L.diagonal().log().sum() + 0.5 * len(X) * math.log(2 * math.pi)

hyper = [log_ls, log_amp, log_noise]
for i in range(10):
    loss = nll()
    for p in hyper:
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in hyper:
            p.sub_(p.grad.clamp(-1, 1), alpha=0.05)
    print(i, loss.item(), [p.item() for p in hyper])

Xs = torch.linspace(0, 1, 5)[:, None]
with torch.no_grad():
    K = kernel(X, X) + log_noise.exp() ** 2 * torch.eye(12)
    Ks = kernel(Xs, X)
    mean = Ks @ torch.linalg.solve(K, y)
    cov = kernel(Xs, Xs) - Ks @ torch.linalg.solve(K, Ks.T)
    std = cov.diagonal().sqrt()
