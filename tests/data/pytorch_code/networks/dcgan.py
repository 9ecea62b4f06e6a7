import torch
import torch.nn as nn
def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)
netG = nn.Sequential(
    nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())
netD = nn.Sequential(
    nn.Conv2d(1, 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(4, 1, 4, 1, 0, bias=False), nn.Sigmoid())
netG.apply(weights_init); netD.apply(weights_init)
criterion = nn.BCELoss()
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
real = torch.randn(3, 1, 8, 8)
for _ in range(2):
    netD.zero_grad()
    label = torch.full((3,), 1., dtype=torch.get_default_dtype())
    out = netD(real).view(-1)
    errD_real = criterion(out, label)
    errD_real.backward()
    noise = torch.randn(3, 4, 1, 1)
    fake = netG(noise)
    label.fill_(0.)
    out = netD(fake.detach()).view(-1)
    errD_fake = criterion(out, label)
    errD_fake.backward()
    D_G_z1 = out.mean().item()
    optD.step()
    netG.zero_grad()
    label.fill_(1.)
    out = netD(fake).view(-1)
    errG = criterion(out, label)
    errG.backward()
    optG.step()
print(errD_real.item(), errD_fake.item(), errG.item())
