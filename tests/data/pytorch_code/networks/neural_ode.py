import torch
import torch.nn as nn


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()

        self.net = nn.Sequential(
            nn.Linear(2, 10),
            nn.Tanh(),
            nn.Linear(10, 2),
        )

        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(func, y0, t):
    solution = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        solution.append(rk4_step(func, t0, t1 - t0, solution[-1]))
    return torch.stack(solution)


true_y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0.0, 2.0, 9)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t)

func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
losses = []
for itr in range(3):
    optimizer.zero_grad()
    pred_y = odeint(func, true_y0, t)
    loss = torch.mean(torch.abs(pred_y - true_y))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
