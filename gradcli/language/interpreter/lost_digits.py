"""Reports remainders and quotients of numbers beyond 2**53, whose last digits are rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.language.interpreter.values import Value
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.primitives.bind import Kind

_told: ContextVar[Callable[[str, float], object] | None] = ContextVar("gradcli_lost_digits", default=None)

# The operators whose result depends on the last digits of their left operand.
OPERATORS = frozenset(["%", "//"])


@contextmanager
def telling(tell: Callable[[str, float], object]) -> Iterator[None]:
    """Within the block, `tell` is called for every such operation, with its operator and the left operand."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)


def examine(operator: str, left: Value, result: Value) -> None:
    """Report an operation on a number beyond 2**53, if somebody is told, and the result is not beyond it, too."""
    tell = _told.get()
    if tell is None:
        return
    number, found = (_number(value) for value in (left, result))
    if number is None or found is None or not EXACT_INTEGERS < abs(number) < math.inf:
        return
    if operator == "%" or abs(found) < EXACT_INTEGERS:
        tell(operator, number)


def _number(value: Value) -> float | None:
    """A number as a float; None for a tensor of others, and where no number is known, as while a program is recorded."""
    if isinstance(value, Tensor):
        value = value.inner
    if isinstance(value, Kind) or arrays.shape(value) or arrays.is_complex(value):
        return None
    return float(value)
