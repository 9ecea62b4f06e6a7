import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, hessian, jacrev, stack_module_state, vmap


class SimpleMLP(nn.Module):
    def __init__(self):
        super(SimpleMLP, self).__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = x.flatten(1)
        x = self.fc1(x)
        x = F.relu(x)
        return self.fc2(x)


data = torch.randn(12, 1, 4, 5)
targets = torch.randint(10, (12,))

# per-sample gradients
model = SimpleMLP()
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)

    predictions = functional_call(model, (params, buffers), (batch,))
    loss = F.cross_entropy(predictions, targets)
    return loss


ft_compute_grad = grad(compute_loss)
ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
ft_per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
per_sample = list(ft_per_sample_grads.values())

# ensembles
num_models = 3
models = [SimpleMLP() for _ in range(num_models)]
stacked_params, stacked_buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0])


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


predictions1_vmap = vmap(fmodel, in_dims=(0, 0, None))(stacked_params, stacked_buffers, data)
predictions = [m(data) for m in models]
assert torch.allclose(predictions1_vmap, torch.stack(predictions), atol=1e-3, rtol=1e-5)

# neural tangent kernel
fnet_params = dict(model.named_parameters())


def fnet_single(params, x):
    return functional_call(model, params, (x.unsqueeze(0),)).squeeze(0)


def empirical_ntk_jacobian_contraction(fnet_single, params, x1, x2):
    jac1 = vmap(jacrev(fnet_single), (None, 0))(params, x1)
    jac1 = jac1.values()
    jac1 = [j.flatten(2) for j in jac1]
    jac2 = vmap(jacrev(fnet_single), (None, 0))(params, x2)
    jac2 = jac2.values()
    jac2 = [j.flatten(2) for j in jac2]
    result = torch.stack([torch.einsum("Naf,Mbf->NMab", j1, j2) for j1, j2 in zip(jac1, jac2)])
    result = result.sum(0)
    return result


ntk = empirical_ntk_jacobian_contraction(fnet_single, params, data[:3], data[3:5])


# jacobians and hessians
def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


D = 4
weight, bias, x = torch.randn(D, D), torch.randn(D), torch.randn(D)
ft_jacobian, ft_bias_jacobian = jacrev(predict, argnums=(0, 1))(weight, bias, x)
hess = hessian(predict, argnums=2)(weight, bias, x)
