import math
import torch
from torch import nn, Tensor
import torch.nn.functional as F
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.0):
        super().__init__()
        self.model_type = "Transformer"
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        encoder_layers = TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = TransformerEncoder(encoder_layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
        output = self.transformer_encoder(src, src_mask)
        output = self.linear(output)
        return output


ntokens, bptt = 11, 5
model = TransformerModel(ntokens, 8, 2, 12, 2)
data = torch.randint(0, ntokens, (16, 3))
criterion = nn.CrossEntropyLoss()
lr = 5.0
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)
model.train()
total_loss = 0.0
for batch, i in enumerate(range(0, data.size(0) - 1, bptt)):
    seq_len = min(bptt, len(data) - 1 - i)
    source, target = data[i : i + seq_len], data[i + 1 : i + 1 + seq_len].reshape(-1)
    output = model(source)
    output_flat = output.view(-1, ntokens)
    loss = criterion(output_flat, target)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    total_loss += loss.item()
    ppl = math.exp(loss.item())
scheduler.step()
print(f"{scheduler.get_last_lr()[0]:02.2f}", total_loss)
full = nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, dropout=0.0,
                      batch_first=True)
src, tgt = torch.rand(2, 4, 8), torch.rand(2, 3, 8)
tgt_mask = full.generate_square_subsequent_mask(3)
pad = torch.tensor([[False, False, False, True], [False, False, False, False]])
out = full(src, tgt, tgt_mask=tgt_mask, src_key_padding_mask=pad, memory_key_padding_mask=pad)
mha = nn.MultiheadAttention(8, 2, batch_first=True)
attn, weights = mha(src, src, src, need_weights=True, average_attn_weights=False)
sdpa = F.scaled_dot_product_attention(src, src, src, is_causal=True)
model.eval()
with torch.no_grad():
    greedy = model(data[:3]).argmax(-1)
