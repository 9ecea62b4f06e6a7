import operator
from functools import reduce

import torch
import torch.nn as nn
import torch.nn.functional as F


class SpectralConv2d(nn.Module):
    def __init__(self, in_channels, out_channels, modes1, modes2):
        super(SpectralConv2d, self).__init__()
        self.in_channels, self.out_channels, self.modes1, self.modes2 = in_channels, out_channels, modes1, modes2
        self.scale = 1 / (in_channels * out_channels)
        self.weights1 = nn.Parameter(
            self.scale * torch.rand(in_channels, out_channels, self.modes1, self.modes2, dtype=torch.cdouble)
        )
        self.weights2 = nn.Parameter(
            self.scale * torch.rand(in_channels, out_channels, self.modes1, self.modes2, dtype=torch.cdouble)
        )

    def compl_mul2d(self, input, weights):
        return torch.einsum("bixy,ioxy->boxy", input, weights)

    def forward(self, x):
        batchsize = x.shape[0]
        x_ft = torch.fft.rfft2(x)
        out_ft = torch.zeros(
            batchsize, self.out_channels, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cdouble, device=x.device
        )
        out_ft[:, :, : self.modes1, : self.modes2] = self.compl_mul2d(
            x_ft[:, :, : self.modes1, : self.modes2], self.weights1
        )
        out_ft[:, :, -self.modes1 :, : self.modes2] = self.compl_mul2d(
            x_ft[:, :, -self.modes1 :, : self.modes2], self.weights2
        )
        x = torch.fft.irfft2(out_ft, s=(x.size(-2), x.size(-1)))
        return x


class SpectralConv1d(nn.Module):
    def __init__(self, i, o, m):
        super().__init__()
        self.m, self.o = m, o
        self.w = nn.Parameter(torch.randn(i, o, m, 2) / (i * o))

    def forward(self, x):
        x_ft = torch.fft.rfft(x, norm="ortho")
        out = torch.zeros(x.shape[0], self.o, x.size(-1) // 2 + 1, device=x.device, dtype=torch.complex128)
        out[:, :, : self.m] = torch.einsum("bix,iox->box", x_ft[:, :, : self.m], torch.view_as_complex(self.w))
        return torch.fft.irfft(out, n=x.size(-1), norm="ortho")


class LpLoss(object):
    def __init__(self, d=2, p=2, size_average=True, reduction=True):
        self.d, self.p, self.reduction, self.size_average = d, p, reduction, size_average

    def rel(self, x, y):
        num_examples = x.size()[0]
        diff_norms = torch.norm(x.reshape(num_examples, -1) - y.reshape(num_examples, -1), self.p, 1)
        y_norms = torch.norm(y.reshape(num_examples, -1), self.p, 1)
        return torch.mean(diff_norms / y_norms)

    def __call__(self, x, y):
        return self.rel(x, y)


class FNO(nn.Module):
    def __init__(self):
        super().__init__()
        self.padding = 2
        self.p = nn.Linear(3, 4)
        self.conv0 = SpectralConv2d(4, 4, 3, 3)
        self.w0 = nn.Conv2d(4, 4, 1)
        self.norm = nn.InstanceNorm2d(4)
        self.q = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        grid = self.get_grid(x.shape, x.device)
        x = torch.cat((x, grid), dim=-1)
        x = self.p(x)
        x = x.permute(0, 3, 1, 2)
        x = F.pad(x, [0, self.padding, 0, self.padding])
        x = F.gelu(self.norm(self.conv0(self.norm(x))) + self.w0(x))
        x = x[..., : -self.padding, : -self.padding]
        return self.q(x).permute(0, 2, 3, 1)

    def get_grid(self, shape, device):
        batchsize, size_x, size_y = shape[0], shape[1], shape[2]
        gridx = torch.linspace(0, 1, size_x, dtype=torch.float64)
        gridx = gridx.reshape(1, size_x, 1, 1).repeat([batchsize, 1, size_y, 1])
        gridy = torch.tensor([i / (size_y - 1) for i in range(size_y)], dtype=torch.double)
        gridy = gridy.reshape(1, 1, size_y, 1).repeat([batchsize, size_x, 1, 1])
        return torch.cat((gridx, gridy), dim=-1).to(device)


def count_params(model):
    c = 0
    for p in list(model.parameters()):
        c += reduce(operator.mul, list(p.size() + (2,) if p.is_complex() else p.size()))
    return c


model = FNO()
print(count_params(model))
opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
x, y = torch.randn(2, 8, 8, 1), torch.randn(2, 8, 8, 1)
loss_f = LpLoss()
ls = []
for _ in range(3):
    opt.zero_grad()
    loss = loss_f(model(x), y)
    loss.backward()
    opt.step()
    ls.append(loss.item())
m1 = SpectralConv1d(2, 3, 4)
o1 = m1(torch.randn(2, 2, 16))
o1.pow(2).sum().backward()
g1 = m1.w.grad
# spectra
u = torch.randn(8, 8)
k = torch.fft.fftfreq(8, 1 / 8)
kx, ky = torch.meshgrid(k, k, indexing="ij")
lap = torch.fft.ifft2(-(kx**2 + ky**2) * torch.fft.fft2(u)).real
sh = torch.fft.fftshift(torch.fft.fftn(u, dim=(0, 1), norm="forward")).abs()
xc = torch.fft.ifft(torch.fft.fft(u[0]) * torch.conj(torch.fft.fft(u[1]))).real
