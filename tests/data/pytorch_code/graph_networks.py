import torch
import torch.nn as nn
import torch.nn.functional as F
edge_index = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])
x = torch.randn(4, 5)
class GCNConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias=False)
        self.bias = nn.Parameter(torch.zeros(o))
    def forward(self, x, edge_index):
        row, col = torch.cat([edge_index, torch.arange(x.size(0)).repeat(2, 1)], dim=1)
        deg = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones(col.size(0)))
        norm = deg.pow(-0.5)[row] * deg.pow(-0.5)[col]
        h = self.lin(x)
        out = torch.zeros_like(h).index_add_(0, col, norm.view(-1, 1) * h[row])
        return out + self.bias
c1, c2 = GCNConv(5, 8), GCNConv(8, 3)
opt = torch.optim.Adam([*c1.parameters(), *c2.parameters()], lr=0.01, weight_decay=5e-4)
for _ in range(3):
    opt.zero_grad()
    out = F.log_softmax(c2(F.relu(c1(x, edge_index)), edge_index), dim=1)
    loss = F.nll_loss(out[torch.tensor([True, False, True, True])], torch.tensor([0, 1, 2]))
    loss.backward(); opt.step()
h = torch.randn(4, 3, requires_grad=True)
e = F.leaky_relu(h[edge_index[0]].sum(-1) + h[edge_index[1]].sum(-1), 0.2)
mx = torch.full((4,), -float("inf")).scatter_reduce(0, edge_index[1], e, reduce="amax")
ex = torch.exp(e - mx[edge_index[1]])
alpha = ex / torch.zeros(4).scatter_add(0, edge_index[1], ex)[edge_index[1]]
agg = torch.zeros(4, 3).index_add(0, edge_index[1], alpha[:, None] * h[edge_index[0]])
agg.sum().backward()
adj = torch.zeros(4, 4); adj[edge_index[0], edge_index[1]] = 1.0
lap = torch.diag(adj.sum(1)) - adj
ev = torch.linalg.eigvalsh(lap)
mean_pool = torch.zeros(2, 5).scatter_reduce(0, torch.tensor([0, 0, 1, 1])[:, None].expand(4, 5), x, reduce="mean", include_self=False)
