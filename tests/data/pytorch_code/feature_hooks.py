import torch
from torch import nn
feats = {}
def get(name):
    def hook(model, input, output):
        feats[name] = output.detach()
    return hook
net = nn.Sequential()
net.add_module("a", nn.Linear(3, 4)); net.add_module("b", nn.ReLU()); net.add_module("c", nn.Linear(4, 2))
h1 = net.a.register_forward_hook(get("a"))
h2 = net.c.register_full_backward_hook(lambda m, gi, go: feats.update(gi=gi[0].clone(), go=go[0].clone()))
h3 = net.b.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
out = net(torch.ones(2, 3))
out.sum().backward()
h1.remove(); h2.remove(); h3.remove()
a, gi, go = feats["a"], feats["gi"], feats["go"]
for p in net.parameters():
    p.register_hook(lambda g: g * 2)
net.zero_grad()
net(torch.ones(2, 3)).sum().backward()
norm = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2.0) for p in net.parameters()]), 2.0)
with torch.autograd.set_detect_anomaly(True):
    r = (net(torch.ones(1, 3)) ** 2).sum()
    r.backward()
total = torch.nn.utils.parameters_to_vector(net.parameters())
