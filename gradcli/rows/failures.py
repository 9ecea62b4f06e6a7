"""Rows that fail, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import EvaluationError, GradcliError, Span, beginning

# Numbers of a row that a message shows.
_MOST_SHOWN = 8


class RowError(EvaluationError):
    """Why a row failed, and which: `failure`."""

    failure: Failure


class Failure(NamedTuple):
    """A row that failed: its number in its table, counted from 1, and the name of that; its numbers, as a message shows
    them; and the parts of the error, where `text` is what `span` is a place in."""

    row: int
    source: str
    values: str
    message: str
    hint: str | None
    span: tuple[int, int] | None
    text: str | None

    def error(self, *, with_source: bool = False) -> RowError:
        """The error that says which row it was, and of which table where there are several."""
        where = _place(self.row, self.source if with_source else "")
        values = f", where {self.values}" if self.values else ""
        span = None if self.span is None else Span(*self.span)
        error = RowError(f"{where}{values}: {self.message}", hint=self.hint, span=span, source=self.text)
        error.failure = self
        return error


class OddText(NamedTuple):
    """A row without results as it has a text for the number `name`: where it is, as of a Failure, and the text."""

    row: int
    source: str
    name: str
    text: str

    def said(self, *, with_source: bool = False) -> str:
        """What to say of it, with its table where there are several."""
        where = _place(self.row, self.source if with_source else "")
        return f"{where}: {no_number(self.name, self.text)}"


def no_number(name: str, text: str) -> str:
    """What to say of a text in the place of the number `name`."""
    return f"'{name}': {beginning(text)!r} is no number"


def _place(row: int, source: str) -> str:
    return f"row {row} of {source}" if source else f"row {row}"


def failure_of(row: int, source: str, inputs: Mapping[str, Any], error: GradcliError) -> Failure:
    """A row that failed by an error, for these numbers."""
    numbers = [f"{name}={value}" for name, value in inputs.items() if not arrays.shape(value)]
    return Failure(row, source, ", ".join(numbers[:_MOST_SHOWN]), error.message, error.hint, error.span, error.source)
