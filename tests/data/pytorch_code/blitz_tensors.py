import torch
import numpy as np

data = [[1, 2], [3, 4]]
x_data = torch.tensor(data)
np_array = np.array(data)
x_np = torch.from_numpy(np_array)
x_ones = torch.ones_like(x_data)
x_rand = torch.rand_like(x_data, dtype=torch.float)
shape = (2, 3,)
rand_tensor = torch.rand(shape)
ones_tensor = torch.ones(shape)
zeros_tensor = torch.zeros(shape)
tensor = torch.rand(3, 4)
print(f"Device tensor is stored on: {tensor.device}")
if torch.cuda.is_available():
    tensor = tensor.to('cuda')
tensor = torch.ones(4, 4)
tensor[:, 1] = 0
t1 = torch.cat([tensor, tensor, tensor], dim=1)
m = tensor.mul(tensor)
e = tensor * tensor
mm = tensor.matmul(tensor.T)
at = tensor @ tensor.T
tensor.add_(5)
t = torch.ones(5)
n = t.numpy().tolist()
agg = tensor.sum()
agg_item = agg.item()
print(agg_item)
y1 = tensor @ tensor.T
y2 = tensor.matmul(tensor.T)
y3 = torch.rand_like(y1)
torch.matmul(tensor, tensor.T, out=y3)
z3 = torch.rand_like(tensor)
torch.mul(tensor, tensor, out=z3)
print(f"First row: {tensor[0].tolist()}")
print(f"Last column: {tensor[..., -1].tolist()}")
