import math
import torch

x = torch.linspace(-math.pi, math.pi, 20)
y = torch.sin(x)
y_pred = a + b * x + c * x ** 2 + d * x ** 3
loss = (y_pred - y).pow(2).sum()
loss
