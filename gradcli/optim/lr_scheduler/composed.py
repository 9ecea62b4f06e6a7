"""Schedules composed of other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import ArgumentError
from gradcli.optim.lr_scheduler.plateau import ReduceLROnPlateau
from gradcli.optim.lr_scheduler.scheduler import LRScheduler
from gradcli.optim.optimizer import Optimizer


class _Composed(LRScheduler):
    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(f"{name} does not support `ReduceLROnPlateau`, which needs a number in each step")
            if scheduler.optimizer is not optimizer:
                raise ArgumentError(f"{name} expects all schedulers to belong to the same optimizer, not {number}")
        self._schedulers, self.optimizer = [*schedulers], optimizer

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """Runs one schedule up to the first milestone, then restarts with the next one, and so on."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ArgumentError("SequentialLR expects at least one scheduler, but got no scheduler.")
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._take(schedulers, optimizer)
        self._milestones = [*milestones]
        self.last_epoch = last_epoch + 1
        # Each scheduler set rates when it was created; start with those of the first one.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in _innermost(schedulers):
            scheduler.last_epoch -= 1
        first = schedulers[bisect_right(self._milestones, 0)]
        first._begin()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            scheduler.restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Applies all schedules in each step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ArgumentError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self._take(schedulers, schedulers[0].optimizer if optimizer is None else optimizer)
        self._last_lr = self._rates

    def step(self, epoch: int | None = None) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates


def _innermost(schedulers: Sequence[LRScheduler]) -> list[LRScheduler]:
    """The schedulers, with composed ones replaced by their parts."""
    found: list[LRScheduler] = []
    for scheduler in schedulers:
        found += _innermost(scheduler._schedulers) if isinstance(scheduler, _Composed) else [scheduler]
    return found
