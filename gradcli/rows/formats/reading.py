"""Readers of tables: columns, and rows in pieces that any thread can parse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import IO, cast

from gradcli.errors import BindingError, did_you_mean
from gradcli.io import separators
from gradcli.named_tuples import NamedTuple
from gradcli.rows.formats import records, sources
from gradcli.rows.formats.blocks import RowBlock, UnparsedPiece
from gradcli.rows.formats.delimited import Delimited, Dialect, Selection, decoded, one_space_apart
from gradcli.rows.formats.records import Quoting, Record

# Bytes at the beginning of a table from which its notation is detected.
SAMPLE = 2**16


class TableReadOptions(NamedTuple):
    """The options for reading tables whose names and contents do not tell; `block` is the size of blocks in bytes."""

    format: str | None = None
    separator: str | None = None
    decimal_comma: bool = False
    encoding: str | None = None
    header: bool = True
    block: int = records.BLOCK


class ByteRange(NamedTuple):
    """A part of a file: the bytes from `start` to before `end`, at record boundaries and with the header in the range
    that begins at 0; in a columnar format, rows."""

    start: int
    end: int


class ColumnSelection(NamedTuple):
    """The contents that are read from a table: the columns `needed` as numbers, and `texts` as texts. Written again, in
    the format `to` (None for that of the table), are the columns `kept`, None for all, beside results with the names
    `results`."""

    needed: Sequence[str]
    kept: Sequence[str] | None = None
    texts: Sequence[str] = ()
    to: str | None = None
    results: Sequence[str] = ()


class TableReader:
    """A table whose rows have not been read yet.

    `size` is that of the file in bytes, None where it is not known; `divisible` says that a Range of it can be read.
    """

    name: str
    format: str
    columns: Sequence[str]
    size: int | None
    divisible: bool
    # Whether the columns are not known yet, so that any name is allowed.
    any_column = False
    dialect = Dialect(",", False, "\n", "")

    def pieces(self, chosen: ColumnSelection) -> Iterator[UnparsedPiece]:
        """The rows, in order. Raises BindingError for a name of no column or of several, and where the rows cannot be
        read."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Return whether a piece is available without waiting."""
        return True

    def close(self) -> None:
        """Close the file."""

    def column_index(self, name: str) -> int:
        """The index of a column. Raises BindingError where there is none of this name, or several."""
        if name not in self.columns:
            raise BindingError(f"{self.name} has no column {name!r}", hint=did_you_mean(name, self.columns))
        if self.columns.count(name) > 1:
            raise BindingError(
                f"{self.name} has more than one column {name!r}", hint="give the columns different names"
            )
        return self.columns.index(name)


@contextmanager
def closed_on_error(opened: TableReader | IO[bytes]) -> Iterator[None]:
    """A context that closes `opened` on an error."""
    try:
        yield
    except BaseException:
        opened.close()
        raise


class TextReader(TableReader):
    """A table of consecutive records in a stream, read in blocks of `_block` bytes; `_part` restricts it to a range."""

    def __init__(self, stream: sources.Stream, reading: TableReadOptions, part: ByteRange | None) -> None:
        self.name, self.size, self.divisible = stream.name, stream.size, stream.plain
        self._stream = stream
        self._part = part
        self._block = reading.block

    def ready(self) -> bool:
        return self._stream.ready()

    def close(self) -> None:
        self._stream.close()


class DelimitedReader(TextReader):
    """A table of delimited text, of which `head` has been read."""

    def __init__(
        self, stream: sources.Stream, head: bytes, format: str | None, reading: TableReadOptions, part: ByteRange | None
    ) -> None:
        super().__init__(stream, reading, part)
        said = [reading.separator] if reading.separator else separators.DEFAULT
        preamble = separators.preamble_of(head, said, reading.header)
        self._start = preamble.size
        self._rest = head[self._start :]
        if b"\0" in self._rest.partition(b"\n")[0]:
            raise BindingError(
                f"{self.name} is no text in UTF-8",
                hint="tables are text, Parquet or Arrow; --encoding names another encoding, such as utf-16-le",
            )
        if b"\r" in self._rest and b"\n" not in self._rest:
            raise BindingError(
                f"the lines of {self.name} end in CR alone", hint="tr '\\r' '\\n' makes those ends that are read"
            )
        text = self._rest[: records.last_line_end(self._rest) or None].decode(errors="replace")
        separator = reading.separator or preamble.separator
        notation = separators.detected_notation(text, [separator] if separator else separators.beside_texts(text))
        separator = separator or ("\t" if format == "tsv" else notation.separator)
        self._quoting = Quoting(separator.encode())
        first = self._first()
        if separator == " ":
            first = next(self._quoting.records(one_space_apart(first.text)))._replace(end=first.end)
        self.format = format or ("tsv" if separator == "\t" else "csv")
        fields = [decoded(field or b"").strip() for field in first.fields or ()]
        line_end = "\r\n" if self._rest[: first.end].endswith(b"\r\n") else "\n"
        comma = reading.decimal_comma or notation.decimal_comma
        self.dialect = Dialect(separator, comma, line_end, decoded(first.text) if reading.header else None)
        self.columns = fields if reading.header else [f"c{number}" for number in range(1, len(fields) + 1)]
        if reading.header:
            self._rest = self._rest[first.end :]
            self._start += first.end

    def _first(self) -> Record:
        while True:
            first = next(self._quoting.records(self._rest), None)
            if first is None:
                raise BindingError(
                    f"{self.name} is empty", hint="a table begins with a line of the names of its columns"
                )
            if first.fields is not None:
                return first
            more = self._stream.read(SAMPLE) if len(self._rest) < records.MAX_RECORD else b""
            if not more:
                raise BindingError(f"the first line of {self.name} has quotes that are not closed")
            self._rest += more

    def pieces(self, chosen: ColumnSelection) -> Iterator[UnparsedPiece]:
        kept = [*range(len(self.columns))] if chosen.kept is None else [self.column_index(name) for name in chosen.kept]
        whole = chosen.kept is None and chosen.to in (None, self.format)
        selection = Selection(
            [self.column_index(name) for name in chosen.needed],
            [self.column_index(name) for name in chosen.texts],
            None if whole else kept,
        )
        parser = Delimited(self.dialect, self.columns, selection)
        head, read = self._rest, cast("Callable[[int], bytes]", self._stream.read)
        if self._part is not None:
            head, read = b"", self._stream.within(max(self._part.start, self._start), self._part.end)
        for data in records.blocks(read, self._quoting.last_end, self._block, head):
            yield UnparsedPiece(len(data), partial(_parsed, parser, [data]))


def _parsed(parser: Delimited, data: list[bytes]) -> RowBlock:
    """The rows of the text that is the only element of a list. The list is emptied, so that the text is freed while it
    is parsed."""
    return parser.block(data.pop())
