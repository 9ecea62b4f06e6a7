import io
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
x = torch.randn(3, 4, requires_grad=True)
y = checkpoint(model, x, use_reentrant=False).pow(2).sum()
y.backward()
g = x.grad.clone()
x.grad = None
checkpoint_sequential(model, 2, x, use_reentrant=False).pow(2).sum().backward()
print(torch.allclose(g, x.grad))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)

    def forward(self, x, scale=1.0):
        return x + scale * torch.tanh(self.lin(x))


blocks = nn.ModuleList([Block(4) for _ in range(3)])
h = x
for block in blocks:
    h = checkpoint(block, h, scale=0.5, use_reentrant=False)
h.sum().backward()
b = blocks[0].lin.weight.grad
buffer = io.BytesIO()
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
opt.step()
torch.save({"epoch": 3, "model_state_dict": model.state_dict(), "optimizer_state_dict": opt.state_dict(), "loss": y}, buffer)
buffer.seek(0)
loaded = torch.load(buffer, weights_only=False)
other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
print(other.load_state_dict(loaded["model_state_dict"]))
opt2 = torch.optim.AdamW(other.parameters(), lr=1e-1)
opt2.load_state_dict(loaded["optimizer_state_dict"])
print(opt2.param_groups[0]["lr"], loaded["epoch"])
same = torch.equal(other(x), model(x))
print(same)
for param_tensor in model.state_dict():
    print(param_tensor, "\t", model.state_dict()[param_tensor].size())
for var_name in opt.state_dict():
    print(var_name)
