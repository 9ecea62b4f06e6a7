import torch
from torch.func import grad, vmap
torch.manual_seed(0)

# a model of functions and a dictionary of parameters, as in the tutorial on per-sample gradients
def model(params, x):
    x = torch.relu(x @ params["fc1.weight"].t() + params["fc1.bias"])
    return torch.log_softmax(x @ params["fc2.weight"].t() + params["fc2.bias"], dim=1)

num_models = 3
batch_size = 8
params = {
    "fc1.weight": torch.randn(10, 5), "fc1.bias": torch.randn(10),
    "fc2.weight": torch.randn(4, 10), "fc2.bias": torch.randn(4),
}
data = torch.randn(batch_size, 5)
targets = torch.randint(4, (batch_size,))

def loss_fn(predictions, targets):
    return -predictions.gather(1, targets.unsqueeze(1)).mean()

def compute_loss(params, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)

    predictions = model(params, batch)
    loss = loss_fn(predictions, targets)
    return loss

ft_compute_grad = grad(compute_loss)
ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, 0, 0))
ft_per_sample_grads = ft_compute_sample_grad(params, data, targets)

def compute_sample_grads(data, targets):
    """ manually process each sample with per sample gradient """
    leaves = {k: v.detach().clone().requires_grad_() for k, v in params.items()}
    sample_grads = [
        torch.autograd.grad(compute_loss(leaves, data[i], targets[i]), list(leaves.values()))
        for i in range(batch_size)
    ]
    sample_grads = zip(*sample_grads)
    sample_grads = [torch.stack(shards) for shards in sample_grads]
    return sample_grads

per_sample_grads = compute_sample_grads(data, targets)
for per_sample_grad, ft_per_sample_grad in zip(per_sample_grads, ft_per_sample_grads.values()):
    assert torch.allclose(per_sample_grad, ft_per_sample_grad, atol=3e-3, rtol=1e-5)
