# "The Fundamentals of Autograd", from the introduction to PyTorch on YouTube, without its plots
import torch
import math

a = torch.linspace(0., 2. * math.pi, steps=25, requires_grad=True)
b = torch.sin(a)
c = 2 * b
d = c + 1
out = d.sum()
print(c.requires_grad, d.grad_fn.next_functions[1:])
print(a.grad_fn)
out.backward()
print(a.grad.tolist())

BATCH_SIZE = 16
DIM_IN = 100
HIDDEN_SIZE = 20
DIM_OUT = 10
some_input = torch.randn(BATCH_SIZE, DIM_IN, requires_grad=False)
ideal_output = torch.randn(BATCH_SIZE, DIM_OUT, requires_grad=False)

a = torch.ones(2, 3, requires_grad=True)
print(a.requires_grad)
b1 = 2 * a
a.requires_grad = False
b2 = 2 * a
print(b2.requires_grad)

a = torch.ones(2, 3, requires_grad=True) * 2
b = torch.ones(2, 3, requires_grad=True) * 3
c1 = a + b
with torch.no_grad():
    c2 = a + b
c3 = a * b

def add_tensors1(x, y):
    return x + y

@torch.no_grad()
def add_tensors2(x, y):
    return x + y

a = torch.ones(2, 3, requires_grad=True) * 2
b = torch.ones(2, 3, requires_grad=True) * 3
c1 = add_tensors1(a, b)
c2 = add_tensors2(a, b)
print(c1.requires_grad, c2.requires_grad)

x = torch.rand(5, requires_grad=True)
y = x.detach()
print(x.requires_grad, y.requires_grad)

x = torch.randn(3, requires_grad=True)
y = x * 2
while y.data.norm() < 1000:
    y = y * 2
v = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float) # stand-in for gradients
y.backward(v)
print(x.grad.tolist())

def exp_adder(x, y):
    return 2 * x.exp() + 3 * y

inputs = (torch.rand(1), torch.rand(1)) # arguments for the function
j = torch.autograd.functional.jacobian(exp_adder, inputs)
inputs = (torch.rand(3), torch.rand(3)) # arguments for the function
j3 = torch.autograd.functional.jacobian(exp_adder, inputs)

def do_some_doubling(x):
    y = x * 2
    while y.data.norm() < 1000:
        y = y * 2
    return y

inputs = torch.randn(3)
my_gradients = torch.tensor([0.1, 1.0, 0.0001])
v = torch.autograd.functional.vjp(do_some_doubling, inputs, v=my_gradients)
