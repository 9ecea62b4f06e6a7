import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.localization = nn.Sequential(nn.Conv2d(1, 2, kernel_size=3), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(2 * 3 * 3, 8), nn.ReLU(True), nn.Linear(8, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.get_default_dtype()))
        self.fc = nn.Linear(64, 3)
    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 2 * 3 * 3)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)
    def forward(self, x):
        x = self.stn(x)
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
data, target = torch.randn(4, 1, 8, 8), torch.tensor([0, 2, 1, 1])
for _ in range(3):
    opt.zero_grad()
    output = model(data)
    loss = F.nll_loss(output, target)
    loss.backward()
    opt.step()
pred = output.max(1, keepdim=True)[1]
correct = pred.eq(target.view_as(pred)).sum().item()
theta = torch.tensor([[[0.83, -0.31, 0.07], [0.2, 1.1, -0.2]]], requires_grad=True)
img = torch.randn(1, 2, 5, 5, requires_grad=True)
outs = []
for mode in ("bilinear", "nearest", "bicubic"):
    for pad in ("zeros", "border", "reflection"):
        outs.append(F.grid_sample(img, F.affine_grid(theta, (1, 2, 4, 4), align_corners=True), mode=mode, padding_mode=pad, align_corners=True))
total = sum(o.sum() for o in outs)
total.backward()
