import torch

def rosenbrock(x):
    return ((1 - x[:-1])**2 + 100 * (x[1:] - x[:-1]**2)**2).sum()

x = torch.tensor([-1.2, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
for it in range(8):
    f = rosenbrock(x)
    g, = torch.autograd.grad(f, x, create_graph=True)
    H = torch.stack([torch.autograd.grad(g[i], x, retain_graph=True)[0] for i in range(x.numel())])
    step = torch.linalg.solve(H, g.detach())
    with torch.no_grad():
        x -= step
    print(it, f.item(), g.detach().norm().item())
H2 = torch.autograd.functional.hessian(rosenbrock, x)
condition = torch.linalg.cond(H2)
eig = torch.linalg.eigvalsh(H2)

y = torch.tensor([-1.5, 1.5], requires_grad=True)
path = torch.empty((21, 2))
path[0] = y.data
for i in range(20):
    loss = rosenbrock(y)
    loss.backward()
    with torch.no_grad():
        y -= 1e-3 * y.grad
        y.grad.zero_()
    path[i + 1] = y.detach()
