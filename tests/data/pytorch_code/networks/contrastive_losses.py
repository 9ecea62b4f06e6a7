import torch
import torch.nn as nn
import torch.nn.functional as F
enc = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
x1, x2, x3 = torch.randn(5, 6), torch.randn(5, 6), torch.randn(5, 6)
z1, z2, z3 = F.normalize(enc(x1), dim=1), F.normalize(enc(x2), dim=1), F.normalize(enc(x3), dim=1)
logits = z1 @ z2.t() / 0.1
clip = (F.cross_entropy(logits, torch.arange(5)) + F.cross_entropy(logits.t(), torch.arange(5))) / 2
rep = torch.cat([z1, z2])
sim = F.cosine_similarity(rep.unsqueeze(1), rep.unsqueeze(0), dim=2)
mask = (~torch.eye(10, 10, dtype=torch.bool)).to(sim.dtype)
pos = torch.cat([torch.diag(sim, 5), torch.diag(sim, -5)])
ntx = -torch.log(torch.exp(pos / 0.5) / (mask * torch.exp(sim / 0.5)).sum(1)).mean()
trip = nn.TripletMarginLoss(margin=1.0, p=2)(z1, z2, z3)
cos = nn.CosineEmbeddingLoss()(z1, z2, torch.tensor([1, -1, 1, -1, 1]))
d = F.pairwise_distance(z1, z2)
label = torch.tensor([0., 1, 0, 1, 1])
con = torch.mean((1 - label) * d.pow(2) + label * torch.clamp(1.0 - d, min=0.0).pow(2))
loss = clip + ntx + trip + cos + con
loss.backward()
focal = (1 - torch.sigmoid(logits)) ** 2 * F.binary_cross_entropy_with_logits(logits, torch.eye(5), reduction="none", pos_weight=torch.tensor(2.0))
dice = 1 - (2 * (torch.sigmoid(logits) * torch.eye(5)).sum() + 1) / (torch.sigmoid(logits).sum() + 6)
ls = F.cross_entropy(logits, torch.arange(5), label_smoothing=0.1, weight=torch.tensor([1., 2, 1, 1, 0.5]))
soft = F.cross_entropy(logits, F.softmax(torch.randn(5, 5), -1))
kd = F.kl_div(F.log_softmax(logits / 2, dim=1), F.softmax(torch.randn(5, 5) / 2, dim=1), reduction="batchmean") * 4
hub = F.huber_loss(z1, z2, delta=0.5); g = F.gaussian_nll_loss(z1, z2, torch.ones_like(z1)); pn = F.poisson_nll_loss(z1, torch.ones_like(z1))
