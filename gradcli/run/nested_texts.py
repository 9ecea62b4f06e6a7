"""Lists of values that are no expressions, as of intervals: `[0.9..1.1, 2]`, nested to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gradcli.arrays.shapes import Shape
from gradcli.errors import BindingError, Span

# Gives the value of an expression that starts at an offset of a whole text.
Read = Callable[[str, int], Any]


class NestedText(NamedTuple):
    """The text of one value, and where it starts in the whole."""

    text: str
    offset: int


class NestedParts(NamedTuple):
    """The values of a tensor, one after the other."""

    shape: Shape
    parts: tuple[NestedText, ...]


def nested(text: str, offset: int, whole: str, what: str, hint: str) -> NestedParts:
    """The parts of a text that starts at `offset` of `whole`: itself, where it is no list; `what` they are in words.

    Raises BindingError, with the place and the hint, where a list does not end, or its rows have different lengths.
    """
    if not text.lstrip().startswith("["):
        return NestedParts((), (NestedText(text, offset),))
    inner = text.strip()
    start = offset + text.index("[") + 1
    if not inner.endswith("]"):
        raise unreadable(f"a list of {what} ends with ']'", text, offset, whole, hint)
    rows = [nested(item, start + at, whole, what, hint) for at, item in items(inner[1:-1])]
    if len({row.shape for row in rows}) > 1:
        raise unreadable("the rows of a nested list have different lengths", text, offset, whole, hint)
    return NestedParts((len(rows), *rows[0].shape), tuple(part for row in rows for part in row.parts))


def items(text: str) -> Iterator[tuple[int, str]]:
    """The parts between commas that are in no brackets, and where they start."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            yield start, text[start:at]
            start = at + 1
    if text[start:].strip() or not start:
        yield start, text[start:]


def unreadable(message: str, text: str, offset: int, whole: str, hint: str) -> BindingError:
    """The error that a text, which starts at `offset` of `whole`, is no value."""
    start = offset + len(text) - len(text.lstrip())
    return BindingError(message, hint=hint, span=Span(start, start + max(1, len(text.strip()))), source=whole)
