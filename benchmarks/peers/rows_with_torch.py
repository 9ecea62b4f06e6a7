"""Computes value and derivatives of each row of a table with pandas and PyTorch."""

import sys

import pandas
import torch

_, formula, source, target = sys.argv[1:]
csv = source.endswith(".csv")
table = pandas.read_csv(source) if csv else pandas.read_parquet(source)
x, q = (torch.tensor(table[name].to_numpy(), requires_grad=True) for name in ("x", "q"))
if formula == "short":
    value = torch.sin(q * torch.log(x)) * torch.exp(-x)
else:
    value = sum(torch.sin(k * x * q) * torch.exp(-k * x) / (1 + k * q * q) for k in range(1, 5))
value.sum().backward()
table["value"], table["d_x"], table["d_q"] = value.detach().numpy(), x.grad.numpy(), q.grad.numpy()
if csv:
    table.to_csv(target, index=False)
else:
    table.to_parquet(target)
