import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 2))
optimizer_dict = {p: torch.optim.Adam([p]) for p in model.parameters()}


def optimizer_hook(parameter) -> None:
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)
for step in range(3):
    loss = model(torch.rand(1, 4)).sum()
    loss.backward()
print([p.grad is None for p in model.parameters()])


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


linear = LinearFunction.apply
input = (torch.randn(4, 3, dtype=torch.double, requires_grad=True), torch.randn(2, 3, dtype=torch.double, requires_grad=True), torch.randn(2, dtype=torch.double, requires_grad=True))
print(torch.autograd.gradcheck(linear, input, eps=1e-6, atol=1e-4))
x = torch.randn(5, 3, requires_grad=True)
real_data, fake_data = torch.randn(4, 3), torch.randn(4, 3)
D = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
alpha = torch.rand(4, 1)
interp = (alpha * real_data + (1 - alpha) * fake_data).requires_grad_(True)
out = D(interp)
grads = torch.autograd.grad(outputs=out, inputs=interp, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True, only_inputs=True)[0]
gp = ((grads.view(4, -1).norm(2, dim=1) - 1) ** 2).mean()
gp.backward()
with torch.autograd.set_detect_anomaly(True):
    (x ** 2).sum().backward()
with torch.enable_grad():
    y = torch.nn.functional.softplus(x)
Z = torch.nn.utils.parameters_to_vector(D.parameters())
b = torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4))
emb = nn.Parameter(torch.zeros(3))
buf = nn.ParameterDict({"a": emb})
ident = nn.Identity()(x)
s = torch.split(x, [2, 3], dim=0), torch.unbind(x[:2]), torch.flip(x, [0])
