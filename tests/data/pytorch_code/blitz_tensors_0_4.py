import torch

x = torch.empty(5, 3)
x = torch.rand(5, 3)
x = torch.zeros(5, 3, dtype=torch.long)
x = torch.tensor([5.5, 3])
x = x.new_ones(5, 3, dtype=torch.double)
x = torch.randn_like(x, dtype=torch.float)
print(x.size())
y = torch.rand(5, 3)
s1 = x + y
s2 = torch.add(x, y)
result = torch.empty(5, 3)
torch.add(x, y, out=result)
y.add_(x)
first = x[:, 1]
x = torch.randn(4, 4)
y = x.view(16)
z = x.view(-1, 8)
print(x.size()[0], y.size()[0], z.size()[1])
x = torch.randn(1)
xi = x.item()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
y = torch.ones_like(x, device=device)
x = x.to(device)
z = x + y
d = z.to("cpu", torch.double)
