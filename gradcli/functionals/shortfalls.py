"""Functionals that did not reach their tolerance: collected where somebody is told, an error elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

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


T = TypeVar("T")
_collected: ContextVar[list[Shortfall] | None] = ContextVar("gradcli_shortfalls", default=None)
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


def collecting() -> AbstractContextManager[list[Shortfall]]:
    """Within the block, functionals that fall short are added to the list that is yielded."""
    return _new_list(_collected)


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
