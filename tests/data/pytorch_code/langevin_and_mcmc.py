import torch

torch.manual_seed(3)

def log_prob(x):
    return -0.5 * (x ** 2).sum(-1) - torch.log(1 + x[..., 0] ** 2)

def score(x):
    x = x.detach().requires_grad_(True)
    return torch.autograd.grad(log_prob(x).sum(), x)[0]

x = torch.zeros(50, 2)
step = 0.1
samples = []
for i in range(20):
    x = x + step * score(x) + (2 * step) ** 0.5 * torch.randn_like(x)
    samples.append(x)
samples = torch.stack(samples)
mean = samples.mean(dim=(0, 1))
spread = samples.flatten(0, 1).var(dim=0, correction=1)

# Hamiltonian Monte Carlo, one chain
q = torch.zeros(2)
accepted = 0
for i in range(20):
    p = torch.randn(2)
    q_new, p_new = q.clone(), p.clone()
    for _ in range(5):
        p_new = p_new + 0.1 * score(q_new)
        q_new = q_new + 0.2 * p_new
        p_new = p_new + 0.1 * score(q_new)
    h_old = -log_prob(q) + 0.5 * p.dot(p)
    h_new = -log_prob(q_new) + 0.5 * p_new.dot(p_new)
    if torch.rand(()) < torch.exp(h_old - h_new):
        q = q_new
        accepted += 1
print(accepted, q)
