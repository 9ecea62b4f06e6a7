"""Several tables of the same format and columns, read one after the other as one table."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import IO

from gradcli.errors import BindingError
from gradcli.rows.formats.json_line_rows import FORMAT as LINES
from gradcli.rows.formats.opening import open_table
from gradcli.rows.formats.outputs import STDIN
from gradcli.rows.formats.reading import TableReader, TableReadOptions
from gradcli.rows.formats.sources import is_read_once, readable

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
