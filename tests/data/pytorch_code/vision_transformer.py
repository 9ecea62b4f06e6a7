import torch
import torch.nn as nn
class PatchEmbed(nn.Module):
    def __init__(self, img=8, patch=4, c=3, dim=8):
        super().__init__()
        self.proj = nn.Conv2d(c, dim, kernel_size=patch, stride=patch)
    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)
class Attention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))
class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = PatchEmbed()
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.pos = nn.Parameter(torch.randn(1, 5, 8) * .02)
        nn.init.trunc_normal_(self.cls, std=.02)
        self.norm = nn.LayerNorm(8, eps=1e-6)
        self.attn = Attention(8)
        self.head = nn.Linear(8, 10)
    def forward(self, x):
        x = self.patch(x)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
        x = x + self.attn(self.norm(x))
        return self.head(x[:, 0])
m = ViT()
opt = torch.optim.AdamW([{"params": [p for n, p in m.named_parameters() if p.ndim > 1], "weight_decay": 0.05}, {"params": [p for n, p in m.named_parameters() if p.ndim <= 1], "weight_decay": 0.0}], lr=1e-3)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 3))
for _ in range(3):
    out = m(torch.randn(2, 3, 8, 8))
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(out, torch.tensor([1, 7]))
    opt.zero_grad(); loss.backward(); opt.step(); sched.step()
acc = (out.argmax(dim=1) == torch.tensor([1, 7])).float().mean().item()
print(loss.item(), sched.get_last_lr())
