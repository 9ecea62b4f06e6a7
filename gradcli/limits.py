"""How much a program may do before it is stopped: the limits where nobody says otherwise, and the budget of a run.

Work is charged where it is done, so that no way to it leads around: what is computed in `bind`, what is recorded
beside it where that happens, and what else takes time in proportion to what a program says, there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from gradcli.errors import LimitError, UsageError

MAX_STEPS = 2_000_000
# Elements of all arrays that one run computes: 3.2 GB in float64, if it kept them all.
MAX_ELEMENTS = 400_000_000
# Of digits that are to be proved, and of those that are computed with for them.
MAX_DIGITS = 1_000
MAX_PRECISION = 10_000
# Calls of functions within calls.
MAX_DEPTH = 100_000
# So many rows may reach a limit where it is not said how many may: each takes seconds, and there may be millions.
MOST_LIMITED = 10

# A step is what it takes to evaluate one part of a program, about 3 µs; what takes less is charged in these parts of it.
STEP = 8
# The shares of the steps and of the elements that are left that may be spent on what may be in vain: half of the steps,
# as an equation that is recorded takes 40 times those of an operation on numbers.
_SHARE_OF_STEPS, _SHARE_OF_ELEMENTS = 2, 4


class Budget:
    """What a run may still do: eighths of steps, and elements of arrays."""

    __slots__ = ("eighths", "elements", "max_elements", "max_steps")

    def __init__(self, max_steps: int, max_elements: int) -> None:
        self.max_steps = max_steps
        self.max_elements = max_elements
        self.eighths = max_steps * STEP
        self.elements = max_elements

    def charge_steps(self, eighths: int = STEP) -> None:
        """Count steps. Raises LimitError, and counts none, where so many are not left."""
        left = self.eighths - eighths
        if left < 0:
            raise LimitError(
                f"the program takes more than {self.max_steps:,} steps",
                hint="a loop may not end; raise the limit with --max-steps",
            )
        self.eighths = left

    def charge(self, elements: int) -> None:
        """Count array elements. Raises LimitError, and counts none, where so many are not left."""
        left = self.elements - elements
        if left < 0:
            raise LimitError(
                f"the program computes more than {self.max_elements:,} array elements",
                hint="raise the limit with --max-elements, or make the arrays smaller",
            )
        self.elements = left


def check(**given: int) -> None:
    """Raise UsageError for a limit, by its name, that is no whole number of 1 or more."""
    for name, limit in given.items():
        if type(limit) is not int or limit < 1:
            raise UsageError(f"'{name}' must be a whole number of 1 or more")


_current: ContextVar[Budget | None] = ContextVar("gradcli_budget", default=None)

# The budget of the run at hand, None where it has no limits.
budget = _current.get


def charge(elements: int) -> None:
    """Count array elements that are about to be made, or work that takes as long, against the limit of this run, if
    it has one."""
    left = _current.get()
    if left is not None:
        left.charge(elements)


def charge_steps(eighths: int = STEP) -> None:
    """Count what is about to be done, in eighths of steps, against the limit of this run, if it has one."""
    left = _current.get()
    if left is not None:
        left.charge_steps(eighths)


class within:
    """Within the block, taking more than `max_steps` or computing more than `max_elements` is a LimitError.

    A block inside such a block draws on the same budget: no part of a run has one of its own.
    """

    __slots__ = ("_budget", "_token")

    def __init__(self, max_steps: int = MAX_STEPS, max_elements: int = MAX_ELEMENTS) -> None:
        self._budget = Budget(max_steps, max_elements)
        self._token: Token[Budget | None] | None = None

    def __enter__(self) -> None:
        if _current.get() is None:
            self._token = _current.set(self._budget)

    def __exit__(self, *_error: object) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Within the block, work is charged to this budget."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def attempt() -> Iterator[None]:
    """Within the block, work is charged to a budget of its own, a share of what the run has left.

    For what may be in vain and is not missed then: a run that has no need of it must not fail by it.
    """
    whole = _current.get()
    if whole is None:
        yield
        return
    part = Budget(whole.max_steps, whole.max_elements)
    part.eighths, part.elements = whole.eighths // _SHARE_OF_STEPS, whole.elements // _SHARE_OF_ELEMENTS
    with spending(part):
        yield
