import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()

        self.fc1 = nn.Linear(784, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


# Reconstruction + KL divergence losses summed over all elements and batch
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")

    # see Appendix B from VAE paper:
    # 0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())

    return BCE + KLD


data = torch.rand(8, 1, 28, 28)
model.train()
train_loss = 0
for batch_idx in range(3):
    optimizer.zero_grad()
    recon_batch, mu, logvar = model(data)
    loss = loss_function(recon_batch, data, mu, logvar)
    loss.backward()
    train_loss += loss.item()
    optimizer.step()

model.eval()
with torch.no_grad():
    sample = torch.randn(4, 5)
    sample = model.decode(sample).cpu().view(4, 1, 28, 28)

# The same divergence by distributions.
mu, logvar = model.encode(data.view(-1, 784))
q = torch.distributions.Normal(mu, (0.5 * logvar).exp())
p = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
kld = torch.distributions.kl_divergence(q, p).sum()
z = q.rsample()
elbo = (p.log_prob(z) - q.log_prob(z)).sum(-1).mean()
elbo.backward()
