import json

import torch

x = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
q = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
y = torch.log(x**q)
y.backward()
print(json.dumps({"value": y.item(), "grad": {"x": x.grad.item(), "q": q.grad.item()}}))
