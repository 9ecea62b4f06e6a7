"""Parsing of blocks of delimited text such as CSV.

A block is parsed twice: into the lines that are written again, and into only those columns that are needed as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gradcli.errors import BindingError
from gradcli.io import by_polars
from gradcli.io.regular_tables import is_rectangular
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats import columns
from gradcli.rows.formats.blocks import Column, RowBlock
from gradcli.rows.formats.records import Quoting, Record

# Characters that can stand for line feeds in fields, or for a separator, in a text without them.
_STAND_INS = [bytes([code]) for code in (*range(1, 9), 11, 12, *range(14, 32))]
_SPACES = re.compile(rb'((?<![^ \n])"(?:[^"]|"")*+")| +')
_SPACE_AROUND = re.compile(rb"^ | (?=\r?$)", re.MULTILINE)
_BLANK_LINE = re.compile(rb"(?:\A|(?<=\n))\r?\n")


class Dialect(NamedTuple):
    """The notation of a delimited table; `head` is the text of its first line, None where it has no header."""

    separator: str
    decimal_comma: bool
    line_end: str
    head: str | None

    @property
    def fractions(self) -> columns.Fractions:
        """The decimal marks of numbers: a comma may be one where it is not the separator."""
        return columns.Fractions(self.decimal_comma or self.separator != ",", self.decimal_comma)


class Selection(NamedTuple):
    """The indices of columns that are read as `numbers` and as `texts`, and of those that are `kept`, None where whole
    lines are."""

    numbers: Sequence[int]
    texts: Sequence[int]
    kept: Sequence[int] | None


class Delimited:
    """Parses the records of a table with these column `names`."""

    def __init__(self, dialect: Dialect, names: Sequence[str], selection: Selection) -> None:
        self._polars = by_polars.required("a table of rows")
        self._dialect = dialect
        self._names = names
        self._selection = selection
        self._separator = dialect.separator.encode()
        self._quoting = Quoting(self._separator)

    def block(self, data: bytes) -> RowBlock:
        """The rows of whole records. Raises BindingError for bytes that are not UTF-8."""
        data = data if data.endswith(b"\n") else data + b"\n"
        if self._dialect.separator == " ":
            data = one_space_apart(data)
        try:
            return self._regular(data) or self._by_record(data)
        except self._polars.exceptions.ComputeError as error:
            if "utf-8" in str(error):
                raise not_utf8() from error
            raise

    def _regular(self, data: bytes) -> RowBlock | None:
        """The rows of records that are well formed and have all columns; None where some may not."""
        # Polars takes a CR at the end of any field for a part of the line end.
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return None
        mark = None
        if b'"' in data:
            breaks = self._quoting.breaks(data)
            if breaks is None or breaks.open:
                return None
            if breaks.quoted.any():
                mark = _stand_in(data)
                if mark is None:
                    return None
                data = _replaced(data, breaks.at[breaks.quoted], mark)
        block = self._block(data, mark)
        if block is None and len(self._names) > 1:
            block = self._block(_BLANK_LINE.sub(b"", data), mark)
        return block

    def _block(self, data: bytes, mark: bytes | None) -> RowBlock | None:
        """The rows of lines; None where a line does not have exactly one field per column."""
        floats = self._complete(data)
        if floats is None and self._has_structure(data):
            floats = self._columns(data, self._selection.numbers, self._polars.Float64)
        if floats is None:
            return None
        lines = fields = None
        if self._selection.kept is None:
            lines = self._lines(data)
            if lines is None:
                return None
        else:
            fields = self._texts(data, self._selection.kept, mark)
        texts = self._texts(data, self._selection.texts, mark)
        return RowBlock(
            len(floats) if floats.width else data.count(b"\n"),
            self._numbers(data, floats, mark),
            {self._names[place]: texts[_named(place)].to_list() for place in self._selection.texts},
            lines,
            fields,
            mark.decode() if mark else None,
        )

    def _complete(self, data: bytes) -> Any | None:
        """The columns that are read as numbers, where parsing itself shows that every line has exactly one field per
        column: all columns are parsed, and the last field is never missing. Else None."""
        if b'"' in data or len(self._selection.numbers) < len(self._names):
            return None
        try:
            floats = self._columns(data, self._selection.numbers, self._polars.Float64)
        except self._polars.exceptions.PolarsError:
            return None
        return None if floats[:, -1].null_count() else floats

    def _has_structure(self, data: bytes) -> bool:
        """Return whether every line has exactly one field per column."""
        if b'"' in data:
            data = self._quoting.without_quoted_separators(data)
        return is_rectangular(data, self._separator, len(self._names))

    def _lines(self, data: bytes) -> Any | None:
        """A series of the lines; None where every control character occurs in the text, so that none can serve as the
        separator."""
        separator = _stand_in(data)
        if separator is None:
            return None
        schema = {"line": self._polars.String}
        options = {"has_header": False, "separator": separator.decode(), "quote_char": None}
        return self._polars.read_csv(data, schema=schema, **options)["line"]

    def _numbers(self, data: bytes, floats: Any, mark: bytes | None) -> dict[str, Column]:
        places = self._selection.numbers
        # With a decimal comma, Polars accepts a point as well, which may separate thousands.
        looked_at = self._dialect.decimal_comma and b"." in data
        read = {place: None if looked_at else columns.of_floats(floats[_named(place)]) for place in places}
        rest = [place for place, column in read.items() if column is None]
        texts = self._texts(data, rest, mark)
        fractions = self._dialect.fractions
        return {
            self._names[place]: column or columns.of_texts(texts[_named(place)], fractions)
            for place, column in read.items()
        }

    def _texts(self, data: bytes, places: Sequence[int], mark: bytes | None) -> Any:
        frame = self._columns(data, places, self._polars.String)
        if mark is None:
            return frame
        return frame.with_columns(self._polars.all().str.replace_all(mark.decode(), "\n", literal=True))

    def _columns(self, data: bytes, places: Sequence[int], kind: Any) -> Any:
        """The data frame of the columns with the indices `places`, in their order and named by index."""
        if not places:
            return self._polars.DataFrame()
        frame = self._polars.read_csv(
            data,
            has_header=False,
            schema={_named(place): kind for place in range(len(self._names))},
            columns=sorted(set(places)),
            separator=self._dialect.separator,
            decimal_comma=self._dialect.decimal_comma,
            ignore_errors=kind == self._polars.Float64,
        )
        return frame.select(map(_named, dict.fromkeys(places)))

    def _by_record(self, data: bytes) -> RowBlock:
        """The rows of records of any kind; malformed ones and those with too few or too many fields are marked as
        failed."""
        width, selection = len(self._names), self._selection
        failed: dict[int, str] = {}
        lines: list[str] = []
        read: dict[int, list[str | None]] = {
            place: [] for place in (*selection.numbers, *selection.texts, *(selection.kept or ()))
        }
        # Rows whose last field holds several fields, and is therefore not a number.
        surplus: list[int] = []
        for record in self._quoting.records(data):
            if not record.text and width > 1:
                continue
            row, fields = len(lines), self._fitted(record)
            lines.append(self._line(record, fields))
            for place, texts in read.items():
                field = fields[place]
                texts.append(None if field is None else decoded(field))
            if why := self._why_failed(record):
                failed[row] = why
                if record.fields and len(record.fields) > width:
                    surplus.append(row)

        def series(place: int) -> Any:
            return self._polars.Series(_named(place), read[place], self._polars.String)

        def numbers(place: int) -> Column:
            texts = series(place)
            texts = texts.scatter(surplus, None) if surplus and place == width - 1 else texts
            return columns.of_texts(texts, self._dialect.fractions)

        kept = selection.kept
        return RowBlock(
            len(lines),
            {self._names[place]: numbers(place) for place in selection.numbers},
            {self._names[place]: read[place] for place in selection.texts},
            self._polars.Series("line", lines, self._polars.String) if kept is None else None,
            None if kept is None else self._polars.DataFrame([*map(series, kept)]),
            None,
            failed,
        )

    def _why_failed(self, record: Record) -> str | None:
        if record.fields is None:
            return "its quotes are not closed before a separator or the end of its line"
        if len(record.fields) == len(self._names):
            return None
        return f"it has {len(record.fields)} fields where the table has {len(self._names)} columns"

    def _fitted(self, record: Record) -> Sequence[bytes | None]:
        """One field for each column; where there are more fields, the last one is the rest of the record."""
        width, fields = len(self._names), record.fields or []
        if len(fields) > width:
            return [*fields[: width - 1], self._quoting.rest(record.text, width - 1)]
        return [*fields, *[None] * (width - len(fields))]

    def _line(self, record: Record, fitted: Sequence[bytes | None]) -> str:
        """The line to write again, with one field per column, so that results align with their header; a malformed line
        is unchanged."""
        lacks, text = len(self._names) - len(record.fields or self._names), decoded(record.text)
        if lacks >= 0:
            return text + self._dialect.separator * lacks
        rest = decoded(fitted[-1] or b"")
        return text.removesuffix(rest) + _quoted(rest)


def one_space_apart(data: bytes) -> bytes:
    """The text of records whose fields are separated by runs of spaces, with single spaces between fields and none at
    the ends."""
    data = _SPACES.sub(lambda found: found[1] or b" ", data)
    return _SPACE_AROUND.sub(b"", data)


def not_utf8() -> BindingError:
    return BindingError("it is not UTF-8 text", hint="--encoding names another, such as --encoding latin-1")


def decoded(text: bytes) -> str:
    """A text in UTF-8. Raises BindingError for other bytes."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise not_utf8() from error


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _named(place: int) -> str:
    return f"column_{place + 1}"


def _stand_in(data: bytes) -> bytes | None:
    return next((code for code in _STAND_INS if code not in data), None)


def _replaced(data: bytes, places: Any, by: bytes) -> bytes:
    import numpy

    text = numpy.frombuffer(data, numpy.uint8).copy()
    text[places] = by[0]
    return text.tobytes()
