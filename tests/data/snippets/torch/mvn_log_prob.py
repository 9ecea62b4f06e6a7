import math
import torch

L = torch.linalg.cholesky(cov)
diff = x - loc
M = torch.linalg.solve_triangular(L, diff.unsqueeze(-1), upper=False).pow(2).sum()
half_log_det = L.diagonal().log().sum()
-0.5 * (len(x) * math.log(2 * math.pi) + M) - half_log_det
