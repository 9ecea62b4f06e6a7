import math
import torch

torch.manual_seed(1337)
B, T, C = 2, 6, 8
head_size = 4
x = torch.randn(B, T, C)
wk, wq, wv = (torch.randn(C, head_size, requires_grad=True) for _ in range(3))

k = x @ wk
q = x @ wq
v = x @ wv
wei = q @ k.transpose(-2, -1) * head_size**-0.5
tril = torch.tril(torch.ones(T, T))
wei = wei.masked_fill(tril == 0, float('-inf'))
wei = torch.softmax(wei, dim=-1)
out = wei @ v
loss = out.pow(2).mean()
loss.backward()

mask = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
scores = torch.einsum('btd,bsd->bts', q, k) / math.sqrt(head_size)
scores = scores.masked_fill(mask, float('-inf')).softmax(-1)
same = torch.allclose(scores, wei)
print(same)

position = torch.arange(T).unsqueeze(1)
div_term = torch.exp(torch.arange(0, C, 2) * (-math.log(10000.0) / C))
pe = torch.zeros(T, 1, C)
pe[:, 0, 0::2] = torch.sin(position * div_term)
pe[:, 0, 1::2] = torch.cos(position * div_term)
