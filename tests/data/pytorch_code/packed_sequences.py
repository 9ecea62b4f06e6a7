import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence, pack_sequence

sequences = [torch.randn(n, 3) for n in (5, 3, 2)]
lengths = torch.tensor([len(s) for s in sequences])
padded = pad_sequence(sequences, batch_first=True)
print(tuple(padded.shape))
packed = pack_padded_sequence(padded, lengths, batch_first=True)
data, batch_sizes = packed.data, packed.batch_sizes
print(batch_sizes)
lstm = nn.LSTM(3, 4, batch_first=True, bidirectional=True, num_layers=2)
out, (h, c) = lstm(packed)
unpacked, lens = pad_packed_sequence(out, batch_first=True)
print(tuple(unpacked.shape), lens)
loss = unpacked.sum() + h.pow(2).sum()
loss.backward()
g = lstm.weight_ih_l0.grad
# unsorted
shuffled = [sequences[i] for i in (2, 0, 1)]
p2 = pack_sequence(shuffled, enforce_sorted=False)
gru = nn.GRU(3, 4)
o2, h2 = gru(p2)
u2, l2 = pad_packed_sequence(o2, padding_value=-1.0, total_length=7)
print(tuple(u2.shape), l2, p2.sorted_indices, p2.unsorted_indices)
rnn = nn.RNN(3, 4)
o3, h3 = rnn(pack_padded_sequence(pad_sequence(shuffled), torch.tensor([2, 5, 3]), enforce_sorted=False))
o3d = o3.data
h2.sum().backward()
