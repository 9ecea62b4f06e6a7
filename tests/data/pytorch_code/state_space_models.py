import torch
import torch.nn as nn
import torch.nn.functional as F


class MambaBlock(nn.Module):
    def __init__(self, d_model=4, d_inner=8, d_state=3, dt_rank=2, d_conv=4):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank = d_inner, d_state, dt_rank
        self.in_proj = nn.Linear(d_model, d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(
            in_channels=d_inner, out_channels=d_inner, bias=True, kernel_size=d_conv, groups=d_inner, padding=d_conv - 1
        )
        self.x_proj = nn.Linear(d_inner, dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(dt_rank, d_inner, bias=True)
        A = torch.arange(1, d_state + 1, dtype=torch.float64).repeat(d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(d_inner))
        self.out_proj = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, x):
        (b, l, d) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = x.transpose(1, 2)
        x = self.conv1d(x)[:, :, :l]
        x = x.transpose(1, 2)
        x = F.silu(x)
        y = self.ssm(x)
        y = y * F.silu(res)
        return self.out_proj(y)

    def ssm(self, x):
        (d_in, n) = self.A_log.shape
        A = -torch.exp(self.A_log.double())
        D = self.D.double()
        x_dbl = self.x_proj(x)
        (delta, B, C) = x_dbl.split(split_size=[self.dt_rank, n, n], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        return self.selective_scan(x, delta, A, B, C, D)

    def selective_scan(self, u, delta, A, B, C, D):
        (b, l, d_in) = u.shape
        n = A.shape[1]
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d_in, n), device=deltaA.device)
        ys = []
        for i in range(l):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            y = torch.einsum("bdn,bn->bd", x, C[:, i, :])
            ys.append(y)
        y = torch.stack(ys, dim=1)
        y = y + u * D
        return y


m = MambaBlock()
x = torch.randn(2, 5, 4, requires_grad=True)
y = m(x)
y.pow(2).sum().backward()
gx = x.grad
ga = m.A_log.grad


class RetNet(nn.Module):
    def __init__(self, h=4):
        super().__init__()
        self.W = nn.Parameter(torch.randn(3, h, h) / h)
        self.gamma = 0.9

    def forward(self, X):
        L = X.shape[1]
        Q, K, V = (X @ w for w in self.W)
        n = torch.arange(L).unsqueeze(1)
        k = torch.arange(L).unsqueeze(0)
        D = (self.gamma ** (n - k)) * (n >= k).double()
        D[D != D] = 0
        return ((Q @ K.permute(0, 2, 1)) * D.unsqueeze(0)) @ V


r = RetNet()(x)


def wkv(w, u, k, v):
    T, C = k.shape
    y = torch.empty_like(v)
    aa, bb, pp = torch.zeros(C), torch.zeros(C), torch.full((C,), -1e38)
    for t in range(T):
        ww = u + k[t]
        p = torch.maximum(pp, ww)
        e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
        y[t] = (e1 * aa + e2 * v[t]) / (e1 * bb + e2)
        ww = w + pp
        p = torch.maximum(ww, k[t])
        e1, e2 = torch.exp(ww - p), torch.exp(k[t] - p)
        aa, bb, pp = e1 * aa + e2 * v[t], e1 * bb + e2, p
    return y


kk, vv = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
o = wkv(-torch.ones(3), torch.zeros(3), kk, vv)
o.sum().backward()
gk, gv = kk.grad, vv.grad


def ssm_kernel(A, B, C, L):
    return torch.stack([(C @ torch.matrix_power(A, l) @ B).reshape(()) for l in range(L)])


K = ssm_kernel(torch.eye(3) * 0.9, torch.ones(3, 1), torch.ones(1, 3), 6)


def causal_conv(u, K):
    ud = torch.fft.rfft(F.pad(u, (0, K.shape[0])))
    Kd = torch.fft.rfft(F.pad(K, (0, u.shape[0])))
    return torch.fft.irfft(ud * Kd)[: u.shape[0]]


cc = causal_conv(torch.randn(6), K)
