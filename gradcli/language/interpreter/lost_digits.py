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


def examine_sum(called: str, left: Value, right: Value, result: Value) -> None:
    """Report a sum or difference of numbers beyond 2**53 that cancel, if somebody is told.

    Gradients tell more of the rounding errors of numbers that have them, see `gradcli.evaluation.rounding_loss`.
    """
    tell = _told.get()
    if tell is None or (type(result) is Tensor and result.requires_grad):
        return
    terms = [_number(left), _number(right)]
    if all(EXACT_INTEGERS < abs(t) < math.inf for t in terms):
        number, found = max(map(abs, terms)), _number(result)
        if abs(found) <= _CANCELLED * number:
            tell(called, number)


def examine_comparison(called: str, left: Value, right: Value) -> None:
    """Report a comparison of numbers beyond 2**53 that differ by rounding alone, if somebody is told."""
    tell = _told.get()
    if tell is None or left is right:
        return
    one, other = _number(left), _number(right)
    number = max(abs(one), abs(other))
    if EXACT_INTEGERS < number < math.inf and abs(one - other) <= math.ulp(number):
        tell(called, number)


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
    number = constant(value)
    if isinstance(number, (Kind, *TENSOR_CONVERTIBLE)) or arrays.shape(number) or arrays.is_complex(number):
        return 0.0
    return float(number)
