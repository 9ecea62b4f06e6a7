"""How much a program may do before it is stopped: the limits where nobody says otherwise, and the budget of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli.errors import LimitError

MAX_STEPS = 2_000_000
# Elements of all arrays that one run computes: 3.2 GB in float64, if it kept them all.
MAX_ELEMENTS = 400_000_000
# Calls of functions within calls.
MAX_DEPTH = 100_000


class Budget:
    """How much of something a run may still use."""

    __slots__ = ("hint", "left", "limit", "text")

    def __init__(self, limit: int, text: str, hint: str) -> None:
        self.limit = limit
        self.left = limit
        self.text = text
        self.hint = hint

    def charge(self, amount: int = 1) -> None:
        self.left -= amount
        if self.left < 0:
            raise LimitError(self.text.format(self.limit), hint=self.hint)


_budget: ContextVar[Budget | None] = ContextVar("gradcli_budget", default=None)
_steps: ContextVar[Budget | None] = ContextVar("gradcli_steps", default=None)


def limited() -> bool:
    """Whether this run has a limit on array elements."""
    return _budget.get() is not None


def charge(elements: int) -> None:
    """Count array elements that are about to be made against the limit of this run, if it has one."""
    budget = _budget.get()
    if budget is not None:
        budget.charge(elements)


@contextmanager
def max_elements(limit: int) -> Iterator[None]:
    """Within the block, computing more than `limit` array elements in all is a LimitError."""
    hint = "raise the limit with --max-elements, or make the arrays smaller"
    token = _budget.set(Budget(limit, "the program computes more than {:,} array elements", hint))
    try:
        yield
    finally:
        _budget.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """Within the block, elements are charged to a budget of its own, with as much left as the run's."""
    budget = _budget.get()
    token = _budget.set(None if budget is None else Budget(budget.left, budget.text, budget.hint))
    try:
        yield
    finally:
        _budget.reset(token)


def steps() -> Budget | None:
    """How many steps this run may still take, if it has a limit."""
    return _steps.get()


def charge_step(amount: int = 1) -> None:
    """Count steps against the limit of this run, if it has one."""
    budget = _steps.get()
    if budget is not None:
        budget.charge(amount)


@contextmanager
def max_steps(limit: int) -> Iterator[None]:
    """Within the block, taking more than `limit` steps, forward and backward, is a LimitError."""
    hint = "a loop may not end; raise the limit with --max-steps"
    token = _steps.set(Budget(limit, "the program takes more than {:,} steps", hint))
    try:
        yield
    finally:
        _steps.reset(token)
