"""Splits nested lists of values that are not expressions, such as intervals: `[0.9..1.1, 2]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli.arrays.shapes import Shape
from gradcli.errors import BindingError, Span
from gradcli.named_tuples import NamedTuple

# Evaluates an expression; the second argument is its offset in the whole text.
Read = Callable[[str, int], Any]


class NestedText(NamedTuple):
    """The text of one value, and its offset in the whole text."""

    text: str
    offset: int


class NestedParts(NamedTuple):
    """The shape of a tensor and the texts of its elements, in row-major order."""

    shape: Shape
    parts: tuple[NestedText, ...]


def nested(text: str, offset: int, whole: str, what: str, hint: str) -> NestedParts:
    """Split a text that starts at `offset` of `whole` into the elements of a nested list. Other text is one element.

    `what` names the elements in messages. Raises BindingError, with the position and the hint, where a list is not
    closed or its rows have different lengths.
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
    """Yield (offset, part) for the parts between commas outside of brackets."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            yield start, text[start:at]
            start = at + 1
    if text[start:].strip() or not start:
        yield start, text[start:]


def unreadable(message: str, text: str, offset: int, whole: str, hint: str) -> BindingError:
    """The error that a text, which starts at `offset` of `whole`, is not a valid value."""
    start = offset + len(text) - len(text.lstrip())
    return BindingError(message, hint=hint, span=Span(start, start + max(1, len(text.strip()))), source=whole)
