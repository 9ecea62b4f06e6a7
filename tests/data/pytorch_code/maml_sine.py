# meta-learning by gradients of gradients: MAML for sines, with a network of functions
import math
import torch
from torch.func import grad, vmap

torch.manual_seed(0)

def net(x, params):
    x = torch.relu(x @ params[0] + params[1])
    x = torch.relu(x @ params[2] + params[3])
    return x @ params[4] + params[5]

params = [
    torch.empty(1, 10).uniform_(-1., 1.).requires_grad_(),
    torch.empty(10).zero_().requires_grad_(),
    torch.empty(10, 10).uniform_(-1. / math.sqrt(10), 1. / math.sqrt(10)).requires_grad_(),
    torch.empty(10).zero_().requires_grad_(),
    torch.empty(10, 1).uniform_(-1. / math.sqrt(10), 1. / math.sqrt(10)).requires_grad_(),
    torch.empty(1).zero_().requires_grad_(),
]
K, num_tasks, alpha = 6, 4, 0.1

def sample_tasks(outer_batch_size, inner_batch_size):
    # Select amplitude and phase for the task
    As = []
    phases = []
    for _ in range(outer_batch_size):
        As.append(torch.rand(()) * 4.9 + 0.1)
        phases.append(torch.rand(()) * math.pi)

    def get_batch():
        xs, ys = [], []
        for A, phase in zip(As, phases):
            x = torch.rand(inner_batch_size, 1) * 10 - 5
            y = A * torch.sin(x + phase)
            xs.append(x)
            ys.append(y)
        return torch.stack(xs), torch.stack(ys)

    x1, y1 = get_batch()
    x2, y2 = get_batch()
    return x1, y1, x2, y2

def get_loss_for_task(x1, y1, x2, y2):
    def inner_loss(params, x1, y1):
        f = net(x1, params)
        loss = ((f - y1) ** 2).mean()
        return loss

    grads = grad(inner_loss)(tuple(params), x1, y1)
    new_params = [(params[i] - alpha * grads[i]) for i in range(len(params))]

    v_f = net(x2, new_params)
    return ((v_f - y2) ** 2).mean()

losses = []
for it in range(3):
    task = sample_tasks(num_tasks, K)
    inner_losses = vmap(get_loss_for_task)(task[0], task[1], task[2], task[3])
    loss2 = sum(inner_losses) / len(inner_losses)
    loss2.backward()
    with torch.no_grad():
        for p in params:
            p -= 0.01 * p.grad
            p.grad.zero_()
    losses.append(loss2.item())
print(losses)
