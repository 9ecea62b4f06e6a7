"""Functionals that did not reach their tolerance: collected where somebody is told, an error elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from gradcli.autograd.modes import current_span
from gradcli.errors import EvaluationError, Span


class Shortfall(NamedTuple):
    """What fell short, as a sentence, and the place of the functional in the program."""

    message: str
    span: Span | None


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


def report(message: str) -> None:
    """Report that a functional fell short. Raises EvaluationError where nobody collects."""
    found = _collected.get()
    if found is None:
        raise EvaluationError(message, hint="rtol= and atol= set the tolerance")
    shortfall = Shortfall(message, current_span.get())
    if shortfall not in found:
        found.append(shortfall)
