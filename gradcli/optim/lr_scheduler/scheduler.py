"""The base class of learning rate schedulers, which set the rate of each parameter group at creation and in each
step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.errors import ArgumentError, CallError
from gradcli.optim.optimizer import Optimizer

# One number for all groups, or a list with one for each.
Numbers = float | Sequence[float]


class LRScheduler:
    """The base class of all schedulers: a subclass defines `get_lr`, the rates of all groups at `last_epoch`.

    `base_lrs` are the optimizer's initial rates. With a `last_epoch` other than -1 the schedule is resumed; raises
    KeyError if the groups then lack their initial rates.
    """

    base_lrs: list[float]
    last_epoch: int
    _step_count: int
    _last_lr: list[float]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0."
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._begin()

    def _begin(self) -> None:
        """Set the initial rates."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def restart(self) -> None:
        """Go back to the first epoch and the initial rates."""
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = rate
        self._is_initial = True
        try:
            self._go_to(0)
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of the groups at `last_epoch`, computed from the current ones."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates of the groups that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch."""
        self._step_count += 1
        self._go_to(self.last_epoch + 1 if epoch is None else epoch)

    def _go_to(self, epoch: int) -> None:
        self.last_epoch = epoch
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def _rates(self) -> list[float]:
        """The current rates of the groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and functions, for `load_state_dict`."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not _is_code(value)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume from the state of another scheduler of the same class."""
        vars(self).update(state_dict)


def for_each_group(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    """One value for each group; a single value is repeated. Raises ValueError for a list of another length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ArgumentError(f"Expected {count} values for {name}, but got {len(value)}")
    return [*value]


def _check_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise CallError(f"{type(optimizer).__name__} is not an Optimizer")


def _is_code(value: Any) -> bool:
    return callable(value) or (isinstance(value, list) and any(map(callable, value)))
