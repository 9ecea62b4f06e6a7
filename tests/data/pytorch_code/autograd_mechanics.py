# from the notes on autograd mechanics and the reference of torch.autograd
import torch

x = torch.tensor([[1., -1.], [1., 1.]], requires_grad=True)
out = x.pow(2).sum()
out.backward()
print(x.grad)

@torch.no_grad()
def doubler(x):
    return x * 2
z = doubler(x)
print(z.requires_grad)

@torch.enable_grad
def tripler(x):
    return x * 3
with torch.no_grad():
    z = tripler(x)
print(z.requires_grad)

is_train = False
with torch.set_grad_enabled(is_train):
    y = x * 2
print(y.requires_grad)
_ = torch.set_grad_enabled(True)
y = x * 2
print(y.requires_grad)

x = torch.ones(1, 2, 3, requires_grad=True)
with torch.inference_mode():
    y = x * x
print(y.requires_grad)

a = torch.tensor(1., requires_grad=True)
b = torch.tensor(2., requires_grad=True)
def fn(a, b):
    return a.exp() * b
grads = torch.autograd.grad(fn(a, b), (a, b), create_graph=True)
second = torch.autograd.grad(grads[0] + grads[1], (a, b))

def pow_reducer(x):
    return x.pow(3).sum()
inputs = torch.rand(2, 2)
h = torch.autograd.functional.hessian(pow_reducer, inputs)

def pow_adder_reducer(x, y):
    return (2 * x.pow(2) + 3 * y.pow(2)).sum()
inputs = (torch.rand(2), torch.rand(2))
h2 = torch.autograd.functional.hessian(pow_adder_reducer, inputs)
v = torch.ones(2, 2)
hv = torch.autograd.functional.hvp(pow_reducer, torch.rand(2, 2), v)
vh = torch.autograd.functional.vhp(pow_reducer, torch.rand(2, 2), v)
def exp_reducer(x):
    return x.exp().sum(dim=1)
inputs = torch.rand(4, 4)
v = torch.ones(4)
vjp = torch.autograd.functional.vjp(exp_reducer, inputs, v)
jvp = torch.autograd.functional.jvp(exp_reducer, inputs, torch.ones(4, 4))
j = torch.autograd.functional.jacobian(exp_reducer, torch.rand(2, 2))

v = torch.tensor([0., 0., 0.], requires_grad=True)
h = v.register_hook(lambda grad: grad * 2)  # double the gradient
v.backward(torch.tensor([1., 2., 3.]))
print(v.grad)
h.remove()

x = torch.randn(3, 4, requires_grad=True)
t = x.unbind(0)
w = torch.rand(4)
s = (t[0] * w + t[2]).sum()
s.backward()
