import torch
from torch.utils.data import Dataset, DataLoader, random_split, Subset, ConcatDataset, WeightedRandomSampler, TensorDataset
class Toy(Dataset):
    def __init__(self, n):
        self.x = torch.arange(float(n)).unsqueeze(1); self.y = (self.x.squeeze() % 2).long()
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i], "name": f"item{i}"}
train, val = random_split(Toy(10), [7, 3], generator=torch.Generator().manual_seed(0))
seen = []
for batch in DataLoader(train, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(1), drop_last=True):
    seen.append(batch["x"]); print(batch["name"], batch["y"])
def collate(items):
    return torch.stack([i["x"] for i in items]), torch.tensor([i["y"].item() for i in items])
b = [x for x, y in DataLoader(val, batch_size=2, collate_fn=collate)]
s = list(WeightedRandomSampler([0.1, 0.9, 0.5], 4, replacement=True, generator=torch.Generator().manual_seed(3)))
c = ConcatDataset([Toy(2), Toy(3)]); last = c[4]["x"]
l = len(DataLoader(TensorDataset(torch.zeros(10, 2)), batch_size=4)); sub = Subset(Toy(5), [0, 3])[1]["x"]
