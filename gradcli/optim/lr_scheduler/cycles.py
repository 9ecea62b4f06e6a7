"""Cosine and cyclic learning rate schedules.

I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (ICLR 2017); L. N. Smith, "Cyclical
Learning Rates for Training Neural Networks" (WACV 2017); L. N. Smith and N. Topin, "Super-Convergence: Very Fast Training
of Neural Networks Using Large Learning Rates" (arXiv:1708.07120).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.errors import ArgumentError
from gradcli.named_tuples import NamedTuple
from gradcli.optim.lr_scheduler.scheduler import LRScheduler, Numbers, for_each_group
from gradcli.optim.optimizer import Optimizer


def _cosine(start: float, end: float, share: float) -> float:
    """Cosine interpolation from `start` to `end`."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _line(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing from the initial rate to `eta_min` in `T_max` epochs, and back in the next `T_max`."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        least, most, epoch = self.eta_min, self.T_max, self.last_epoch
        if self._step_count == 1 and epoch > 0:
            return [_cosine(base, least, epoch / most) for base in self.base_lrs]
        if (epoch - 1 - most) % (2 * most) == 0:
            # The previous rate is eta_min, so that the recursive formula would divide by 0.
            rise = (1 - math.cos(math.pi / most)) / 2
            return [rate + (base - least) * rise for rate, base in zip(self._rates, self.base_lrs)]
        now, before = (1 + math.cos(math.pi * n / most) for n in (epoch, epoch - 1))
        return [now / before * (rate - least) + least for rate in self._rates]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeated cosine annealing from the initial rate to `eta_min`: the first period has `T_0` epochs, each next one
    `T_mult` times as many."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ArgumentError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ArgumentError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [_cosine(base, self.eta_min, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to a given one, which may be fractional."""
        self._step_count += 1
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = max(self.last_epoch, 0) if epoch is None else epoch
            if epoch < 0:
                raise ArgumentError(f"Expected non-negative epoch, but got {epoch}")
            self._restart_before(epoch)
        self._go_to(math.floor(epoch))

    def _restart_before(self, epoch: float) -> None:
        """Set the length of the period that contains an epoch, and the position in it."""
        start, length = 0, self.T_0
        if self.T_mult == 1:
            start = int(epoch // length) * length
        else:
            while start + length <= epoch:
                start, length = start + length, length * self.T_mult
        self.T_cur, self.T_i = epoch - start, length


class _MomentumScheduler(LRScheduler):
    """The base class of schedules that also vary the momentum, inversely to the rate: that of SGD, or Adam's beta1."""

    def _begin_momentum(self, base_momentum: Numbers, max_momentum: Numbers, is_new: bool) -> None:
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ArgumentError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        least = for_each_group(base_momentum, optimizer, "base_momentum")
        most = for_each_group(max_momentum, optimizer, "max_momentum")
        if is_new:
            for group, low, high in zip(optimizer.param_groups, least, most):
                group |= {"base_momentum": low, "max_momentum": high}
                set_momentum(group, high)


def set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set the momentum of a parameter group."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(_MomentumScheduler):
    """Linear cycles between `base_lr` and `max_lr`, up in `step_size_up` steps and down in `step_size_down`. The
    amplitude is constant; halved in each cycle by mode="triangular2"; multiplied by gamma**step by "exp_range"; or by
    `scale_fn` of the number of the cycle or, with scale_mode="iterations", of the step."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Numbers,
        max_lr: Numbers,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.8,
        max_momentum: Numbers = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError("mode is invalid and scale_fn is None")
        self.optimizer = optimizer
        base_lrs = for_each_group(base_lr, optimizer, "base_lr")
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                group["lr"] = rate
        self.max_lrs = for_each_group(max_lr, optimizer, "max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None or mode != "exp_range" else "iterations"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        way = 1.0 + self.last_epoch / self.total_size - cycle
        height = way / self.step_ratio if way <= self.step_ratio else (way - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                low, high = group["base_momentum"], group["max_momentum"]
                set_momentum(group, high - (high - low) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def _scale(self, cycle: int) -> float:
        place = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.scale_fn is not None:
            return self.scale_fn(place)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (place - 1)
        return float(self.gamma**place) if self.mode == "exp_range" else 1.0


class _Phase(NamedTuple):
    """A phase of a cycle: its last step, and the names of the rates and momenta that it interpolates between."""

    last: float
    rates: tuple[str, str]
    momenta: tuple[str, str]


class OneCycleLR(_MomentumScheduler):
    """One cycle: from max_lr/div_factor up to `max_lr` in the first `pct_start` of all steps, then down to the initial
    rate divided by `final_div_factor`, by cosine or, with anneal_strategy="linear", linear interpolation. With
    `three_phase` it first goes down to the initial rate, symmetrically to the rise."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Numbers,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.85,
        max_momentum: Numbers = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self.optimizer = optimizer
        self.total_steps = _whole_cycle(total_steps, epochs, steps_per_epoch)
        self.anneal_strategy = anneal_strategy
        self.phases = _phases(pct_start * self.total_steps, self.total_steps, three_phase)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, for_each_group(max_lr, optimizer, "max_lr")):
                first = most / div_factor
                group |= {"initial_lr": first, "max_lr": most, "min_lr": first / final_div_factor}
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        number = next((i for i, phase in enumerate(self.phases[:-1]) if step <= phase.last), len(self.phases) - 1)
        phase, begin = self.phases[number], self.phases[number - 1].last if number else 0.0
        share = (step - begin) / (phase.last - begin)
        curve = _cosine if self.anneal_strategy == "cos" else _line

        def between(group: dict[str, Any], names: tuple[str, str]) -> float:
            return curve(group[names[0]], group[names[1]], share)

        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                set_momentum(group, between(group, phase.momenta))
        return [between(group, phase.rates) for group in self.optimizer.param_groups]


def _whole_cycle(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ArgumentError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    named = (
        {"total_steps": total_steps}
        if total_steps is not None
        else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    )
    for name, count in named.items():
        if not isinstance(count, int) or count <= 0:
            raise ArgumentError(f"Expected positive integer {name}, but got {count}")
    return math.prod(count for count in named.values() if count is not None)


def _phases(up: float, total: int, three_phase: bool) -> list[_Phase]:
    rise = _Phase(up - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    fall = ("base_momentum", "max_momentum")
    if three_phase:
        return [
            rise,
            _Phase(2 * up - 2, ("max_lr", "initial_lr"), fall),
            _Phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
        ]
    return [rise, _Phase(total - 1, ("max_lr", "min_lr"), fall)]
