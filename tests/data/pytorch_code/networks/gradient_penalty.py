import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.autograd import Variable

critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(True), nn.Linear(16, 2))
optimizer_D = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
Tensor = torch.DoubleTensor
lambda_gp = 10


def compute_gradient_penalty(D, real_samples, fake_samples):
    """Calculates the gradient penalty loss for WGAN GP"""
    # Random weight term for interpolation between real and fake samples
    alpha = torch.rand(real_samples.size(0), 1)
    # Get random interpolation between real and fake samples
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = Variable(Tensor(real_samples.shape[0], 1).fill_(1.0), requires_grad=False)
    # Get gradient w.r.t. interpolates
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    gradient_penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    return gradient_penalty


penalties = []
for i in range(3):
    real = torch.randn(8, 2)
    z = torch.randn(8, 3)
    optimizer_D.zero_grad()
    fake_data = generator(z)
    gradient_penalty = compute_gradient_penalty(critic, real.data, fake_data.data)
    d_loss = -torch.mean(critic(real)) + torch.mean(critic(fake_data)) + lambda_gp * gradient_penalty
    d_loss.backward()
    optimizer_D.step()
    penalties.append(gradient_penalty.item())

    optimizer_G.zero_grad()
    g_loss = -torch.mean(critic(generator(z)))
    g_loss.backward()
    optimizer_G.step()
