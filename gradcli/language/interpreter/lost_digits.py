"""Reports remainders and quotients of numbers beyond 2**53, whose last digits are rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.language.interpreter.values import TENSOR_CONVERTIBLE, Value
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.primitives.bind import Kind

_told: ContextVar[Callable[[str, float], object] | None] = ContextVar("gradcli_lost_digits", default=None)

# The operators and functions whose result depends on the last digits of their first operand, and those of them that are
# quotients.
OPERATORS, FUNCTIONS = frozenset(["%", "//"]), frozenset(["remainder", "fmod", "floor_divide"])
_QUOTIENTS = frozenset(["//", "floor_divide"])


@contextmanager
def telling(tell: Callable[[str, float], object]) -> Iterator[None]:
    """Within the block, `tell` is called for every such operation, with its operator or name and the first operand."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)


def examine(called: str, left: Value, result: Value) -> None:
    """Report an operation on a number beyond 2**53, if somebody is told; a quotient that is beyond it, too, is rounded."""
    tell = _told.get()
    if tell is None:
        return
    number, found = (_number(value) for value in (left, result))
    if number is None or found is None or not EXACT_INTEGERS < abs(number) < math.inf:
        return
    if called not in _QUOTIENTS or abs(found) < EXACT_INTEGERS:
        tell(called, number)


def _number(value: Value) -> float | None:
    """A number as a float; None for a tensor of others, and where no number is known, as while a program is recorded."""
    if isinstance(value, Tensor):
        value = value.inner
    if isinstance(value, (Kind, *TENSOR_CONVERTIBLE)) or arrays.shape(value) or arrays.is_complex(value):
        return None
    return float(value)
