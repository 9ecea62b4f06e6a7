import torch
from torch import nn
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-2)
def forward(params, x):
    w1, b1, w2, b2 = params
    return torch.tanh(x @ w1.t() + b1) @ w2.t() + b2
for it in range(3):
    meta.zero_grad()
    total = 0.0
    for task in range(3):
        amp, phase = torch.rand(1) * 4 + 0.1, torch.rand(1) * 3
        xs, xq = torch.rand(5, 1) * 10 - 5, torch.rand(5, 1) * 10 - 5
        ys, yq = amp * torch.sin(xs + phase), amp * torch.sin(xq + phase)
        params = list(net.parameters())
        for _ in range(2):
            loss = nn.functional.mse_loss(forward(params, xs), ys)
            grads = torch.autograd.grad(loss, params, create_graph=True)
            params = [p - 0.01 * g for p, g in zip(params, grads)]
        total = total + nn.functional.mse_loss(forward(params, xq), yq)
    total.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    meta.step()
print(total.item())
