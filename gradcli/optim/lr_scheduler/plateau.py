"""The schedule that reduces the learning rate when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from gradcli.errors import ArgumentError
from gradcli.optim.lr_scheduler.scheduler import LRScheduler, Numbers, for_each_group
from gradcli.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor`, down to at least `min_lr`, when a metric has not improved for more than
    `patience` steps; during the next `cooldown` steps none are counted. An improvement is lower or higher than the best
    value, by `mode`, by the relative or, with threshold_mode="abs", absolute `threshold`."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Numbers = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ArgumentError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"threshold mode {threshold_mode} is unknown!")
        self.mode, self.factor, self.patience, self.eps = mode, factor, patience, eps
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0
        self.min_lrs = for_each_group(min_lr, optimizer, "min_lr")
        super().__init__(optimizer)
        self.last_epoch = 0

    def _begin(self) -> None:
        """Keep the initial rates."""
        self._last_lr = self._rates

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advance to the next epoch, with the current value of the metric."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates

    def _is_better(self, current: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "abs":
            return sign * current < sign * self.best - self.threshold
        return sign * current < sign * self.best * (1.0 - sign * self.threshold)

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            reduced = max(group["lr"] * self.factor, least)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced
