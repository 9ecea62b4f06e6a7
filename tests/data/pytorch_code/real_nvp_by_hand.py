import math
import torch

torch.manual_seed(7)
D, H, L = 2, 8, 4
masks = [torch.tensor([0., 1.]) if i % 2 == 0 else torch.tensor([1., 0.]) for i in range(L)]
def block():
    return [(0.3 * torch.randn(D, H)).requires_grad_(), torch.zeros(H, requires_grad=True),
            (0.3 * torch.randn(H, D)).requires_grad_(), torch.zeros(D, requires_grad=True)]
s_nets, t_nets = [block() for _ in range(L)], [block() for _ in range(L)]

def mlp(p, x, last):
    return last(torch.tanh(x @ p[0] + p[1]) @ p[2] + p[3])

def inverse(x):
    log_det_J, z = x.new_zeros(x.shape[0]), x
    for i in reversed(range(L)):
        z_ = masks[i] * z
        s = mlp(s_nets[i], z_, torch.tanh) * (1 - masks[i])
        t = mlp(t_nets[i], z_, lambda v: v) * (1 - masks[i])
        z = (1 - masks[i]) * (z - t) * torch.exp(-s) + z_
        log_det_J -= s.sum(dim=1)
    return z, log_det_J

theta = torch.rand(32) * math.pi
x = torch.stack([torch.cos(theta), torch.sin(theta)], 1) + 0.05 * torch.randn(32, 2)
params = [p for net in s_nets + t_nets for p in net]
for it in range(5):
    z, logp = inverse(x)
    prior = -0.5 * (z ** 2).sum(1) - math.log(2 * math.pi)
    loss = -(prior + logp).mean()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, g in zip(params, grads):
            p.sub_(0.05 * g)
    print(it, loss.item())
J = torch.func.vmap(torch.func.jacrev(lambda row: inverse(row[None])[0][0]))(x[:3])
check = torch.linalg.slogdet(J)[1]
