import torch

x = torch.randn(5, requires_grad=True)
y = x.pow(2)
print(x.equal(y.grad_fn._saved_self))
print(x is y.grad_fn._saved_self)

y = x.exp()
print(y.equal(y.grad_fn._saved_result))
print(y is y.grad_fn._saved_result)

packed, unpacked = [], []

def pack_hook(x):
    packed.append(x.sum().item())
    return x + 0

def unpack_hook(x):
    unpacked.append(x.sum().item())
    return x

a = torch.ones(5, requires_grad=True)
b = torch.ones(5, requires_grad=True) * 2
with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
    y = a * b
y.sum().backward()
ga = a.grad
packed, unpacked = sorted(packed), sorted(unpacked)

x = torch.tensor([0., 0., 0.], requires_grad=True)
handles = []
h = x.register_hook(lambda grad: grad * 2)
x.backward(torch.tensor([1., 2., 3.]))
gx = x.grad
h.remove()
