"""The default limits on the work of a program, and the budget of a run from which the work is charged.

Work is charged where it is done, so that it cannot be avoided: computed elements in `bind`, recorded equations where
they are recorded, and any other work that is proportional to the size of a program at its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from gradcli.errors import LimitError, UsageError

# Steps of one run, about 3 µs each.
MAX_STEPS = 2_000_000
# Elements of all arrays that one run computes; kept all at once, they would take 3.2 GB in float64.
MAX_ELEMENTS = 400_000_000
# Bytes of the numbers that the rounds of a loop keep for a backward pass. Loops that would keep more keep each √n-th
# round and run the others again, which takes about as long as writing that many numbers to memory and reading them.
MAX_STORED_BYTES = 2**26
# The largest number of digits that can be requested, and the largest working precision for them, in digits.
MAX_DIGITS = 1_000
MAX_PRECISION = 10_000
# Depth of nested function calls.
MAX_DEPTH = 100_000
# Rows that may reach a limit, by default: each of them takes seconds, and there may be millions.
MAX_LIMITED_ROWS = 10

# A step is the time to evaluate one node of a program, about 3 µs. This is its number of charge units: all costs are
# given in eighths of a step.
UNITS_PER_STEP = 8
# Divisors of the remaining steps and elements that `optional_budget` may spend: half of the steps, as recording an equation
# takes 40 times as many as an operation on numbers.
_SHARE_OF_STEPS, _SHARE_OF_ELEMENTS = 2, 4
# Steps that the examination of digits may take where the run took fewer, 0.3 s: it records a run of numbers.
_LEAST_DIAGNOSIS = 100_000


class Budget:
    """The remaining work of a run: eighths of steps, and elements of arrays."""

    __slots__ = ("eighths", "elements", "max_elements", "max_steps")

    def __init__(self, max_steps: int, max_elements: int) -> None:
        self.max_steps = max_steps
        self.max_elements = max_elements
        self.eighths = max_steps * UNITS_PER_STEP
        self.elements = max_elements

    def charge_steps(self, eighths: int = UNITS_PER_STEP) -> None:
        """Charge steps. Raises LimitError, and charges none, where fewer are left."""
        left = self.eighths - eighths
        if left < 0:
            raise self._too_many_steps()
        self.eighths = left

    def require_steps(self, steps: float) -> None:
        """Raise LimitError if fewer steps are left than work that has to be done will take, and charge none."""
        if self.eighths < steps * UNITS_PER_STEP:
            raise self._too_many_steps()

    def _too_many_steps(self) -> LimitError:
        return LimitError(
            f"the program takes more than {self.max_steps:,} steps",
            hint="a loop may not end; raise the limit with --max-steps",
        )

    def charge(self, elements: int) -> None:
        """Charge array elements. Raises LimitError, and charges none, where fewer are left."""
        left = self.elements - elements
        if left < 0:
            raise LimitError(
                f"the program computes more than {self.max_elements:,} array elements",
                hint="raise the limit with --max-elements, or make the arrays smaller",
            )
        self.elements = left


def check(**given: int) -> None:
    """Raise UsageError for a named limit that is not an integer of at least 1."""
    for name, limit in given.items():
        if type(limit) is not int or limit < 1:
            raise UsageError(f"'{name}' must be a whole number of 1 or more")


_current: ContextVar[Budget | None] = ContextVar("gradcli_budget", default=None)

# The budget of the current run, None where it is unlimited.
budget = _current.get


def charge(elements: int) -> None:
    """Charge array elements that are about to be computed, or work that takes as long, to the current budget."""
    left = _current.get()
    if left is not None:
        left.charge(elements)


def charge_steps(eighths: int = UNITS_PER_STEP) -> None:
    """Charge work that is about to be done, in eighths of a step, to the current budget."""
    left = _current.get()
    if left is not None:
        left.charge_steps(eighths)


def require_steps(steps: float) -> None:
    """Raise LimitError if the current budget has fewer steps left than work that has to be done will take."""
    left = _current.get()
    if left is not None:
        left.require_steps(steps)


class within:
    """Context manager that limits the block to `max_steps` steps and `max_elements` array elements.

    Raises LimitError beyond these. A nested block draws on the budget of the outer one.
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
def using_budget(budget: Budget) -> Iterator[None]:
    """Within the block, charge all work to this budget."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def optional_budget() -> Iterator[None]:
    """Within the block, charge all work to a separate budget, a share of what the run has left.

    This is for optional work that may fail, so that it cannot exhaust the budget of a run that does not need it.
    """
    whole = _current.get()
    if whole is None:
        yield
        return
    with using_budget(_share(whole)):
        yield


@contextmanager
def diagnosis_budget() -> Iterator[None]:
    """Within the block, charge all work to a budget as that of `optional_budget`, of no more steps than the run has
    taken, or than a short one may take.

    This is for the examination of the digits of a result: it is not worth more than the result.
    """
    whole = _current.get()
    if whole is None:
        yield
        return
    part = _share(whole)
    taken = whole.max_steps * UNITS_PER_STEP - whole.eighths
    part.eighths = min(part.eighths, max(taken, _LEAST_DIAGNOSIS * UNITS_PER_STEP))
    with using_budget(part):
        yield


def _share(whole: Budget) -> Budget:
    part = Budget(whole.max_steps, whole.max_elements)
    part.eighths, part.elements = whole.eighths // _SHARE_OF_STEPS, whole.elements // _SHARE_OF_ELEMENTS
    return part
