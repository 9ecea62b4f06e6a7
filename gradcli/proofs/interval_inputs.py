"""Reads intervals as inputs: `0.9..1.1`, `1±0.1`, `1+-0.1`, and lists of them and of numbers."""

from __future__ import annotations

import re
from typing import Any

from flint import fmpq

from gradcli import arrays
from gradcli.arrays.flint.balls import Balls, Number, exact, from_text
from gradcli.arrays.flint.intervals import Bounds, bounds
from gradcli.arrays.shapes import Shape
from gradcli.errors import BindingError
from gradcli.evaluation.nested_lists import Read, nested, unreadable
from gradcli.named_tuples import NamedTuple

_MARK = re.compile(r"\.\.|±|\+-|\+/-")
_HINT = "write x=0.9..1.1 or x=1±0.1, from the lower number to the higher"


class Intervals(NamedTuple):
    """A tensor whose elements are intervals."""

    shape: Shape
    parts: tuple[Bounds, ...]


class ComplexIntervals(NamedTuple):
    """A complex number whose parts are intervals."""

    real: Intervals
    imag: Intervals


# A complex number as in (1±0.1)+(2±0.1)j, where a part that is a number needs no parentheses.
_COMPLEX = re.compile(
    r"\s*(?:(?P<real>\([^()]*\)|[-+]?[\d._eE]+)\s*(?P<sign>[-+])\s*)?(?P<imag>\([^()]*\)|[\d._eE]+)\s*[ij]\s*"
)


def is_interval(text: str) -> bool:
    """Return whether the text of a value contains an interval."""
    return _MARK.search(text) is not None


def intervals(text: str, offset: int, whole: str, read: Read) -> Intervals | ComplexIntervals:
    """Parse a value that starts at `offset` of `whole`; `read` evaluates the numbers in it.

    Raises BindingError, with the position, for an empty interval and for invalid text.
    """
    match = _COMPLEX.fullmatch(text)
    if match is not None:
        real, imag = (_part(match, part, offset, whole, read) for part in ("real", "imag"))
        if match["sign"] == "-":
            imag = Bounds(-imag.high, -imag.low)
        return ComplexIntervals(Intervals((), (real,)), Intervals((), (imag,)))
    shape, parts = nested(text, offset, whole, "intervals", _HINT)
    return Intervals(shape, tuple(_one(part.text, part.offset, whole, read) for part in parts))


def _part(match: re.Match[str], part: str, offset: int, whole: str, read: Read) -> Bounds:
    """The interval of a part of a complex number; 0 where there is none."""
    if match[part] is None:
        return Bounds(fmpq(0), fmpq(0))
    text, start = match[part], offset + match.start(part)
    return _one(text[1:-1], start + 1, whole, read) if text.startswith("(") else _one(text, start, whole, read)


def _one(text: str, offset: int, whole: str, read: Read) -> Bounds:
    mark = _MARK.search(text)
    if mark is None:
        return _number(text, offset, whole, read)
    before, behind = text[: mark.start()], text[mark.end() :]
    if _MARK.search(behind) or behind.startswith(".") or not before.strip() or not behind.strip():
        raise _error("this is no interval", offset, text, whole)
    first = _number(before, offset, whole, read)
    last = _number(behind, offset + mark.end(), whole, read)
    if mark[0] != "..":
        first, last = Bounds(first.low - last.high, first.low), Bounds(first.high, first.high + last.high)
    if first.low > last.high:
        raise _error("there is no number in this interval", offset, text, whole)
    return Bounds(first.low, last.high)


def _number(text: str, offset: int, whole: str, read: Read) -> Bounds:
    found = read(text, offset)
    number = found.numbers if type(found) is Balls else exact(found)
    return _finite(number, offset, text, whole)


def _finite(number: Number, offset: int, text: str, whole: str) -> Bounds:
    if getattr(number, "shape", ()):
        raise _error("an end of an interval is a number", offset, text, whole)
    ends = bounds(number)
    if not all(type(end) is fmpq for end in ends):
        raise _error(
            "an end of an interval must be finite, with an exponent that ball arithmetic has", offset, text, whole
        )
    return ends


def _error(message: str, offset: int, text: str, whole: str) -> BindingError:
    return unreadable(message, text, offset, whole, _HINT)


def points(value: Any) -> Intervals:
    """Convert a number or an array to intervals of zero width. Raises BindingError for numbers that are not finite."""
    numbers = value.numbers if type(value) is Balls else exact(value)
    shape = getattr(numbers, "shape", ())
    parts = tuple(map(bounds, numbers.ravel() if shape else (numbers,)))
    if not all(type(end) is fmpq for part in parts for end in part):
        raise BindingError(
            "numbers beside intervals must be finite, with exponents that ball arithmetic has", hint=_HINT
        )
    return Intervals(shape, parts)


def given(value: Any, name: str) -> Any:
    """Convert a Python input: a tuple of two numbers, or a text, is an interval, also within lists; other numbers are
    exact.

    Raises BindingError for anything else.
    """
    try:
        if type(value) is tuple and len(value) == 2:
            low, high = map(_of_python, value)
            if low.low > high.high:
                raise BindingError(f"there is no number in the interval of '{name}'", hint="give the lower end first")
            return Intervals((), (Bounds(low.low, high.high),))
        if isinstance(value, str):
            return intervals(value, 0, value, lambda text, _offset: from_text(text))
        if isinstance(value, list):
            parts = [given(item, name) for item in value]
            rows = [part if isinstance(part, Intervals) else points(part) for part in parts]
            if rows and all(row.shape == rows[0].shape for row in rows):
                return Intervals((len(rows), *rows[0].shape), tuple(b for row in rows for b in row.parts))
            raise BindingError(f"the rows of '{name}' have different lengths")
        if isinstance(value, complex):
            return arrays.in_default_namespace(value)
        return arrays.in_default_namespace(
            arrays.asarray(value, "float64") if hasattr(value, "shape") else exact(value)
        )
    except BindingError:
        raise
    except (TypeError, ValueError):
        raise BindingError(f"'{name}' is neither an interval nor numbers", hint="(0.9, 1.1) is an interval") from None


def _of_python(number: Any) -> Bounds:
    found = bounds(from_text(number) if isinstance(number, str) else exact(number))
    if not all(type(end) is fmpq for end in found):
        raise ValueError("an end is finite")
    return found
