# "Introduction to PyTorch Tensors", from the introduction on YouTube
import torch
import math

x = torch.empty(3, 4)
zeros = torch.zeros(2, 3)
ones = torch.ones(2, 3)
torch.manual_seed(1729)
random = torch.rand(2, 3)
torch.manual_seed(1729)
random1 = torch.rand(2, 3)
random2 = torch.rand(2, 3)
torch.manual_seed(1729)
random3 = torch.rand(2, 3)
x = torch.empty(2, 2, 3)
zeros_like_x = torch.zeros_like(x)
ones_like_x = torch.ones_like(x)
rand_like_x = torch.rand_like(x)
del x  # PyTorch does not initialise it
some_constants = torch.tensor([[3.1415926, 2.71828], [1.61803, 0.0072897]])
some_integers = torch.tensor((2, 3, 5, 7, 11, 13, 17, 19))
more_integers = torch.tensor(((2, 4, 6), [3, 6, 9]))
a = torch.ones((2, 3), dtype=torch.int16)
b = torch.rand((2, 3), dtype=torch.float64) * 20.
c = b.to(torch.int32)
ones = torch.zeros(2, 2) + 1
twos = torch.ones(2, 2) * 2
threes = (torch.ones(2, 2) * 7 - 1) / 2
fours = twos ** 2
sqrt2s = twos ** 0.5
powers2 = twos ** torch.tensor([[1, 2], [3, 4]])
fives = ones + fours
dozens = threes * fours
rand = torch.rand(2, 4)
doubled = rand * (torch.ones(1, 4) * 2)
a = torch.ones(4, 3, 2)
b4 = a * torch.rand(3, 2)
c4 = a * torch.rand(3, 1)
d4 = a * torch.rand(1, 2)
a = torch.rand(2, 4) * 2 - 1
absolute, ceiling, floor, clamped = torch.abs(a), torch.ceil(a), torch.floor(a), torch.clamp(a, -0.5, 0.5)
angles = torch.tensor([0, math.pi / 4, math.pi / 2, 3 * math.pi / 4])
sines = torch.sin(angles)
inverses = torch.asin(sines)
d = torch.tensor([[1., 2.], [3., 4.]])
e = torch.ones(1, 2)  # many comparison ops support broadcasting!
equals = torch.eq(d, e)
largest = torch.max(d)
largest_item = torch.max(d).item()
mean, std, prod = torch.mean(d), torch.std(d, unbiased=True), torch.prod(d)
v1 = torch.tensor([1., 0., 0.])
v2 = torch.tensor([0., 1., 0.])
m1 = torch.rand(2, 2)
m2 = torch.tensor([[3., 0.], [0., 3.]])
crossed = torch.linalg.cross(v2, v1)
m3 = torch.linalg.matmul(m1, m2)
s = torch.linalg.svd(m3)[1]
a = torch.tensor([0, math.pi / 4, math.pi / 2, 3 * math.pi / 4])
sa = torch.sin(a)
b = torch.tensor([0, math.pi / 4, math.pi / 2, 3 * math.pi / 4])
sb = torch.sin_(b)
a = torch.ones(2, 2)
b = torch.rand(2, 2)
a.add_(b)
b.mul_(b)
a = torch.rand(2, 2)
b = torch.rand(2, 2)
c = torch.zeros(2, 2)
old_id = id(c)
d = torch.matmul(a, b, out=c)
assert c is d
assert id(c) == old_id
torch.rand(2, 2, out=c)
a = torch.ones(2, 2)
b = a
a[0][1] = 561
a = torch.ones(2, 2)
b = a.clone()
assert b is not a
print(torch.eq(a, b))
a[0][1] = 561
a = torch.rand(2, 2, requires_grad=True)
b = a.clone()
c = a.detach().clone()
a = torch.rand(3, 226, 226)
b = a.unsqueeze(0)
print(b.shape[0])
c = torch.rand(1, 1, 1, 1, 1)
a = torch.rand(1, 20)
b = a.squeeze(0)
c = torch.rand(2, 2)
d = c.squeeze(0)
a = torch.ones(4, 3, 2)
b = torch.rand(3)
c = b.unsqueeze(1)
scaled = a * c
batch_me = torch.rand(3, 226, 226)
batch_me.unsqueeze_(0)
output3d = torch.rand(6, 20, 20)
input1d = output3d.reshape(6 * 20 * 20)
last = torch.reshape(output3d, (6 * 20 * 20,)).shape[0]
import numpy as np
numpy_array = np.ones((2, 3))
pytorch_tensor = torch.from_numpy(numpy_array)
pytorch_rand = torch.rand(2, 3)
numpy_rand = pytorch_rand.numpy()
