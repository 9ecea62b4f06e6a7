import numpy as np
import torch
import torch.nn as nn


class PINN(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.activation = nn.Tanh()
        self.linears = nn.ModuleList([nn.Linear(layers[i], layers[i + 1]) for i in range(len(layers) - 1)])
        for linear in self.linears:
            nn.init.xavier_normal_(linear.weight.data, gain=1.0)
            nn.init.zeros_(linear.bias.data)

    def forward(self, x, t):
        a = torch.cat([x, t], dim=1)
        for linear in self.linears[:-1]:
            a = self.activation(linear(a))
        return self.linears[-1](a)


def pde_residual(model, x, t, nu):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
    return u_t + u * u_x - nu * u_xx


model = PINN([2, 16, 16, 1])
nu = 0.01 / np.pi
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
mse = nn.MSELoss()

x_f = torch.rand(30, 1) * 2 - 1
t_f = torch.rand(30, 1)
x_0 = torch.linspace(-1, 1, 20).view(-1, 1)
t_0 = torch.zeros_like(x_0)
u_0 = -torch.sin(np.pi * x_0)
t_b = torch.rand(10, 1)
x_left, x_right = -torch.ones_like(t_b), torch.ones_like(t_b)

history = []
for epoch in range(12):
    optimizer.zero_grad()
    residual = pde_residual(model, x_f, t_f, nu)
    loss_f = mse(residual, torch.zeros_like(residual))
    loss_0 = mse(model(x_0, t_0), u_0)
    loss_b = torch.mean(model(x_left, t_b) ** 2) + torch.mean(model(x_right, t_b) ** 2)
    loss = loss_f + loss_0 + loss_b
    loss.backward()
    optimizer.step()
    scheduler.step()
    history.append(loss.item())
print(history[-1], scheduler.get_last_lr())
prediction = model(x_0, t_0 + 0.5).detach().cpu().numpy()
