import torch
import torch.nn as nn
from torch.distributions import Normal, TransformedDistribution, SigmoidTransform, AffineTransform, MultivariateNormal
class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d // 2, 8), nn.ReLU(), nn.Linear(8, d))
        self.flip = flip
    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip: a, b = b, a
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], -1), s.sum(-1)
layers = nn.ModuleList([Coupling(2, i % 2 == 1) for i in range(4)])
opt = torch.optim.Adam(layers.parameters(), lr=1e-2)
prior = MultivariateNormal(torch.zeros(2), torch.eye(2))
for _ in range(4):
    x = torch.randn(32, 2) * torch.tensor([1.0, 0.3]) + torch.tensor([0.5, 0.0])
    logdet = torch.zeros(32)
    for l in layers:
        x, ld = l(x)
        logdet += ld
    loss = -(prior.log_prob(x) + logdet).mean()
    opt.zero_grad(); loss.backward(); opt.step()
base = Normal(torch.zeros(1), torch.ones(1))
logistic = TransformedDistribution(base, [SigmoidTransform().inv, AffineTransform(loc=torch.tensor([1.0]), scale=torch.tensor([2.0]))]) if False else TransformedDistribution(base, [AffineTransform(1.0, 2.0), SigmoidTransform()])
lp = logistic.log_prob(torch.tensor([0.3, 0.6]))
print(loss.item())
