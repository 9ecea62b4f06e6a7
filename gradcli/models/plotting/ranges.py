"""Parsing of a range of a name, `0..20` or `-2-2j..2+2j`, and of several values for it, `0.1,0.2,0.5`."""

from __future__ import annotations

import cmath
from typing import Any

from gradcli import arrays
from gradcli.errors import ProgramSyntaxError
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import Read, items, unreadable
from gradcli.named_tuples import NamedTuple

_MARK = ".."
_HINT = "write x=0..20, from the lower number to the higher"


class PlotRange(NamedTuple):
    """A range from `low` to `high`, which is greater."""

    low: float
    high: float


class ComplexRange(NamedTuple):
    """A rectangle of the complex plane: the ranges of the real and of the imaginary part."""

    real: PlotRange
    imag: PlotRange


class SeveralValues(NamedTuple):
    """Several values of a name, numbers or arrays, each of which has a curve."""

    values: tuple[Any, ...]


def value(text: str, dtype: str, whole: str, offset: int = 0) -> Any:
    """The range, real or complex, the several values or the single value of a text that starts at `offset` of `whole`.

    Raises BindingError, with its place, for an invalid range, and what its expressions raise.
    """

    def read(part: str, at: int) -> Any:
        return constant(part, dtype, whole, at)

    if _MARK in text:
        return range_of(text, offset, whole, read)
    parts = [*items(text)]
    if len(parts) == 1:
        try:
            return read(text, offset)
        except ProgramSyntaxError:
            low, _, high = text.partition(":")
            if not low.strip() or not high.strip() or ":" in high:
                raise
            hint = f"write {low.strip()}{_MARK}{high.strip()}"
            raise unreadable("a range has two dots between its ends", text, offset, whole, hint) from None
    return SeveralValues(tuple(read(part, offset + at) for at, part in parts))


def range_of(text: str, offset: int, whole: str, read: Read) -> PlotRange | ComplexRange:
    """The range of a text that starts at `offset` of `whole`; `read` converts its ends.

    Raises BindingError, with its place, for a text that is not a range of finite numbers, and for an empty range.
    """
    low_text, _, high_text = text.partition(_MARK)
    if not low_text.strip() or not high_text.strip() or high_text.startswith("."):
        raise unreadable("this is no range", text, offset, whole, _HINT)
    ends = [read(low_text, offset), read(high_text, offset + len(low_text) + len(_MARK))]
    if any(arrays.shape(end) for end in ends):
        raise unreadable("an end of a range is a number", text, offset, whole, _HINT)
    numbers = [*map(complex, ends)]
    if not all(map(cmath.isfinite, numbers)):
        raise unreadable("an end of a range must be finite", text, offset, whole, _HINT)
    low, high = numbers
    is_complex = any(map(arrays.is_complex, ends))
    if not low.real < high.real or (is_complex and not low.imag < high.imag):
        hint = "write z=-2-2j..2+2j, from the lower left corner to the upper right one" if is_complex else _HINT
        raise unreadable("there is nothing in this range", text, offset, whole, hint)
    real = PlotRange(low.real, high.real)
    return ComplexRange(real, PlotRange(low.imag, high.imag)) if is_complex else real
