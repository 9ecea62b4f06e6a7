import torch
from torch import nn
from torch.func import functional_call, grad, vmap

net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1))
params = dict(net.named_parameters())
opt = torch.optim.Adam(params.values(), lr=1e-3)
alpha = 0.1
K = 5
num_tasks = 4


def mse_loss(x, y):
    return torch.mean((x - y) ** 2)


def get_loss_for_task(x1, y1, x2, y2):
    def inner_loss(params, x1, y1):
        f = functional_call(net, params, (x1,))
        loss = mse_loss(f, y1)
        return loss

    grads = grad(inner_loss)(params, x1, y1)
    new_params = {k: params[k] - alpha * grads[k] for k in params}

    v_f = functional_call(net, new_params, (x2,))
    return mse_loss(v_f, y2)


def sample_tasks():
    amplitude = torch.rand(num_tasks, 1, 1) * 4.9 + 0.1
    phase = torch.rand(num_tasks, 1, 1) * torch.pi
    x1, x2 = torch.rand(num_tasks, K, 1) * 10 - 5, torch.rand(num_tasks, K, 1) * 10 - 5
    return x1, amplitude * torch.sin(x1 + phase), x2, amplitude * torch.sin(x2 + phase)


losses = []
for it in range(4):
    opt.zero_grad()
    task = sample_tasks()
    inner_losses = vmap(get_loss_for_task)(*task)
    loss2 = sum(inner_losses) / len(inner_losses)
    loss2.backward()
    opt.step()
    losses.append(loss2.item())


# The same by hand, with parameters in a list.
def net_forward(x, params):
    x = nn.functional.relu(nn.functional.linear(x, params[0], params[1]))
    x = nn.functional.relu(nn.functional.linear(x, params[2], params[3]))
    return nn.functional.linear(x, params[4], params[5])


weights = list(net.parameters())
x1, y1, x2, y2 = (part[0] for part in sample_tasks())
fast = weights
for step in range(2):
    inner = mse_loss(net_forward(x1, fast), y1)
    grads = torch.autograd.grad(inner, fast, create_graph=True)
    fast = [w - alpha * g for w, g in zip(fast, grads)]
outer = mse_loss(net_forward(x2, fast), y2)
meta_grads = torch.autograd.grad(outer, weights)
