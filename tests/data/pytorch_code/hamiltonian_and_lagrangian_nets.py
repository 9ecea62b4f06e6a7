import torch
import torch.nn as nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap


class HNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1, bias=None))
        self.M = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])

    def time_derivative(self, x):
        F2 = self.net(x)
        dF2 = torch.autograd.grad(F2.sum(), x, create_graph=True)[0]
        return dF2 @ self.M.t()


h = HNN()
x = torch.randn(6, 2, requires_grad=True)
dx = torch.stack([x[:, 1], -x[:, 0]], 1).detach()
loss = ((dx - h.time_derivative(x)) ** 2).mean()
loss.backward()
gh = [p.grad for p in h.parameters()]


def lagrangian(q, qt, m=1.0, g=9.8):
    t1, t2 = q
    w1, w2 = qt
    T1 = 0.5 * m * w1**2
    T2 = 0.5 * m * (w1**2 + w2**2 + 2 * w1 * w2 * torch.cos(t1 - t2))
    V = -m * g * torch.cos(t1) - m * g * (torch.cos(t1) + torch.cos(t2))
    return T1 + T2 - V


def equation_of_motion(state):
    q, q_t = torch.tensor_split(state, 2)
    q_tt = torch.linalg.pinv(hessian(lagrangian, 1)(q, q_t)) @ (
        grad(lagrangian, 0)(q, q_t) - jacfwd(jacrev(lagrangian, 1), 0)(q, q_t) @ q_t
    )
    return torch.cat([q_t, q_tt])


s0 = torch.tensor([3 * torch.pi / 7, 3 * torch.pi / 4, 0.0, 0.0])


def rk4_step(f, x, h):
    k1 = h * f(x)
    k2 = h * f(x + k1 / 2)
    k3 = h * f(x + k2 / 2)
    k4 = h * f(x + k3)
    return x + 1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


traj = [s0]
for _ in range(3):
    traj.append(rk4_step(equation_of_motion, traj[-1], 0.01))
traj = torch.stack(traj)
batched = vmap(equation_of_motion)(traj)
net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3))
params = dict(net.named_parameters())


def f(p, x):
    return functional_call(net, p, (x,))


J = vmap(jacrev(f, argnums=1), in_dims=(None, 0))(params, x.detach())
div = vmap(lambda v: torch.trace(jacrev(lambda y: f(params, y)[:2])(v)))(x.detach())


def hutch(v, e):
    out, vjp_fn = vjp(lambda y: f(params, y)[:2], v)
    return (vjp_fn(e)[0] * e).sum()


ht = vmap(hutch)(x.detach(), torch.randn(6, 2))
lap = vmap(lambda v: hessian(lambda y: f(params, y)[0])(v).diagonal().sum())(x.detach())
per_sample = vmap(grad(lambda p, x, t: ((f(p, x) - t) ** 2).mean()), in_dims=(None, 0, 0))(
    params, x.detach(), torch.randn(6, 3)
)
o, tan = jvp(lambda y: f(params, y), (x.detach(),), (torch.ones(6, 2),))
models = [nn.Linear(2, 1) for _ in range(3)]
sp, sb = stack_module_state(models)
ens = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(sp, sb, x.detach())
out, lin = linearize(lambda y: y.sin() * 2, torch.ones(3))
lt = lin(torch.ones(3))
gv, aux = torch.func.grad_and_value(lambda y: (y**3).sum())(torch.arange(3.0))
ge, au = grad(lambda y: ((y**3).sum(), y.cos()), has_aux=True)(torch.arange(3.0))
d3 = grad(grad(grad(lambda t: torch.sin(t) * t)))(torch.tensor(0.5))
nested = vmap(vmap(lambda a, b: a @ b, (0, None)), (None, 1), out_dims=1)(torch.randn(2, 3), torch.randn(3, 4))
chunked = vmap(lambda a: a.sum(), chunk_size=2)(torch.randn(5, 2))
