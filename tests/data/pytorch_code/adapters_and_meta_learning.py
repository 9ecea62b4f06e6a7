from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(base.weight.new_zeros((r, base.in_features)))
        self.lora_B = nn.Parameter(base.weight.new_zeros((base.out_features, r)))
        self.scaling = alpha / r
        nn.init.kaiming_uniform_(self.lora_A, a=5**0.5)

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling


net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
for name, module in list(net.named_children()):
    if isinstance(module, nn.Linear):
        setattr(net, name, LoRALinear(module))
trainable = [n for n, p in net.named_parameters() if p.requires_grad]
print(trainable)
opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
x, y = torch.randn(16, 4), torch.randint(3, (16,))
for _ in range(3):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
delta = net[0].lora_B @ net[0].lora_A


class EWC:
    def __init__(self, model, data):
        self.params = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._means = {n: p.clone().detach() for n, p in self.params.items()}
        self._fisher = {n: torch.zeros_like(p) for n, p in self.params.items()}
        model.eval()
        for inp, lab in data:
            model.zero_grad()
            output = model(inp.unsqueeze(0))
            F.nll_loss(F.log_softmax(output, dim=1), lab.unsqueeze(0)).backward()
            for n, p in model.named_parameters():
                if p.grad is not None:
                    self._fisher[n].data += p.grad.data**2 / len(data)

    def penalty(self, model):
        loss = 0
        for n, p in self.params.items():
            loss += (self._fisher[n] * (p - self._means[n]) ** 2).sum()
        return loss


m2 = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
ewc = EWC(m2, list(zip(x, y)))
with torch.no_grad():
    for p in m2.parameters():
        p.add_(torch.randn_like(p) * 0.1)
pen = ewc.penalty(m2)
pen.backward()


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow, self.backup = model, decay, {}, {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                self.shadow[name] = ((1.0 - self.decay) * param.data + self.decay * self.shadow[name]).clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]


ema = EMA(m2, 0.9)
m2[0].weight.data.mul_(2)
ema.update()
ema.apply_shadow()
shadowed = m2(x).detach()
ema.restore()
restored = m2(x).detach()


def mixup_data(x, y, lam):
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index, :], y, y[index]


mx, ya, yb = mixup_data(x, y, 0.3)
ml = 0.3 * F.cross_entropy(m2(mx), ya) + 0.7 * F.cross_entropy(m2(mx), yb)


# reptile / first-order MAML with higher-order gradients
def net_f(p, x):
    return torch.tanh(x @ p["w1"] + p["b1"]) @ p["w2"]


P = OrderedDict(w1=torch.randn(1, 6), b1=torch.zeros(6), w2=torch.randn(6, 1) / 6)
P = {k: v.requires_grad_() for k, v in P.items()}
mo = torch.optim.SGD(P.values(), lr=0.01)
for it in range(2):
    mo.zero_grad()
    tot = 0.0
    for task in range(3):
        a, ph = torch.rand(1) * 4.9 + 0.1, torch.rand(1) * torch.pi
        xs, xq = torch.rand(5, 1) * 10 - 5, torch.rand(5, 1) * 10 - 5
        fast = P
        for _ in range(2):
            l = F.mse_loss(net_f(fast, xs), a * torch.sin(xs + ph))
            gs = torch.autograd.grad(l, fast.values(), create_graph=True)
            fast = {k: v - 0.05 * g for (k, v), g in zip(fast.items(), gs)}
        tot = tot + F.mse_loss(net_f(fast, xq), a * torch.sin(xq + ph))
    tot.backward()
    torch.nn.utils.clip_grad_norm_(P.values(), 10.0, error_if_nonfinite=True)
    mo.step()
w1 = P["w1"]


# influence: inverse-hvp by conjugate gradient
def hvp(loss, params, v):
    g = torch.autograd.grad(loss, params, create_graph=True)
    flat = torch.cat([t.reshape(-1) for t in g])
    return torch.cat([t.contiguous().view(-1) for t in torch.autograd.grad(flat @ v, params, retain_graph=True)])


mm = nn.Linear(4, 3)
l = F.cross_entropy(mm(x), y) + 0.1 * sum(p.pow(2.0).sum() for p in mm.parameters())
v = torch.randn(15)
r_ = v.clone()
xk = torch.zeros(15)
pk = r_.clone()
for _ in range(10):
    Ap = hvp(l, list(mm.parameters()), pk)
    al = r_.dot(r_) / pk.dot(Ap)
    xk += al * pk
    rn = r_ - al * Ap
    pk = rn + rn.dot(rn) / r_.dot(r_) * pk
    r_ = rn
res = r_.norm().item() < 1e-3
