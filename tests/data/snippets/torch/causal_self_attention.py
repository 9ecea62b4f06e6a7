import torch
import torch.nn.functional as F

def causal_self_attention(x, w_qkv, n_head):
    B, T, C = x.size()
    q, k, v = F.linear(x, w_qkv).split(C, dim=2)
    k = k.view(B, T, n_head, C // n_head).transpose(1, 2)  # (B, nh, T, hs)
    q = q.view(B, T, n_head, C // n_head).transpose(1, 2)
    v = v.view(B, T, n_head, C // n_head).transpose(1, 2)

    att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
    mask = torch.tril(torch.ones(T, T)).view(1, 1, T, T)
    att = att.masked_fill(mask[:, :, :T, :T] == 0, float('-inf'))
    att = F.softmax(att, dim=-1)
    y = att @ v
    y = y.transpose(1, 2).contiguous().view(B, T, C)
    return y
