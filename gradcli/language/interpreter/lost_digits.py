"""Reports results that depend on digits which floats beyond 2**53 do not have, such as remainders of larger numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.language.interpreter.values import TENSOR_CONVERTIBLE, Value
from gradcli.language.operations import EXACT_INTEGERS
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.entries.arithmetic import absolute
from gradcli.primitives.entries.comparisons import less_equal

_told: ContextVar[Callable[[str, float], object] | None] = ContextVar("gradcli_lost_digits", default=None)

# The functions whose result depends on the last digits of their first operand, and those of them, with operators, that
# are quotients.
FUNCTIONS = frozenset(["remainder", "fmod", "floor_divide"])
_QUOTIENTS = frozenset(["//", "floor_divide"])
# A sum that is smaller than a term by this factor has less than half of its digits.
_CANCELLED = 2.0**-26


@contextmanager
def telling(tell: Callable[[str, float], object]) -> Iterator[None]:
    """Within the block, `tell` is called for every such operation, with its operator or name and the operand."""
    token = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(token)


def examine(called: str, left: Value, result: Value, *, rolls: bool) -> None:
    """Report a remainder or quotient of a number beyond 2**53, if somebody is told; a quotient that is beyond it, too,
    is rounded.

    Raises NotRecordableError if a loop is traced that `rolls`, for it to be run round by round.
    """
    tell, inside = _told.get(), constant(left)
    if rolls and isinstance(inside, Kind) and not assume(less_equal(absolute(inside), EXACT_INTEGERS)):
        raise NotRecordableError("digits beyond 2**53 are computed, or reported, round by round")
    if tell is None or isinstance(inside, Kind):
        return
    number, found = (_largest(value) for value in (left, result))
    if number > EXACT_INTEGERS and (called not in _QUOTIENTS or found < EXACT_INTEGERS):
        tell(called, number)


def cancels(left: Value, right: Value, result: Value) -> bool:
    """Return whether a sum or difference is one of numbers beyond 2**53 that cancel.

    Gradients tell more of the rounding errors of numbers that have them, see `gradcli.evaluation.rounding_loss`.
    """
    one, other, found = _number(left), _number(right), _number(result)
    if -EXACT_INTEGERS <= one <= EXACT_INTEGERS or -EXACT_INTEGERS <= other <= EXACT_INTEGERS:
        return False
    return abs(found) <= _CANCELLED * max(abs(one), abs(other)) < math.inf


def differs_by_rounding(left: Value, right: Value) -> bool:
    """Return whether numbers beyond 2**53 that are compared differ by rounding alone."""
    one, other = _number(left), _number(right)
    if -EXACT_INTEGERS <= one <= EXACT_INTEGERS or left is right:
        return False
    return abs(one) < math.inf and abs(one - other) <= math.ulp(one)


def report(called: str, number: Value) -> None:
    """Tell of an operation that depends on digits which a number lacks, if somebody is told."""
    tell = _told.get()
    if tell is not None:
        tell(called, abs(_number(number)))


def _largest(value: Value) -> float:
    """The largest finite magnitude of a number or of the elements of a tensor; 0 where none is known."""
    number = constant(value)
    if isinstance(number, (Kind, *TENSOR_CONVERTIBLE)) or arrays.is_complex(number):
        return 0.0
    if not arrays.shape(number):
        size = abs(float(number))
        return size if size < math.inf else 0.0
    xp, sizes = arrays.numpy_namespace(), arrays.to_numpy(number)
    with arrays.quiet():
        sizes = xp.abs(sizes)
        return float(xp.max(xp.where(xp.isfinite(sizes), sizes, 0.0), initial=0.0))


def _number(value: Value) -> float:
    """A number as a float; 0 for a tensor, and where none is known, as while a program is recorded."""
    number = value.inner if type(value) is Tensor else value
    return number if type(number) is float else 0.0
