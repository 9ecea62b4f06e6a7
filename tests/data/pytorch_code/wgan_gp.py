import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.autograd import Variable

Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.Tensor
G = nn.Sequential(
    nn.Linear(4, 16),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(16, 8),
    nn.BatchNorm1d(8, 0.8),
    nn.Linear(8, 2),
    nn.Tanh(),
)
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
opt_G = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_D = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
rng = np.random.RandomState(3)


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = Tensor(rng.random_sample((real_samples.size(0), 1)))
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = Variable(Tensor(real_samples.shape[0], 1).fill_(1.0), requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


for i in range(3):
    real = Variable(Tensor(rng.randn(8, 2)).type(Tensor))
    opt_D.zero_grad()
    z = Variable(Tensor(rng.normal(0, 1, (8, 4))))
    fake_imgs = G(z)
    gp = compute_gradient_penalty(D, real.data, fake_imgs.data)
    d_loss = -torch.mean(D(real)) + torch.mean(D(fake_imgs)) + 10 * gp
    d_loss.backward()
    opt_D.step()
    opt_G.zero_grad()
    g_loss = -torch.mean(D(G(z)))
    g_loss.backward()
    opt_G.step()
    for p in D.parameters():
        p.data.clamp_(-0.5, 0.5)
    print("[D loss: %f] [G loss: %f]" % (d_loss.item(), g_loss.item()))
