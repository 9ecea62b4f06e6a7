mean = x.mean(dim=-1, keepdim=True)
var = x.var(dim=-1, keepdim=True, unbiased=False)
x_norm = (x - mean) / torch.sqrt(var + 1e-5)
out = gamma * x_norm + beta
(out ** 3).sum()
