import torch
import torch.nn as nn
from torch import distributions as D
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super(MDN, self).__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        return D.MixtureSameFamily(
            D.Categorical(logits=self.z_pi(z_h)), D.Normal(self.z_mu(z_h), torch.exp(self.z_sigma(z_h)))
        )


network = MDN(n_hidden=8, n_gaussians=3)
optimizer = torch.optim.Adam([
    {"params": network.z_h.parameters()},
    {"params": [*network.z_pi.parameters(), *network.z_mu.parameters()], "lr": 0.02},
    {"params": network.z_sigma.parameters(), "weight_decay": 0.01},
], lr=0.01)
scheduler = CosineAnnealingLR(optimizer, T_max=10)
plateau = ReduceLROnPlateau(optimizer, "min", patience=1, factor=0.5)
x = torch.linspace(-3, 3, 40).unsqueeze(1)
y = torch.sin(x).squeeze() + 0.1 * torch.randn(40)
losses, rates = [], []
for epoch in range(5):
    loss = -network(x).log_prob(y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    plateau.step(loss.item())
    losses.append(loss.item())
    rates.append(optimizer.param_groups[1]["lr"])
mean, variance = network(x).mean, network(x).variance

# A mixture in two dimensions by gradient descent.
logits = torch.zeros(3, requires_grad=True)
loc = torch.randn(3, 2, requires_grad=True)
scale = torch.ones(3, 2, requires_grad=True)
points = torch.randn(30, 2)
optim2 = torch.optim.SGD([logits, loc, scale], 0.05)
for i in range(4):
    mix = D.Categorical(torch.softmax(logits, 0))
    comp = D.Independent(D.Normal(loc, scale), 1)
    gmm = D.MixtureSameFamily(mix, comp)
    optim2.zero_grad()
    loss2 = -gmm.log_prob(points).mean()
    loss2.backward()
    optim2.step()
