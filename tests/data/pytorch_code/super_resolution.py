import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from math import log10


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, 6, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(6, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.pixel_shuffle(self.conv3(x))
        return x

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


model = Net(upscale_factor=2)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
data = [(torch.rand(2, 1, 6, 6), torch.rand(2, 1, 12, 12)) for _ in range(3)]
avg_psnr = 0
for input, target in data:
    optimizer.zero_grad()
    loss = criterion(model(input), target)
    loss.backward()
    optimizer.step()
    psnr = 10 * log10(1 / loss.item())
    avg_psnr += psnr
print("===> Avg. PSNR: {:.4f} dB".format(avg_psnr / 3))
up = nn.functional.interpolate(data[0][0], scale_factor=2, mode="bicubic", align_corners=False)
bil = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)(data[0][0])


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.PReLU(), nn.LayerNorm(8), nn.Linear(8, 4))

    def forward(self, a, b, c):
        return self.net(a), self.net(b), self.net(c)


net = Siamese()
outs = net(*(torch.rand(3, 1, 6, 6) for _ in range(3)))
triplet = nn.TripletMarginLoss(margin=1.0, p=2)(*outs)
other = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(), margin=0.5)(*outs)
contrastive = torch.mean((1 - torch.tensor([1.0, 0, 1])) * torch.pow(nn.functional.pairwise_distance(outs[0], outs[1]), 2)
                         + torch.tensor([1.0, 0, 1]) * torch.clamp(1.0 - nn.functional.pairwise_distance(outs[0], outs[1]), min=0.0) ** 2)
(triplet + contrastive).backward()
