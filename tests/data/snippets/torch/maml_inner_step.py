import torch

def loss_fn(params, x, y):
    return ((x @ params - y) ** 2).mean()

inner = loss_fn(theta, x_s, y_s)
grad = torch.autograd.grad(inner, theta, create_graph=True)[0]
fast = theta - inner_lr * grad
loss_fn(fast, x_q, y_q)
