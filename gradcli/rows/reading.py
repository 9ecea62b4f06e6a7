"""A table that is read: its columns, and its rows in pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple, cast

from gradcli.errors import BindingError, did_you_mean
from gradcli.rows import records, sources
from gradcli.rows.blocks import Piece
from gradcli.rows.delimited import Delimited, Dialect, Selection, not_utf8
from gradcli.rows.records import Quoting

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEPARATORS = "\t;,"
_QUOTED = re.compile(rb'"(?:[^"]|"")*+"')
# Bytes of the beginning that a table is known by.
_SAMPLE = 2**16
_DECIMAL_COMMA, _DECIMAL_POINT = (
    re.compile(rb'(?:\A|[;\t\n"]) *[-+]?\d*%s\d+(?:[eE][-+]?\d+)? *(?=[;\t\r\n"]|\Z)' % point)
    for point in (b",", rb"\.")
)


class Reading(NamedTuple):
    """How tables are to be read, where that is not told by their names and beginnings; `block` bytes at a time."""

    format: str | None = None
    separator: str | None = None
    decimal_comma: bool = False
    encoding: str | None = None
    header: bool = True
    block: int = records.BLOCK


class Range(NamedTuple):
    """A part of a file: the bytes from `start` to before `end`, both where records end. With those from 0 on, and with
    none but them, goes the header."""

    start: int
    end: int


class Reader:
    """A table whose rows have not been read. `size` is that of the file in bytes, None where it is not known."""

    format: str
    columns: Sequence[str]
    dialect: Dialect

    def __init__(self, stream: sources.Stream, reading: Reading) -> None:
        self.name = stream.name
        self.size = stream.size
        self._stream = stream
        self._reading = reading

    @property
    def line_end(self) -> str:
        return self.dialect.line_end

    def pieces(
        self,
        needed: Sequence[str],
        kept: Sequence[str] | None = None,
        texts: Sequence[str] = (),
        to: str | None = None,
    ) -> Iterator[Piece]:
        """The rows, in order: the columns `needed` as numbers, `texts` as they are, and what is written again in the
        format `to`: the columns `kept`, or all.

        Raises BindingError for a name of no column, or of several.
        """
        raise NotImplementedError

    def place(self, name: str) -> int:
        """The place of a column. Raises BindingError where there is none of this name, or several."""
        if name not in self.columns:
            raise BindingError(f"{self.name} has no column {name!r}", hint=did_you_mean(name, self.columns))
        if self.columns.count(name) > 1:
            raise BindingError(
                f"{self.name} has more than one column {name!r}", hint="give the columns different names"
            )
        return self.columns.index(name)


class DelimitedReader(Reader):
    """A table of delimited text."""

    def __init__(self, stream: sources.Stream, reading: Reading, part: Range | None) -> None:
        super().__init__(stream, reading)
        self._part = part
        head = _head(stream)
        marks = _BYTE_ORDER_MARK if head.startswith(_BYTE_ORDER_MARK) else b""
        self._rest = head[len(marks) :]
        separator = reading.separator or _separator(self._rest)
        self.format = reading.format or ("tsv" if separator == "\t" else "csv")
        first = next(Quoting(separator.encode()).records(self._rest), None)
        if first is None:
            raise BindingError(f"{self.name} is empty", hint="a table begins with a line of the names of its columns")
        if first.fields is None:
            raise BindingError(f"the first line of {self.name} has quotes that are not closed")
        fields = [_decoded(field).strip() for field in first.fields]
        ends = self._rest[: first.end].endswith(b"\r\n")
        self.dialect = Dialect(
            separator,
            reading.decimal_comma or (separator != "," and _has_decimal_commas(self._rest)),
            "\r\n" if ends else "\n",
            _decoded(first.text) if reading.header else None,
        )
        self.columns = fields if reading.header else [f"c{number}" for number in range(1, len(fields) + 1)]
        begin = first.end if reading.header else 0
        self._rest = self._rest[begin:]
        self._start = len(marks) + begin

    def pieces(
        self,
        needed: Sequence[str],
        kept: Sequence[str] | None = None,
        texts: Sequence[str] = (),
        to: str | None = None,
    ) -> Iterator[Piece]:
        whole = kept is None and to in (None, self.format)
        selection = Selection(
            [self.place(name) for name in needed],
            [self.place(name) for name in texts],
            None if whole else [*range(len(self.columns))] if kept is None else [self.place(name) for name in kept],
        )
        parser = Delimited(self.dialect, self.columns, selection)
        last_end = Quoting(self.dialect.separator.encode()).last_end
        head, read = self._rest, cast("Callable[[int], bytes]", self._stream.read)
        if self._part is not None:
            head, read = b"", self._stream.within(max(self._part.start, self._start), self._part.end)
        for data in records.blocks(read, last_end, self._reading.block, head):
            yield Piece(len(data), partial(parser.block, data))


def open_table(
    source: str, reading: Reading | None = None, part: Range | None = None, stream: IO[bytes] | None = None
) -> Reader:
    """The table in a file, or in a `stream`, which `source` is the name of then. Raises BindingError where it cannot
    be read."""
    return DelimitedReader(sources.Stream(stream or sources.opened(source), source), reading or Reading(), part)


def _head(stream: sources.Stream) -> bytes:
    """The beginning of a table: its first record, and more where that is there."""
    head = b""
    while (chunk := stream.read(_SAMPLE)) and not (head := head + chunk).count(b"\n") > 1 and len(head) < _SAMPLE:
        pass
    return head


def _separator(head: bytes) -> str:
    """The character between fields: that which the first two lines have as many of."""
    lines = _QUOTED.sub(b"", head).split(b"\n")[:2]
    counts = {mark: [line.count(mark.encode()) for line in lines if line.strip()] for mark in _SEPARATORS}
    alike = [mark for mark, found in counts.items() if found and min(found) > 0 and len(set(found)) == 1]
    return next(iter(alike), max(reversed(_SEPARATORS), key=lambda mark: sum(counts[mark][:1])))


def _has_decimal_commas(head: bytes) -> bool:
    return bool(_DECIMAL_COMMA.search(head)) and not _DECIMAL_POINT.search(head)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise not_utf8() from error
