import torch
from torch import nn, optim
from torch.optim.swa_utils import AveragedModel, SWALR, get_ema_multi_avg_fn, update_bn
from torch.optim.lr_scheduler import CosineAnnealingLR

loader = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(4)]
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
loss_fn = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
scheduler = CosineAnnealingLR(optimizer, T_max=100)
swa_start = 2
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
for epoch in range(5):
    for input, target in loader:
        optimizer.zero_grad()
        loss_fn(model(input), target).backward()
        optimizer.step()
        ema_model.update_parameters(model)
    if epoch > swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(epoch, optimizer.param_groups[0]["lr"])
update_bn(loader, swa_model)
preds = swa_model(torch.ones(2, 4))
ema = ema_model(torch.ones(2, 4))
print(swa_model.n_averaged)
print(sorted(swa_model.state_dict().keys())[:3])
