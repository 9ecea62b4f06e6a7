import torch
import torch.nn as nn
import torch.nn.functional as F
def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.InstanceNorm2d(o, affine=True), nn.PReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ELU())
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = double(1, 4), double(4, 8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.u1 = double(8, 4)
        self.out = nn.Conv2d(4, 1, 1)
        self.px = nn.PixelShuffle(2)
    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        u = self.up(b)
        dy, dx = a.size()[2] - u.size()[2], a.size()[3] - u.size()[3]
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2], mode="reflect" if dx else "constant")
        return self.out(self.u1(torch.cat([a, u], dim=1)))
net = UNet()
x = torch.randn(2, 1, 8, 8); y = (torch.rand(2, 1, 8, 8) > 0.5).to(x.dtype)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for _ in range(2):
    p = net(x)
    loss = F.binary_cross_entropy_with_logits(p, y)
    opt.zero_grad(); loss.backward(); opt.step()
iou = ((p > 0) & (y > 0.5)).sum().item() / ((p > 0) | (y > 0.5)).sum().item()
tv = (p[..., 1:] - p[..., :-1]).abs().mean()
print(loss.item(), iou)
