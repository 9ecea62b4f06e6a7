import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.LazyConv2d(4, 3, padding=1)
        self.norm = nn.LazyBatchNorm2d()
        self.fc1 = nn.LazyLinear(8)
        self.fc2 = nn.LazyLinear(2, bias=False)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = nn.functional.max_pool2d(x, 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))

net = Net()
print(net.fc1.__class__.__name__)
x = torch.randn(3, 2, 6, 6)
dry = net(x)
print(net.fc1.__class__.__name__, net.fc1.in_features, net.conv.in_channels)
print(str(net).replace("\n", ""))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
shapes = [tuple(p.shape) for p in net.parameters()]
print(shapes)
