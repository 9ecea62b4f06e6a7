import torch
from torch import nn
from torch.distributions import Normal, kl_divergence, Independent, Bernoulli, Categorical, MultivariateNormal

enc = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
dec = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = (torch.rand(16, 6) > 0.5).double()
x = x.to(torch.get_default_dtype())
for _ in range(5):
    mu, logvar = enc(x).chunk(2, dim=-1)
    q = Independent(Normal(mu, torch.exp(0.5 * logvar)), 1)
    p = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
    z = q.rsample()
    lik = Independent(Bernoulli(logits=dec(z)), 1).log_prob(x)
    elbo = (lik - kl_divergence(q, p)).mean()
    opt.zero_grad()
    (-elbo).backward()
    opt.step()
print(elbo.item())
cat = Categorical(logits=torch.tensor([1.0, 2.0, 0.5]))
ent = cat.entropy()
lp = cat.log_prob(torch.tensor(1))
mvn = MultivariateNormal(torch.zeros(2), covariance_matrix=torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
mlp = mvn.log_prob(torch.tensor([0.3, -0.2]))
