"""Averages of the weights of a network over its training, with the names and behaviour of `torch.optim.swa_utils`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.modes import no_grad
from gradcli.errors import ArgumentError
from gradcli.nn.module import Module
from gradcli.nn.norm_layers import BatchNormalization
from gradcli.optim.lr_scheduler.scheduler import LRScheduler, for_each_group
from gradcli.optim.optimizer import Optimizer

# The new average from the average, the newest value, and how many values are averaged already.
AverageOfOne = Callable[[Any, Any, Any], Any]
# The same, which changes all averages in place.
AverageOfAll = Callable[[Sequence[Any], Sequence[Any], Any], None]

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_avg_fn(decay: float = 0.999) -> AverageOfOne:
    """The exponential moving average. Raises ArgumentError for a decay outside of 0 to 1."""
    _check_decay(decay)
    return lambda average, newest, _count: decay * average + (1 - decay) * newest


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageOfAll:
    """The exponential moving average of several tensors in place. Raises ArgumentError for a decay outside of 0 to
    1."""
    _check_decay(decay)
    return lambda averages, newest, _count: _move(averages, newest, 1 - decay)


def get_swa_avg_fn() -> AverageOfOne:
    """The mean of all values."""
    return lambda average, newest, count: average + (newest - average) / (count + 1)


def get_swa_multi_avg_fn() -> AverageOfAll:
    """The mean of all values of several tensors in place."""
    return lambda averages, newest, count: _move(averages, newest, 1 / (float(count) + 1))


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _move(averages: Sequence[Any], newest: Sequence[Any], weight: float) -> None:
    with no_grad():
        for average, value in zip(averages, newest):
            average.lerp_(value, weight)


class AveragedModel(Module):
    """A copy of a network whose parameters are averages, by default the mean, of those at each `update_parameters`.

    `avg_fn` gives the average of one tensor, `multi_avg_fn` changes those of all in place. Buffers are averaged too
    with `use_buffers`, and else copied.
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AverageOfOne | None = None,
        multi_avg_fn: AverageOfAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model) if device is None else copy.deepcopy(model).to(device)
        self.register_buffer("n_averaged", tensor(0, dtype="int64", device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn or (get_swa_multi_avg_fn() if avg_fn is None else None)
        self.use_buffers = use_buffers

    def forward(self, *arguments: Any, **keywords: Any) -> Any:
        return self.module(*arguments, **keywords)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of the network into the averages."""
        averages, newest = self._averaged(self.module), self._averaged(model)
        if not int(self.n_averaged):
            _copy(averages, newest)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, newest, self.n_averaged)
        elif self.avg_fn is not None:
            _copy(averages, [self.avg_fn(a, n, self.n_averaged) for a, n in zip(averages, newest)])
        if not self.use_buffers:
            _copy(self.module.buffers(), model.buffers())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> list[Any]:
        buffers = model.buffers() if self.use_buffers else ()
        return [value.detach() for value in chain(model.parameters(), buffers)]


def _copy(targets: Iterable[Any], sources: Iterable[Any]) -> None:
    for target, source in zip(targets, sources):
        target.detach().copy_(source.detach())


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running means and variances of a network's batch normalisations anew, over all batches of `loader`,
    whose inputs may be the first items of lists."""
    layers = [module for module in model.modules() if isinstance(module, BatchNormalization)]
    if not layers:
        return
    momenta, training = [layer.momentum for layer in layers], model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        # Each batch then counts the same.
        layer.momentum = None
    with no_grad():
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)


_COURSES: dict[str, Callable[[float], float]] = {
    "cos": lambda t: (1 - math.cos(math.pi * t)) / 2,
    "linear": lambda t: t,
}


class SWALR(LRScheduler):
    """Goes from the current rates to `swa_lr` in `anneal_epochs` steps, by a cosine or linearly, and stays there.

    Raises ArgumentError for another strategy or a negative number of epochs.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_each_group(swa_lr, optimizer, "swa_lr"), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in _COURSES:
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step = self._step_count - 1
        if not self.anneal_epochs:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        return [
            group["swa_lr"] * now + _begun(group["lr"], group["swa_lr"], before) * (1 - now)
            for group in self.optimizer.param_groups
        ]

    def _part(self, step: int) -> float:
        """The part of the way that is done after a number of steps."""
        return _COURSES[self.anneal_strategy](max(0.0, min(1.0, step / max(1, self.anneal_epochs))))


def _begun(rate: float, last: float, part: float) -> float:
    """The rate from which `part` of the way to `last` leads to `rate`."""
    return last if part == 1 else (rate - part * last) / (1 - part)
