"""Functionals that did not reach their tolerance: collected where somebody is told, an error elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, Span
from gradcli.named_tuples import NamedTuple


class Shortfall(NamedTuple):
    """A functional that fell short, in its value or in a derivative: its name, its place in the program, and the largest
    error that was estimated."""

    operation: str
    span: Span | None
    is_derivative: bool
    error: float

    @property
    def code(self) -> str:
        return "inaccurate"

    @property
    def message(self) -> str:
        what = "a derivative" if self.is_derivative else "the value"
        return f"{what} of '{self.operation}' is accurate to about {self.error:.1g} only"


class SwitchAtLimit(NamedTuple):
    """A functional whose integrand switches at a limit, from which the switch may move."""

    operation: str
    span: Span | None
    limit: float

    @property
    def code(self) -> str:
        return "nonsmooth"

    @property
    def message(self) -> str:
        return (
            f"the integrand of '{self.operation}' switches at the limit {self.limit:g}: derivatives are those with the "
            "switch on one side of it"
        )


class Cancellation(NamedTuple):
    """A functional that takes a difference for 0 which may be more than rounding errors: its name, its place in the
    program, the difference, and what the value is otherwise, if that is known."""

    operation: str
    span: Span | None
    difference: float
    otherwise: str | None

    @property
    def code(self) -> str:
        return "inaccurate"

    @property
    def message(self) -> str:
        other = "another" if self.otherwise is None else self.otherwise
        return (
            f"'{self.operation}' takes a difference of {self.difference:.2g} for 0, as it may be the rounding of what it "
            f"is made of; if it is not, the value is {other}"
        )


Note = Shortfall | SwitchAtLimit | Cancellation
T = TypeVar("T")
_collected: ContextVar[list[Note] | None] = ContextVar("gradcli_shortfalls", default=None)
_ignored: ContextVar[bool] = ContextVar("gradcli_ignored_shortfalls", default=False)
_rows: ContextVar[list[Any] | None] = ContextVar("gradcli_inaccurate_rows", default=None)
_reasons: ContextVar[list[str] | None] = ContextVar("gradcli_undefined_functionals", default=None)


@contextmanager
def _new_list(variable: ContextVar[list[T] | None]) -> Iterator[list[T]]:
    """Within the block, the variable has the list that is yielded."""
    found: list[T] = []
    token = variable.set(found)
    try:
        yield found
    finally:
        variable.reset(token)


def collecting() -> AbstractContextManager[list[Note]]:
    """Within the block, functionals that fall short, or switch at a limit, are added to the list that is yielded."""
    return _new_list(_collected)


def noting_rows() -> AbstractContextManager[list[Any]]:
    """Within the block, functionals of many rows whose values or derivatives fall short, which is no error, add to the list
    that is yielded where they do: arrays of truth values whose first axis is that of the rows."""
    return _new_list(_rows)


def is_noting_rows() -> bool:
    """Return whether functionals that fall short are noted by rows."""
    return _rows.get() is not None


def undefined_as_nan() -> AbstractContextManager[list[str]]:
    """Within the block, functionals that have no value are nan, and the reasons are added to the list that is yielded."""
    return _new_list(_reasons)


def undefined(reason: str, *, is_derivative: bool) -> float:
    """The nan in place of a functional that has no value, or in place of a derivative of one. Raises EvaluationError where
    none is wanted."""
    found = _reasons.get()
    if found is None and is_derivative:
        raise EvaluationError(
            f"no derivative was found: with the derivative inside, {reason}", hint="--no-grad has the value"
        )
    if found is None:
        raise EvaluationError(reason)
    found.append(reason)
    return math.nan


@contextmanager
def ignoring() -> Iterator[None]:
    """Within the block, functionals that fall short are of no interest."""
    token = _ignored.set(True)
    try:
        yield
    finally:
        _ignored.reset(token)


def is_collecting() -> bool:
    """Return whether functionals that fall short are collected, and no `ignoring` block is active."""
    return _collected.get() is not None and not _ignored.get()


def is_told() -> bool:
    """Return whether functionals that fall short are collected, or noted by rows, and no `ignoring` block is active."""
    return is_collecting() or (is_noting_rows() and not _ignored.get())


def report(operation: str, error: float, *, is_derivative: bool = False) -> None:
    """Report that a functional fell short, with its estimated error.

    Of reports of one functional that are alike but for the error, the one with the largest error is kept. Does nothing
    within `ignoring`. Raises EvaluationError where nobody collects.
    """
    if _ignored.get():
        return
    shortfall = Shortfall(operation, current_span.get(), is_derivative, error)
    found = _collected.get()
    if found is None:
        raise EvaluationError(shortfall.message, hint="rtol= and atol= set the tolerance")
    for i, known in enumerate(found):
        if isinstance(known, Shortfall) and known[:3] == shortfall[:3]:
            found[i] = max(known, shortfall, key=lambda s: s.error)
            return
    found.append(shortfall)


def report_cancellation(operation: str, difference: float, otherwise: str | None) -> None:
    """Report that a functional takes a difference for 0; the first report of each is kept.

    Does nothing within `ignoring`. Raises EvaluationError where nobody collects.
    """
    if _ignored.get():
        return
    note = Cancellation(operation, current_span.get(), difference, otherwise)
    found = _collected.get()
    if found is None:
        raise EvaluationError(note.message)
    if not any(isinstance(known, Cancellation) and known[:2] == note[:2] for known in found):
        found.append(note)


def report_each(operation: str, errors: Any, *, is_derivative: bool = False) -> None:
    """Report functionals with these estimated errors, an array, of which those fell short that are not 0, if somebody
    collects or notes them."""
    found = _rows.get()
    if found is not None and not _ignored.get():
        found.append(errors > 0)
    elif is_collecting() and errors.any():
        report(operation, float(errors.max()), is_derivative=is_derivative)


def report_switch(operation: str, limit: float) -> None:
    """Report a functional whose integrand switches at a limit, if somebody collects."""
    found = _collected.get()
    note = SwitchAtLimit(operation, current_span.get(), limit)
    if found is not None and not _ignored.get() and note not in found:
        found.append(note)
