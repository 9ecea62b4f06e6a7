import torch

torch.manual_seed(5)
true_y0 = torch.tensor([[2., 0.]])
t = torch.linspace(0., 3., 16)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])

def odeint(func, y0, t):
    ys = [y0]
    for i in range(len(t) - 1):
        h, y = t[i + 1] - t[i], ys[-1]
        k1 = func(t[i], y)
        k2 = func(t[i] + h / 2, y + h / 2 * k1)
        k3 = func(t[i] + h / 2, y + h / 2 * k2)
        k4 = func(t[i + 1], y + h * k3)
        ys.append(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return torch.stack(ys)

with torch.no_grad():
    true_y = odeint(lambda t, y: torch.mm(y**3, true_A), true_y0, t)

W1 = torch.empty(2, 12).normal_(mean=0, std=0.1).requires_grad_()
W2 = torch.empty(12, 2).normal_(mean=0, std=0.1).requires_grad_()
b1, b2 = torch.zeros(12, requires_grad=True), torch.zeros(2, requires_grad=True)
for itr in range(1, 6):
    pred_y = odeint(lambda t, y: torch.tanh(y**3 @ W1 + b1) @ W2 + b2, true_y0, t)
    loss = torch.mean(torch.abs(pred_y - true_y))
    loss.backward()
    with torch.no_grad():
        for p in (W1, W2, b1, b2):
            p.add_(p.grad.sign(), alpha=-0.01)
            p.grad = None
    print('Iter {:04d} | Total Loss {:.6f}'.format(itr, loss.item()))
