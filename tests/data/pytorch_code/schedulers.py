import torch
from torch.optim import lr_scheduler as S
def opt():
    return torch.optim.SGD([{"params": [torch.nn.Parameter(torch.zeros(1))]}, {"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.5}], lr=0.1, momentum=0.9)
made = {
    "step": lambda o: S.StepLR(o, 3, gamma=0.5),
    "multi": lambda o: S.MultiStepLR(o, [2, 5]),
    "exp": lambda o: S.ExponentialLR(o, 0.9),
    "cos": lambda o: S.CosineAnnealingLR(o, 5),
    "lambda": lambda o: S.LambdaLR(o, [lambda e: 0.95 ** e, lambda e: 1 / (e + 1)]),
    "mult": lambda o: S.MultiplicativeLR(o, lambda e: 0.9),
    "lin": lambda o: S.LinearLR(o, 0.5, total_iters=4),
    "const": lambda o: S.ConstantLR(o, 0.5, 3),
    "poly": lambda o: S.PolynomialLR(o, 5, power=2.0),
    "cyc": lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"),
    "one": lambda o: S.OneCycleLR(o, max_lr=0.1, steps_per_epoch=5, epochs=2),
    "warm": lambda o: S.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
    "seq": lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], milestones=[2]),
    "chain": lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)]),
}
rates = {}
for name, make in made.items():
    o = opt(); s = make(o); found = []
    for _ in range(8):
        o.step(); s.step()
        found.append(s.get_last_lr() if name != "none" else None)
    rates[name] = found
o = opt(); plateau = S.ReduceLROnPlateau(o, "min", factor=0.5, patience=1)
seen = []
for v in (1.0, 0.9, 0.95, 0.96, 0.97, 0.5):
    plateau.step(v); seen.append(o.param_groups[0]["lr"])
_state = S.StepLR(opt(), 3).state_dict()
print(sorted(k for k in _state if not k.startswith("_")))
