# A cubic fitted to sin(x) by gradient descent, written as one would with PyTorch.
# Run: python examples/polynomial_fit.py
import math
import random

import gradcli

random.seed(0)
x = gradcli.linspace(-math.pi, math.pi, 2000)
y = gradcli.sin(x)

a, b, c, d = coefficients = [gradcli.tensor(random.gauss(0, 1), requires_grad=True) for _ in range(4)]

for step in range(1, 2001):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with gradcli.no_grad():
        for w in coefficients:
            w -= 1e-6 * w.grad
            w.grad = None
    if step % 400 == 0:
        print(f"step {step:4}  loss {loss.item():10.4f}")

a, b, c, d = (w.item() for w in coefficients)
print(f"a {a:.4f}  b {b:.4f}  c {c:.4f}  d {d:.4f}")
