import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.DoubleTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.DoubleTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.mm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, dropout, alpha, concat=True):
        super().__init__()
        self.out_features = out_features
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        Wh1 = torch.matmul(Wh, self.a[: self.out_features, :])
        Wh2 = torch.matmul(Wh, self.a[self.out_features :, :])
        e = self.leakyrelu(Wh1 + Wh2.T)
        zero_vec = -9e15 * torch.ones_like(e)
        attention = torch.where(adj > 0, e, zero_vec)
        attention = F.softmax(attention, dim=1)
        return F.elu(torch.matmul(attention, Wh))


def scatter_mean(src, index, dim, dim_size):
    out = src.new_zeros(dim_size, *src.shape[1:])
    idx = index.view(-1, 1).expand_as(src)
    out = out.scatter_add(dim, idx, src)
    cnt = torch.zeros(dim_size, 1).index_add_(0, index, torch.ones(index.numel(), 1))
    return out / cnt.clamp(min=1)


n = 5
adj = (torch.rand(n, n) > 0.5).double()
adj = adj + adj.T.multiply(adj.T > adj) - adj.multiply(adj.T > adj) + torch.eye(n)
rowsum = adj.sum(1)
d = torch.pow(rowsum, -0.5).flatten()
d[torch.isinf(d)] = 0.0
norm = torch.diag(d) @ adj @ torch.diag(d)
x = torch.randn(n, 4)
gc1, gc2, gat = GraphConvolution(4, 6), GraphConvolution(6, 3), GraphAttentionLayer(4, 3, 0.0, 0.2)
print(gc1)
out = F.log_softmax(gc2(F.relu(gc1(x, norm)), norm) + gat(x, adj), dim=1)
loss = F.nll_loss(out[torch.LongTensor([0, 2])], torch.LongTensor([1, 2]))
loss.backward()
g = [p.grad for p in [*gc1.parameters(), *gat.parameters()]]
ei = adj.nonzero(as_tuple=False).t().contiguous()
row, col = ei
m = scatter_mean(x[col], row, 0, n)
mx = torch.full((n, 4), -1e9).scatter_reduce(0, row.view(-1, 1).expand(-1, 4), x[col], reduce="amax")
sm = torch.zeros(n).scatter_reduce_(0, row, torch.ones(row.numel()), reduce="sum", include_self=False)
deg = torch.bincount(row, minlength=n)
topk = torch.topk(m.sum(1), 2).indices
perm = torch.argsort(m[:, 0], stable=True)
lap = torch.diag(deg.double()) - adj
ev = torch.linalg.eigvalsh((lap + lap.T) / 2)
assoc = torch.full((n,), -1, dtype=torch.long)
assoc[topk] = torch.arange(topk.size(0))
mask = (assoc[row] >= 0) & (assoc[col] >= 0)
sub = torch.stack([assoc[row][mask], assoc[col][mask]], 0)
