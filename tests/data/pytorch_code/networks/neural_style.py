import torch
import torch.nn as nn
import torch.nn.functional as F
def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)
class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()
    def forward(self, input):
        G = gram_matrix(input)
        self.loss = F.mse_loss(G, self.target)
        return input
class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()
    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input
class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)
    def forward(self, img):
        return (img - self.mean) / self.std
content, style = torch.rand(1, 3, 6, 6), torch.rand(1, 3, 6, 6)
conv = nn.Conv2d(3, 4, 3, padding=1)
norm = Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
model = nn.Sequential(norm)
model.add_module("conv_1", conv)
cl = ContentLoss(model(content).detach()); model.add_module("content_loss_1", cl)
sl = StyleLoss(model(style).detach()); model.add_module("style_loss_1", sl)
img = content.clone()
img.requires_grad_(True)
model.eval(); model.requires_grad_(False)
optimizer = torch.optim.LBFGS([img])
run = [0]
while run[0] <= 8:
    def closure():
        with torch.no_grad():
            img.clamp_(0, 1)
        optimizer.zero_grad()
        model(img)
        loss = sl.loss * 1000 + cl.loss
        loss.backward()
        run[0] += 1
        return sl.loss + cl.loss
    last = optimizer.step(closure)
with torch.no_grad():
    img.clamp_(0, 1)
print(run, last.item())
