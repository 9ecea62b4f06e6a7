import torch
from torch import vmap
torch.manual_seed(0)

def simple_mlp(params, x):
    w1, b1, w2, b2 = params
    x = x.flatten(1)
    x = torch.relu(x @ w1.t() + b1)
    return x @ w2.t() + b2

num_models = 4
data = torch.randn(6, 4, 1, 7, 7)
minibatches = data[:num_models]
models = [(torch.randn(12, 49), torch.randn(12), torch.randn(3, 12), torch.randn(3)) for _ in range(num_models)]

predictions_diff_minibatch_loop = [simple_mlp(model, minibatch) for model, minibatch in zip(models, minibatches)]
stacked = tuple(torch.stack(p) for p in zip(*models))
predictions1_vmap = vmap(simple_mlp)(stacked, minibatches)
assert torch.allclose(predictions1_vmap, torch.stack(predictions_diff_minibatch_loop), atol=1e-3, rtol=1e-5)

minibatch = data[0]
predictions2 = [simple_mlp(model, minibatch) for model in models]
predictions2_vmap = vmap(simple_mlp, in_dims=(0, None))(stacked, minibatch)
assert torch.allclose(predictions2_vmap, torch.stack(predictions2), atol=1e-3, rtol=1e-5)
