import torch

def f(x):
    return (x[0] - 2) ** 4 + (x[0] - 2 * x[1]) ** 2 + torch.exp(x[2]) - x[2]

x = torch.tensor([0.0, 3.0, 1.5], requires_grad=True)
history = []
g, = torch.autograd.grad(f(x), x)
for k in range(12):
    q = g.clone()
    alphas = []
    for s, y in reversed(history):
        a = s.dot(q) / y.dot(s)
        q.sub_(a * y)
        alphas.append(a)
    if len(history) > 0:
        s, y = history[-1]
        q.mul_(s.dot(y) / y.dot(y))
    for (s, y), a in zip(history, reversed(alphas)):
        q.add_(s, alpha=(a - y.dot(q) / y.dot(s)).item())
    step, fx = 1.0, f(x).item()
    while f((x - step * q).detach()).item() > fx - 1e-4 * step * g.dot(q).item():
        step /= 2
    x_new = (x - step * q).detach().requires_grad_(True)
    g_new, = torch.autograd.grad(f(x_new), x_new)
    history = (history + [(x_new.detach() - x.detach(), g_new - g)])[-5:]
    x, g = x_new, g_new
    print(f"{k:2d} {f(x).item():12.8f} {torch.linalg.vector_norm(g).item():10.6f}")
    if g.abs().max() < 1e-6:
        break
