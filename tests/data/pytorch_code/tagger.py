import torch
import torch.nn as nn
class LSTMTagger(nn.Module):
    def __init__(self, e, h, v, t):
        super().__init__()
        self.hidden_dim = h
        self.word_embeddings = nn.Embedding(v, e, padding_idx=0)
        self.lstm = nn.LSTM(e, h)
        self.hidden2tag = nn.Linear(h, t)
    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
        return nn.functional.log_softmax(self.hidden2tag(lstm_out.view(len(sentence), -1)), dim=1)
model = LSTMTagger(6, 6, 9, 3)
loss_function = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for s, t in (([1, 2, 3, 4], [0, 1, 2, 0]), ([5, 6, 0], [1, 2, 1])):
        model.zero_grad()
        loss = loss_function(model(torch.tensor(s, dtype=torch.long)), torch.tensor(t))
        loss.backward(); optimizer.step()
cell = nn.LSTMCell(3, 4); hx, cx = torch.zeros(2, 4), torch.zeros(2, 4); outs = []
for i in range(3):
    hx, cx = cell(torch.randn(2, 3), (hx, cx)); outs.append(hx)
out = torch.stack(outs, dim=0)
start = torch.randn(5, 5); end = torch.randn(5)
alpha = end.view(1, 5)
for feat in torch.randn(4, 5):
    alpha = torch.logsumexp(alpha.t() + start + feat.view(1, -1), dim=0, keepdim=True)
crf = torch.logsumexp(alpha, 1)
mask = torch.arange(5)[None, :] < torch.tensor([5, 3])[:, None]
masked_mean = (torch.randn(2, 5, 3) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
