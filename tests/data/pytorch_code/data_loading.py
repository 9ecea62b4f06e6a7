import os
import tempfile

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from torch.utils.data.dataloader import default_collate


class MyData(Dataset):
    def __init__(self, n=10, transform=None):
        self.x = torch.arange(n * 2.0).view(n, 2)
        self.y = torch.arange(n) % 3
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        s = {"x": self.x[idx], "y": int(self.y[idx]), "name": f"s{idx}", "np": np.array([idx, idx + 1.0])}
        return self.transform(s) if self.transform else s


ds = MyData()
batches = [b for b in DataLoader(ds, batch_size=4, shuffle=False, num_workers=0, drop_last=False)]
print([b["name"] for b in batches])
xs = [b["x"] for b in batches]
g = torch.Generator().manual_seed(42)
tr, va = random_split(ds, [7, 3], generator=g)
tr2, va2 = random_split(ds, [0.8, 0.2], generator=torch.Generator().manual_seed(0))
idx = [tr.indices, va.indices, list(tr2.indices)]
cls = torch.bincount(ds.y)
w = (1.0 / cls)[ds.y]
ws = WeightedRandomSampler(w, num_samples=len(w), replacement=True, generator=torch.Generator().manual_seed(1))
order = list(ws)
loader = DataLoader(ds, batch_size=5, sampler=WeightedRandomSampler(w.tolist(), 10))
ys = torch.cat([b["y"] for b in loader])


def collate(batch):
    seqs, labels = zip(*batch)
    lens = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=-1.0), torch.tensor(labels), lens


seqs = [(torch.arange(float(n)), n) for n in (3, 1, 4, 2)]
pb = [b for b in DataLoader(seqs, batch_size=2, collate_fn=collate, shuffle=True)]
padded = [b[0] for b in pb]
gru = torch.nn.GRU(1, 3, batch_first=True)
x, l, n = collate(seqs)
packed = pack_padded_sequence(x.unsqueeze(-1), n, batch_first=True, enforce_sorted=False)
out, hn = gru(packed)
un, lens = pad_packed_sequence(out, batch_first=True)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(7))


st = [b for b in DataLoader(Stream(), batch_size=3)]
bs = list(BatchSampler(SequentialSampler(range(7)), 3, True))
cc = ConcatDataset([TensorDataset(torch.ones(2, 1)), TensorDataset(torch.zeros(3, 1))])
lc = len(cc)
c3 = cc[3][0]
sub = DataLoader(
    ds, batch_sampler=BatchSampler(SubsetRandomSampler([1, 2, 3], generator=torch.Generator().manual_seed(3)), 2, False)
)
sn = [b["name"] for b in sub]
dc = default_collate([(1, torch.ones(2)), (2, torch.zeros(2))])
dcd = default_collate([{"a": [1.0, 2.0]}, {"a": [3.0, 4.0]}])
torch.manual_seed(0)


def worker_init_fn(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


dl = DataLoader(
    TensorDataset(torch.arange(6.0), torch.arange(6)),
    batch_size=2,
    shuffle=True,
    pin_memory=False,
    worker_init_fn=worker_init_fn,
    persistent_workers=False,
)
it = iter(dl)
a, b = next(it)
nl = len(dl)
with tempfile.TemporaryDirectory() as td:
    path = os.path.join(td, "ck.pt")
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
    torch.save(
        {"model": net.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state(), "t": torch.arange(3)}, path
    )
    ck = torch.load(path)
    net2 = torch.nn.Linear(2, 1)
    net2.load_state_dict(ck["model"])
    o2 = torch.optim.Adam(net2.parameters())
    o2.load_state_dict(ck["opt"])
    net2(torch.ones(1, 2)).sum().backward()
    o2.step()
    w2 = net2.weight
    torch.save(net, os.path.join(td, "whole.pt"))
    whole = torch.load(os.path.join(td, "whole.pt"), weights_only=False).weight
