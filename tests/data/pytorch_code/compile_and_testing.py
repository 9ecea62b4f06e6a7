import torch

@torch.compile(mode="reduce-overhead", fullgraph=True, dynamic=False)
def f(x, y):
    return torch.sin(x) * y + x ** 2

def g(x):
    return (x * 2).cos().sum()

x = torch.linspace(0, 1, 5, requires_grad=True)
y = torch.arange(5.)
out = f(x, y)
out.sum().backward()
h = torch.compile(g)
v = h(y)
k = torch.compile(g, dynamic=True, backend="inductor")(y)
torch.testing.assert_close(v, k)
torch.testing.assert_close(out, torch.sin(x) * y + x ** 2, rtol=1e-5, atol=1e-8)
try:
    torch.testing.assert_close(torch.ones(3), torch.zeros(3))
    failed = 0
except AssertionError as e:
    print(str(e).splitlines()[0])
    failed = 1
torch.testing.assert_close([torch.ones(2), 1.0], [torch.ones(2), 1.0])
model = torch.compile(torch.nn.Linear(3, 2))
w = model(torch.ones(1, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.arange(6.0).view(2, 3)).pow(2).mean()
    loss.backward()
    optimizer.step()
print(sorted(name for name, _ in model.named_parameters()) != [], loss.item())

@torch.compile
def train_step(x, y):
    pred = model(x)
    return torch.nn.functional.mse_loss(pred, y), pred

step_loss, prediction = train_step(torch.ones(2, 3), torch.zeros(2, 2))
