import torch
import torch.nn as nn
import torch.nn.functional as F
class EncoderRNN(nn.Module):
    def __init__(self, n, h):
        super().__init__()
        self.embedding = nn.Embedding(n, h)
        self.gru = nn.GRU(h, h, batch_first=True)
    def forward(self, x):
        return self.gru(self.embedding(x))
class BahdanauAttention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(h, h), nn.Linear(h, h), nn.Linear(h, 1)
    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights
class AttnDecoderRNN(nn.Module):
    def __init__(self, h, n):
        super().__init__()
        self.embedding = nn.Embedding(n, h)
        self.attention = BahdanauAttention(h)
        self.gru = nn.GRU(2 * h, h, batch_first=True)
        self.out = nn.Linear(h, n)
    def forward(self, enc_out, hidden, target=None):
        inp = torch.empty(enc_out.size(0), 1, dtype=torch.long).fill_(0)
        outs, atts = [], []
        for i in range(4):
            emb = self.embedding(inp)
            context, w = self.attention(hidden.permute(1, 0, 2), enc_out)
            o, hidden = self.gru(torch.cat((emb, context), dim=2), hidden)
            o = self.out(o)
            outs.append(o); atts.append(w)
            if target is not None:
                inp = target[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                inp = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outs, dim=1), dim=-1), hidden, torch.cat(atts, dim=1)
enc, dec = EncoderRNN(7, 6), AttnDecoderRNN(6, 5)
src, tgt = torch.randint(7, (3, 5)), torch.randint(5, (3, 4))
eo, do = torch.optim.Adam(enc.parameters(), lr=1e-2), torch.optim.Adam(dec.parameters(), lr=1e-2)
criterion = nn.NLLLoss(ignore_index=0)
for _ in range(3):
    eo.zero_grad(); do.zero_grad()
    e, h = enc(src)
    d, _, _ = dec(e, h, tgt)
    loss = criterion(d.view(-1, d.size(-1)), tgt.view(-1))
    loss.backward()
    eo.step(); do.step()
with torch.no_grad():
    e, h = enc(src)
    d, _, att = dec(e, h)
    _, topi = d.topk(1)
    decoded = topi.squeeze().tolist()
print(loss.item(), decoded)
