import math
import torch
import torch.nn as nn
import torch.nn.functional as F
def cosine_beta_schedule(T, s=0.008):
    x = torch.linspace(0, T, T + 1)
    ac = torch.cos(((x / T) + s) / (1 + s) * math.pi * 0.5) ** 2
    ac = ac / ac[0]
    return torch.clip(1 - (ac[1:] / ac[:-1]), 0.0001, 0.9999)
T = 20
betas = cosine_beta_schedule(T)
alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
post = betas * (1. - prev) / (1. - alphas_cumprod)
def extract(a, t, x_shape):
    out = a.gather(-1, t.cpu())
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))
class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
    def forward(self, time):
        half = self.dim // 2
        e = torch.exp(torch.arange(half, device=time.device) * -(math.log(10000) / (half - 1)))
        e = time[:, None] * e[None, :]
        return torch.cat((e.sin(), e.cos()), dim=-1)
class Eps(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Sequential(SinusoidalPositionEmbeddings(8), nn.Linear(8, 8), nn.SiLU())
        self.a, self.b = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
        self.n = nn.GroupNorm(2, 8)
    def forward(self, x, t):
        h = self.a(x) + self.t(t)[:, :, None, None]
        return self.b(F.silu(self.n(h)))
net = Eps()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(2):
    x0 = torch.randn(4, 1, 6, 6)
    t = torch.randint(0, T, (4,)).long()
    noise = torch.randn_like(x0)
    xt = extract(alphas_cumprod.sqrt(), t, x0.shape) * x0 + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * noise
    loss = F.smooth_l1_loss(noise, net(xt, t))
    opt.zero_grad(); loss.backward(); opt.step()
up = F.interpolate(xt, scale_factor=2, mode="nearest"); bil = F.interpolate(xt, size=(9, 9), mode="bilinear", align_corners=False)
print(loss.item())
