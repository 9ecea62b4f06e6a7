import copy
import torch
import torch.nn as nn
from torch.func import stack_module_state, functional_call, vmap, grad, jacrev, hessian, jvp, vjp
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 4); self.fc2 = nn.Linear(4, 3)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))
models = [M() for _ in range(3)]
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0])
base_model = base_model.to("meta")
def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))
minibatch = torch.randn(2, 5)
preds = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, minibatch)
print(tuple(preds.shape))
model = M()
p = {k: v.detach() for k, v in model.named_parameters()}
b = {k: v.detach() for k, v in model.named_buffers()}
def compute_loss(params, buffers, sample, target):
    out = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return nn.functional.cross_entropy(out, target.unsqueeze(0))
ft = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
per_sample = ft(p, b, torch.randn(4, 5), torch.tensor([0, 1, 2, 1]))
print({k: tuple(v.shape) for k, v in per_sample.items()})
f = lambda x: torch.sin(x).sum() * x
x = torch.randn(3)
J = jacrev(f)(x)
H = hessian(lambda x: (x ** 3).sum())(x)
value, tangent = jvp(f, (x,), (torch.ones(3),))
out, pull = vjp(f, x)
(cot,) = pull(torch.ones(3))
