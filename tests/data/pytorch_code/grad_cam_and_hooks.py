import io

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class GradCAM:
    def __init__(self, model, layer):
        self.model = model
        self.h1 = layer.register_forward_hook(self.save_activation)
        self.h2 = layer.register_full_backward_hook(self.save_gradient)

    def save_activation(self, module, input, output):
        self.activations = output

    def save_gradient(self, module, grad_input, grad_output):
        self.gradients = grad_output[0]

    def __call__(self, x, class_idx=None):
        logit = self.model(x)
        if class_idx is None:
            score = logit[:, logit.max(1)[-1]].squeeze()
        else:
            score = logit[:, class_idx].squeeze()
        self.model.zero_grad()
        score.backward(retain_graph=True)
        b, k, u, v = self.gradients.size()
        alpha = self.gradients.view(b, k, -1).mean(2)
        weights = alpha.view(b, k, 1, 1)
        saliency_map = (weights * self.activations).sum(1, keepdim=True)
        saliency_map = torch.relu(saliency_map)
        saliency_map = nn.functional.interpolate(saliency_map, size=(8, 8), mode="bilinear", align_corners=False)
        mn, mx = saliency_map.min(), saliency_map.max()
        return (saliency_map - mn).div(mx - mn).data, logit


net = nn.Sequential(
    nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
)
cam = GradCAM(net, net[2])
m, logit = cam(torch.randn(1, 1, 8, 8))


def modify_grad(grad):
    return grad.clamp(-0.1, 0.1)


w = torch.randn(3, requires_grad=True)
h = w.register_hook(modify_grad)
(w * torch.tensor([1.0, 0.05, -2.0])).sum().backward()
g1 = w.grad.clone()
h.remove()
mlp = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)])
xi = torch.randn(2, 4, requires_grad=True)
o1 = checkpoint_sequential(mlp, 2, xi, use_reentrant=False)
o1.sum().backward()
gx = xi.grad.clone()
o2 = checkpoint(mlp[0], xi, use_reentrant=False)
o3 = checkpoint(lambda a, b: a * b, xi, 2 * xi, use_reentrant=True, preserve_rng_state=False)


class SelfDeletingTempFile:
    def __init__(self):
        self.t = None


packed = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(t.shape), t.detach())[1], lambda t: t):
    l = (mlp(xi) ** 2).sum()
l.backward()
n_packed = len(packed) > 0
with torch.autograd.graph.save_on_cpu():
    (xi.exp() * 2).sum().backward()
with torch.autograd.graph.disable_saved_tensors_hooks("no"):
    pass
buf = io.BytesIO()
torch.save({"epoch": 3, "model_state_dict": net.state_dict(), "loss": 0.5}, buf)
buf.seek(0)
ck = torch.load(buf, weights_only=True, map_location="cpu")
net2 = nn.Sequential(
    *[
        type(m)(*([1, 3, 3] if i == 0 else [3, 4, 3] if i == 2 else [1] if i == 4 else [4, 3] if i == 6 else []))
        for i, m in enumerate(net)
    ]
)
print(net2.load_state_dict(ck["model_state_dict"]))
r = net2.load_state_dict({k: v for k, v in ck["model_state_dict"].items() if "6" not in k}, strict=False)
print(r.missing_keys, r.unexpected_keys)
r
print(r)
pre = []
hh = net.register_forward_pre_hook(lambda m, i: pre.append(i[0].shape))
net(torch.zeros(1, 1, 8, 8))
hh.remove()


def hook_kw(m, args, kwargs):
    kwargs["b"] = 3
    return args, kwargs


class K(nn.Module):
    def forward(self, a, b=1):
        return a * b


kk = K()
kk.register_forward_pre_hook(hook_kw, with_kwargs=True)
ko = kk(torch.ones(2))
kk.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
ko2 = kk(torch.ones(2))
lin = nn.Linear(2, 2)
lin.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
lin(torch.ones(1, 2)).sum().backward()
gl = lin.weight.grad
p = lin.weight
p.register_post_accumulate_grad_hook(lambda p: p.data.sub_(p.grad))
