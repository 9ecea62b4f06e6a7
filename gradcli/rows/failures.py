"""Errors and messages about rows that fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import EvaluationError, GradcliError, Span, abbreviated
from gradcli.named_tuples import NamedTuple

# Upper bound of the numbers of a row that a message shows.
_MOST_SHOWN = 8


class RowError(EvaluationError):
    """The error of a row that failed, with its `failure` as plain data."""

    failure: Failure


class Failure(NamedTuple):
    """A row that failed: its number in its table, counted from 1; the name of the table; its inputs as text; and the
    parts of the error, with `span` a range of `text`."""

    row: int
    source: str
    values: str
    message: str
    hint: str | None
    span: tuple[int, int] | None
    text: str | None

    def error(self, *, with_source: bool = False) -> RowError:
        """The error with the row's number, and with its table where there are several."""
        where = _place(self.row, self.source if with_source else "")
        values = f", where {self.values}" if self.values else ""
        span = None if self.span is None else Span(*self.span)
        error = RowError(f"{where}{values}: {self.message}", hint=self.hint, span=span, source=self.text)
        error.failure = self
        return error


class TextForNumber(NamedTuple):
    """A row without results since the number `name` is a text there: its number and table, as in Failure, and the
    text."""

    row: int
    source: str
    name: str
    text: str

    def message(self, *, with_source: bool = False) -> str:
        """The message, with the table where there are several."""
        where = _place(self.row, self.source if with_source else "")
        return f"{where}: {text_for_number_message(self.name, self.text)}"


def text_for_number_message(name: str, text: str) -> str:
    """The message for a text in place of the number `name`."""
    return f"'{name}': {abbreviated(text)!r} is no number"


def _place(row: int, source: str) -> str:
    return f"row {row} of {source}" if source else f"row {row}"


def failure_of(row: int, source: str, inputs: Mapping[str, Any], error: GradcliError) -> Failure:
    """The failure of a row by an error, for these inputs."""
    numbers = [f"{name}={value}" for name, value in inputs.items() if not arrays.shape(value)]
    return Failure(row, source, ", ".join(numbers[:_MOST_SHOWN]), error.message, error.hint, error.span, error.source)
