import torch
import torch.nn as nn


class FCN(nn.Module):
    "Defines a standard fully-connected network in PyTorch"

    def __init__(self, N_INPUT, N_OUTPUT, N_HIDDEN, N_LAYERS):
        super().__init__()
        activation = nn.Tanh
        self.fcs = nn.Sequential(*[nn.Linear(N_INPUT, N_HIDDEN), activation()])
        self.fch = nn.Sequential(
            *[nn.Sequential(*[nn.Linear(N_HIDDEN, N_HIDDEN), activation()]) for _ in range(N_LAYERS - 1)]
        )
        self.fce = nn.Linear(N_HIDDEN, N_OUTPUT)

    def forward(self, x):
        x = self.fcs(x)
        x = self.fch(x)
        x = self.fce(x)
        return x


torch.manual_seed(123)
pinn = FCN(1, 1, 8, 2)
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)  # (1, 1)
t_physics = torch.linspace(0, 1, 30).view(-1, 1).requires_grad_(True)  # (30, 1)
d, w0 = 2, 20
mu, k = 2 * d, w0**2
optimiser = torch.optim.LBFGS(pinn.parameters(), lr=0.1, max_iter=4, line_search_fn="strong_wolfe")
lambda1, lambda2 = 1e-1, 1e-4


def closure():
    optimiser.zero_grad()

    # compute boundary loss
    u = pinn(t_boundary)  # (1, 1)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2

    # compute physics loss
    u = pinn(t_physics)  # (30,1)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + k * u) ** 2)

    loss = loss1 + lambda1 * loss2 + lambda2 * loss3
    loss.backward()
    return loss


losses = [optimiser.step(closure).item() for i in range(4)]
