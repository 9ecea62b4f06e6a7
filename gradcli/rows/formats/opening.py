"""Opening of tables of any format, which is detected by name and content; several are read as one table."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import IO

from gradcli.errors import BindingError, UsageError
from gradcli.io import separators
from gradcli.io.file_formats import begins_with_object
from gradcli.rows.formats import columnar, sources
from gradcli.rows.formats.json_line_rows import FORMAT as LINES
from gradcli.rows.formats.json_line_rows import LinesReader
from gradcli.rows.formats.outputs import STDIN
from gradcli.rows.formats.reading import (
    SAMPLE,
    ByteRange,
    DelimitedReader,
    TableReader,
    TableReadOptions,
    closed_on_error,
)
from gradcli.rows.formats.records import MAX_RECORD
from gradcli.rows.formats.sources import is_read_once, readable

# The beginning of a JSON array of objects or arrays.
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")


def open_table(
    source: str, reading: TableReadOptions, part: ByteRange | None = None, stream: IO[bytes] | None = None
) -> TableReader:
    """The table in a file, or in a `stream` named `source`; `part` restricts it to a range.

    Raises BindingError where it cannot be read, UsageError for an invalid separator.
    """
    mark = reading.separator
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n.-+'):
        raise UsageError(f"{mark!r} is no separator", hint="it is one character, such as , or ;")
    named, compression = (None, None) if stream is not None else sources.format_of(source)
    format = reading.format or named
    if stream is None and compression is None and format in columnar.FORMATS and not sources.is_read_once(source):
        return columnar.ColumnarReader(source, format, reading, part)
    given = stream or sources.opened(source)
    with closed_on_error(given):
        opened = sources.Stream(source, given, reading.encoding)
        head = _head(opened, format)
        format = format or columnar.detected_format(head)
        if format in columnar.FORMATS:
            # The metadata is at the end, so that the format needs a seekable file.
            file = sources.spooled(opened, head)
            if stream is None:
                opened.close()
            return columnar.ColumnarReader(source, format, reading, part, file)
        if format == LINES or (format is None and begins_with_object(head)):
            return LinesReader(opened, head, reading, part)
        if format is None and _ARRAY.match(head):
            raise BindingError(
                f"{source} is an array of JSON, and its rows are no lines",
                hint="jq -c '.[]' makes a line of each of its objects, which --from jsonl reads",
            )
        return DelimitedReader(opened, head, format, reading, part)


def _head(stream: sources.Stream, format: str | None) -> bytes:
    """The beginning of a table: at least two lines after its comments where there are as many; one line of JSON or of
    long lines."""
    head = b""
    while (chunk := stream.read(SAMPLE)) and len(head := head + chunk) <= MAX_RECORD:
        if format == LINES and b"\n" in head:
            break
        one = begins_with_object(head) or len(head) >= SAMPLE
        if head.count(b"\n", separators.end_of_comments(head)) >= (1 if one else 2):
            break
    return head


_STDIN_NAME = "standard input"


class ConcatenatedTables:
    """The tables of some files, and of a `stream` where standard input is among the sources. Each file is open only
    while it is read; a pipe is opened once.

    Raises BindingError where one cannot be read, and where their formats or columns differ.
    """

    def __init__(self, sources: Sequence[str], reading: TableReadOptions, stream: IO[bytes] | None) -> None:
        self._sources = sources
        self._reading = reading
        self._stream = stream
        # The readers of sources that can be read only once.
        self._passing: dict[str, TableReader] = {}
        sizes = []
        for place, source in enumerate(sources):
            reader = self._opened(source)
            if not place:
                self.name = reader.name
                self.columns = None if reader.any_column else reader.columns
                self.format, self._dialect = reader.format, reader.dialect._replace(head="")
            self._check(reader)
            sizes.append(reader.size)
            if source not in self._passing:
                reader.close()
        # The total size in bytes, None where it is not known.
        self.size = None if None in sizes else sum(filter(None, sizes))

    def __iter__(self) -> Generator[TableReader, None, None]:
        """The tables one after the other; each is valid until the next one."""
        for source in self._sources:
            reader = self._opened(source)
            if source == STDIN:
                yield reader
                continue
            with closing(reader):
                # The file may have changed since the first check.
                self._check(reader)
                yield reader

    def _opened(self, source: str) -> TableReader:
        if source in self._passing:
            return self._passing[source]
        if source == STDIN:
            reader = self._passing[source] = open_table(_STDIN_NAME, self._reading, stream=self._stream)
            return reader
        with readable(source):
            passing = is_read_once(source)
        reader = open_table(source, self._reading)
        if passing:
            self._passing[source] = reader
        return reader

    def _check(self, reader: TableReader) -> None:
        what = None
        if reader.format != LINES and reader.columns != self.columns:
            what = "columns"
        elif (reader.format, reader.dialect._replace(head="")) != (self.format, self._dialect):
            what = "format"
        if what is not None:
            raise BindingError(
                f"{reader.name} and {self._sources[0]} have not the same {what}",
                hint="tables that are read as one are alike; map writes a file for each with --output DIRECTORY",
            )
