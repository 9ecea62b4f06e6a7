"""Schedules that multiply the learning rate by factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.errors import ArgumentError, expect_callable
from gradcli.optim.lr_scheduler.scheduler import LRScheduler, for_each_group
from gradcli.optim.optimizer import Optimizer

Factor = Callable[[int], float]


class _OfFunctions(LRScheduler):
    """The base class of schedules with one function of the epoch, or one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1) -> None:
        self.lr_lambdas = for_each_group(lr_lambda, optimizer, "lr_lambda")
        for function in self.lr_lambdas:
            expect_callable(function, "lr_lambda should be a function")
        super().__init__(optimizer, last_epoch)


class LambdaLR(_OfFunctions):
    """The initial rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        return [base * function(self.last_epoch) for base, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_OfFunctions):
    """The previous rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates
        return [rate * function(self.last_epoch) for rate, function in zip(self._rates, self.lr_lambdas)]

    def restart(self) -> None:
        """Go back to epoch 0, and multiply the current rates by its factor, as PyTorch does."""
        self._go_to(0)


class _Stepwise(LRScheduler):
    """The base class of schedules that multiply the rates of all groups by one factor in each epoch."""

    def factor(self) -> float:
        """The factor from the rates of the epoch before to those of `last_epoch`."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        factor = self.factor()
        return [rate * factor for rate in self._rates]


class StepLR(_Stepwise):
    """Multiplies the rate by gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0


class MultiStepLR(_Stepwise):
    """Multiplies the rate by gamma at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]


class ConstantLR(_Stepwise):
    """A fraction of the initial rate for `total_iters` epochs, then the initial rate."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError("Constant multiplicative factor expected to be between 0 and 1.")
        self.fraction, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self.last_epoch == 0:
            return self.fraction
        return 1.0 / self.fraction if self.last_epoch == self.total_iters else 1.0


class LinearLR(_Stepwise):
    """Linear from `start_factor` to `end_factor` times the initial rate in `total_iters` epochs, then constant."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ArgumentError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ArgumentError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)


class ExponentialLR(_Stepwise):
    """Multiplies the rate by gamma after each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        return 1.0 if self._is_initial else self.gamma


class PolynomialLR(_Stepwise):
    """(1 - epoch/total_iters)**power times the initial rate, until it is 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        now, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        share: Any = (now / before) ** self.power
        return float(share)
