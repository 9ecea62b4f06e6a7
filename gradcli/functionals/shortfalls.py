"""Functionals that did not reach their tolerance: collected where somebody is told, an error elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, Span
from gradcli.named_tuples import NamedTuple


class Shortfall(NamedTuple):
    """A functional that fell short: its name, its place in the program, and the largest error that was estimated."""

    operation: str
    span: Span | None
    error: float

    @property
    def message(self) -> str:
        return f"the value of '{self.operation}' is accurate to about {self.error:.1g} only"


_collected: ContextVar[list[Shortfall] | None] = ContextVar("gradcli_shortfalls", default=None)


@contextmanager
def collecting() -> Iterator[list[Shortfall]]:
    """Within the block, functionals that fall short are added to the list that is yielded."""
    found: list[Shortfall] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


_reasons: ContextVar[list[str] | None] = ContextVar("gradcli_undefined_functionals", default=None)


@contextmanager
def undefined_as_nan() -> Iterator[list[str]]:
    """Within the block, functionals that have no value are nan, and the reasons are added to the list that is yielded."""
    found: list[str] = []
    token = _reasons.set(found)
    try:
        yield found
    finally:
        _reasons.reset(token)


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


def report(operation: str, error: float) -> None:
    """Report that a functional fell short, with its estimated error. Raises EvaluationError where nobody collects."""
    shortfall = Shortfall(operation, current_span.get(), error)
    found = _collected.get()
    if found is None:
        raise EvaluationError(shortfall.message, hint="rtol= and atol= set the tolerance")
    for i, known in enumerate(found):
        if known[:2] == shortfall[:2]:
            found[i] = max(known, shortfall, key=lambda s: s.error)
            return
    found.append(shortfall)
