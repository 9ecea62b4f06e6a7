# A network of two layers that learns sin(x) by steps of Adam on batches of 25 rows, written as one would with PyTorch.
# Run: python examples/network.py
import math
import random

import gradcli
from gradcli import nn, optim

random.seed(0)
gradcli.manual_seed(0)
rows = [-3 + 6 * i / 199 for i in range(200)]
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.02)

curve = []
for epoch in range(1, 51):
    random.shuffle(rows)
    losses = []
    for first in range(0, len(rows), 25):
        x = gradcli.tensor([[r] for r in rows[first : first + 25]])
        optimizer.zero_grad()
        loss = criterion(model(x), gradcli.sin(x))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    curve.append(sum(losses) / len(losses))
    if epoch % 10 == 0:
        bar = "#" * round(10 * (5 + math.log10(curve[-1])))
        print(f"epoch {epoch}  loss {curve[-1]:.1e}  {bar}")
