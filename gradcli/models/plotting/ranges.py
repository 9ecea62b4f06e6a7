"""Parsing of a range of a name, `0..20`, and of several values for it, `0.1,0.2,0.5`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import ProgramSyntaxError
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import Read, items, unreadable

_MARK = ".."
_HINT = "write x=0..20, from the lower number to the higher"


class PlotRange(NamedTuple):
    """A range from `low` to `high`, which is greater."""

    low: float
    high: float


class SeveralValues(NamedTuple):
    """Several values of a name, numbers or arrays, each of which has a curve."""

    values: tuple[Any, ...]


def value(text: str, dtype: str, whole: str, offset: int = 0) -> Any:
    """The range, the several values or the single value of a text that starts at `offset` of `whole`.

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


def range_of(text: str, offset: int, whole: str, read: Read) -> PlotRange:
    """The range of a text that starts at `offset` of `whole`; `read` converts its ends.

    Raises BindingError, with its place, for a text that is not a range of finite numbers, and for an empty range.
    """
    low_text, _, high_text = text.partition(_MARK)
    if not low_text.strip() or not high_text.strip() or high_text.startswith("."):
        raise unreadable("this is no range", text, offset, whole, _HINT)
    ends = [read(low_text, offset), read(high_text, offset + len(low_text) + len(_MARK))]
    if any(arrays.shape(end) for end in ends):
        raise unreadable("an end of a range is a number", text, offset, whole, _HINT)
    low, high = map(float, ends)
    if not math.isfinite(low) or not math.isfinite(high):
        raise unreadable("an end of a range must be finite", text, offset, whole, _HINT)
    if not low < high:
        raise unreadable("there is nothing in this range", text, offset, whole, _HINT)
    return PlotRange(low, high)
