"""Parsing of bounds that are written as `b2=0:1,b1=0:`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gradcli.errors import BindingError, GradcliError, Span
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.python_values import names_tuple, value
from gradcli.models.packing import Bounds

# A name, or a part of a complex one.
_ENTRY = re.compile(r"\s*([^\W\d]\w*|(?:real|imag)\([^\W\d]\w*\))\s*=(?!=)")
_BRACKETS = dict.fromkeys("([{", 1) | dict.fromkeys(")]}", -1)


def bounds_of(given: Mapping[str, Bounds] | Sequence[str] | str | None) -> dict[str, Bounds]:
    """The lower and the upper bound by name, infinite where one is omitted, from texts such as `b2=0:1,b1=0:`, in which
    the bounds of arrays may be lists. A mapping of names to pairs, in which None stands for an omitted bound, is
    accepted too.

    Raises BindingError for an invalid text, and for a name that is given twice.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: _pair(name, pair) for name, pair in zip(names_tuple([*given]), given.values())}
    found: dict[str, Bounds] = {}
    for text in [given] if isinstance(given, str) else names_tuple(given):
        for begin, end in _parts(text, ","):
            name, pair = _entry(text, begin, end)
            if name in found:
                raise BindingError(f"the bounds of '{name}' are given twice", span=Span(begin, end), source=text)
            found[name] = pair
    return found


def _pair(name: str, pair: Any) -> Bounds:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise BindingError(f"the bounds of '{name}' are no pair", hint=f"as in {{'{name}': (0, 1)}}") from None
    try:
        return (-math.inf if low is None else value(low)), (math.inf if high is None else value(high))
    except GradcliError:
        raise BindingError(f"a bound of '{name}' is no number", hint=f"as in {{'{name}': (0, None)}}") from None


def _entry(text: str, begin: int, end: int) -> tuple[str, Bounds]:
    named = _ENTRY.match(text, begin, end)
    ends = [*_parts(text, ":", named.end(), end)] if named else []
    if named is None or len(ends) != 2:
        raise BindingError(
            f"{text[begin:end].strip()!r} are no bounds",
            hint=f"write {text.replace('..', ':')}"
            if ".." in text
            else "--bounds 'b2=0:1,b1=0:' says from where to where, and one end may be left out",
            span=Span(begin, end),
            source=text,
        )
    low, high = (
        constant(text[a:b], "float64", text, a) if text[a:b].strip() else infinite
        for (a, b), infinite in zip(ends, (-math.inf, math.inf))
    )
    return named[1], (low, high)


def _parts(text: str, separator: str, begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The ranges of the parts of a text between separators outside all brackets."""
    end = len(text) if end is None else end
    places = [place for place in outside_brackets(text, begin, end) if text[place] == separator]
    return [(a + 1, b) for a, b in pairwise([begin - 1, *places, end])]


def outside_brackets(text: str, begin: int, end: int) -> Iterator[int]:
    """The places of a text, from `begin` to `end`, that are in no brackets, those of closing brackets among them."""
    depth = 0
    for place in range(begin, end):
        depth += _BRACKETS.get(text[place], 0)
        if not depth:
            yield place
