# The parameters of cooling_loss.grad fitted to the measured temperatures (illustrative data) by
# gradient descent, with the loss parsed once. Each parameter has its own step size, because their
# units differ.
# Run: python examples/cooling_fit.py
import csv
from pathlib import Path

import gradcli

here = Path(__file__).parent
loss = gradcli.compile((here / "cooling_loss.grad").read_text(encoding="utf-8"))

with open(here / "data/cooling.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
data = {name: [float(row[name]) for row in rows] for name in ("minutes", "celsius")}

parameters = {"ambient": 20.0, "excess": 60.0, "rate": 0.05}
step_sizes = {"ambient": 0.4, "excess": 0.8, "rate": 2e-6}

for step in range(1, 2001):
    value, grad = loss.value_and_grad(data | parameters, wrt=tuple(parameters))
    for name, size in step_sizes.items():
        parameters[name] -= size * grad[name]
    if step in (1, 10, 100, 1000, 2000):
        fitted = "  ".join(f"{name} {number:.4f}" for name, number in parameters.items())
        print(f"step {step:4}  loss {value:8.4f}  {fitted}")
