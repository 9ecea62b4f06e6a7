# u'' = -u, u(0) = 0, u'(0) = 1, by a network of one hidden layer and Adam written out
import torch

torch.manual_seed(123)
N = 16
def init(*shape):
    return (torch.randn(*shape) / shape[0] ** 0.5).requires_grad_(True)

w1, b1, w2, b2 = init(1, N), torch.zeros(N, requires_grad=True), init(N, 1), torch.zeros(1, requires_grad=True)
params = [w1, b1, w2, b2]

def net(t):
    return torch.tanh(t @ w1 + b1) @ w2 + b2

t_boundary = torch.tensor(0.).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1, 30).view(-1, 1).requires_grad_(True)
m = [torch.zeros_like(p) for p in params]
v = [torch.zeros_like(p) for p in params]
lr, beta1, beta2, eps = 1e-2, 0.9, 0.999, 1e-8
for i in range(1, 31):
    u = net(t_boundary)
    loss1 = (torch.squeeze(u) - 0) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 1) ** 2
    u = net(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + u) ** 2)
    loss = loss1 + 1e-1 * loss2 + 1e-2 * loss3
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, g, mi, vi in zip(params, grads, m, v):
            mi.mul_(beta1).add_(g, alpha=1 - beta1)
            vi.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            denom = (vi.sqrt() / (1 - beta2 ** i) ** 0.5).add_(eps)
            p.addcdiv_(mi, denom, value=-lr / (1 - beta1 ** i))
    if i % 10 == 0:
        print(i, loss.item())
residual = d2udt2 + u
