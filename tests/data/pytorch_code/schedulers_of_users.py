import math

import torch
from torch import nn
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    _LRScheduler,
)


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, num_cycles=0.5, last_epoch=-1):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        progress = float(current_step - num_warmup_steps) / float(max(1, num_training_steps - num_warmup_steps))
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * float(num_cycles) * 2.0 * progress)))

    return LambdaLR(optimizer, lr_lambda, last_epoch)


class NoamLR(_LRScheduler):
    def __init__(self, optimizer, model_size, warmup_steps):
        self.model_size, self.warmup_steps = model_size, warmup_steps
        super().__init__(optimizer)

    def get_lr(self):
        last_epoch = max(1, self.last_epoch)
        scale = self.model_size ** (-0.5) * min(last_epoch ** (-0.5), last_epoch * self.warmup_steps ** (-1.5))
        return [base_lr * scale for base_lr in self.base_lrs]


class WarmupMultiStep(LRScheduler):
    def __init__(self, optimizer, milestones, gamma=0.1, warmup=3, last_epoch=-1):
        self.milestones, self.gamma, self.warmup = milestones, gamma, warmup
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        f = min(1.0, (self.last_epoch + 1) / self.warmup)
        return [b * f * self.gamma ** sum(self.last_epoch >= m for m in self.milestones) for b in self.base_lrs]


out = {}


def run(name, make, per=None, steps=14):
    net = nn.Linear(2, 1)
    opt = torch.optim.SGD([{"params": [net.weight], "lr": 0.5}, {"params": [net.bias]}], lr=0.1, momentum=0.9)
    s = make(opt)
    rec = []
    for i in range(steps):
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
        opt.zero_grad()
        if per is not None:
            s.step(per(i))
        else:
            s.step()
        rec.append([g["lr"] for g in opt.param_groups] + [g["momentum"] for g in opt.param_groups])
    out[name] = rec
    out[name + "_last"] = s.get_last_lr()
    st = s.state_dict()
    s2 = make(torch.optim.SGD([{"params": [net.weight], "lr": 0.5}, {"params": [net.bias]}], lr=0.1, momentum=0.9))
    s2.load_state_dict(st)
    out[name + "_le"] = getattr(s2, "last_epoch", 0)


run("warm", lambda o: get_cosine_schedule_with_warmup(o, 4, 14))
run("noam", lambda o: NoamLR(o, 64, 4))
run("wms", lambda o: WarmupMultiStep(o, [5, 8]))
run(
    "one",
    lambda o: OneCycleLR(
        o,
        max_lr=[1.0, 0.2],
        epochs=2,
        steps_per_epoch=8,
        pct_start=0.25,
        anneal_strategy="linear",
        div_factor=10,
        final_div_factor=100,
        three_phase=True,
    ),
)
run("one2", lambda o: OneCycleLR(o, 0.3, total_steps=20))
run(
    "plat",
    lambda o: ReduceLROnPlateau(
        o,
        "min",
        factor=0.5,
        patience=1,
        threshold=1e-3,
        threshold_mode="abs",
        cooldown=1,
        min_lr=[0.01, 0.02],
        eps=1e-9,
    ),
    per=lambda i: torch.tensor(1 / (1 + min(i, 3))),
)
run("plat2", lambda o: ReduceLROnPlateau(o, mode="max", patience=0), per=lambda i: -i * 1.0)
run("cawr", lambda o: CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=1e-3))
run("cawr2", lambda o: CosineAnnealingWarmRestarts(o, T_0=3), per=lambda i: i / 4)
run(
    "seq",
    lambda o: SequentialLR(
        o,
        [
            ConstantLR(o, factor=0.1, total_iters=2),
            LinearLR(o, start_factor=0.5, total_iters=4),
            ExponentialLR(o, gamma=0.9),
        ],
        milestones=[3, 8],
    ),
)
run(
    "chain",
    lambda o: ChainedScheduler([ConstantLR(o, factor=0.1, total_iters=2), ExponentialLR(o, gamma=0.9)], optimizer=o),
)
run("poly", lambda o: PolynomialLR(o, total_iters=6, power=2.0))
run("mult", lambda o: MultiplicativeLR(o, lr_lambda=lambda e: 0.95))
run("cyc", lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3, mode="exp_range", gamma=0.9))
run("ms", lambda o: MultiStepLR(o, milestones=[3, 7], gamma=0.1))
run("lam", lambda o: LambdaLR(o, lr_lambda=[lambda e: 0.9**e, lambda e: 1 / (1 + e)]))
