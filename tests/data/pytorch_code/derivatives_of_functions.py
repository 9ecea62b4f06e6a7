import torch
from torch.autograd.functional import jacobian, hessian, hvp, vhp, jvp, vjp
def exp_adder(x, y):
    return 2 * x.exp() + 3 * y
inputs = (torch.rand(2, requires_grad=True), torch.rand(2, requires_grad=True))
J = jacobian(exp_adder, inputs)
def pow_reducer(x):
    return x.pow(3).sum()
H = hessian(pow_reducer, torch.rand(2, 2))
v = torch.ones(2, 2)
a = hvp(pow_reducer, torch.rand(2, 2), v)
b = vhp(pow_reducer, torch.rand(2, 2), v)
c = jvp(exp_adder, inputs, (torch.ones(2), torch.ones(2)), create_graph=True)
d = vjp(exp_adder, inputs, torch.ones(2))
e = hessian(lambda x, y: (x * y).sum() ** 2, inputs, create_graph=True, strict=False)
g = torch.autograd.gradcheck(lambda x: torch.tanh(x * x), torch.rand(3, dtype=torch.double, requires_grad=True))
gg = torch.autograd.gradgradcheck(lambda x: torch.tanh(x * x), torch.rand(3, dtype=torch.double, requires_grad=True))
