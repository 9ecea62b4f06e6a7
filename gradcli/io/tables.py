"""Tables of numbers as text, `.csv` and `.tsv`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gradcli import limits
from gradcli.errors import beginning
from gradcli.io import by_polars, regular_tables, text_lines
from gradcli.io.json_numbers import Written
from gradcli.io.source import FileError, Source
from gradcli.timing import phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradcli.io.separators import Notation

# Bytes of a table for which loading Polars pays, and of it at a time. With it a file of 6 MB takes as long as without.
_LARGE = _BLOCK = 2**23
# Rows at a time without it.
_ROWS = 4096
# In eighths of steps.
_CELL = 1
_SPACE_AFTER_QUOTE = re.compile(r'" +(?=[,;|\t\r\n]|$)')
# What may separate numbers that stand in one cell.
_BETWEEN = re.compile(r"[\s,;|\0]+")
# Numbers that are written in other ways: 0x1F, 0b101, 1.5d3, 1'000, 5%.
_FOREIGN_NUMBER = re.compile(
    r"[+-]?(?:0x[\da-f]+|0[bo]\d+|\d*\.?\d+d[+-]?\d+|\d+('\d{3})+|\d*\.?\d+%"
    # With a prefix of units.
    r"|\d*\.?\d+(?:e[+-]?\d+)?[kmgtunpµμ])",
    re.IGNORECASE,
)

# The number of a line, from 1, and the cells of the record that begins there.
_Record = tuple[int, list[str]]


def read_table(
    source: Source, members: Sequence[str | None], separators: Sequence[str] | None = None
) -> list[NDArray[Any]]:
    """For each member a column with shape (rows,), for None the whole table with shape (rows, columns).

    What separates cells, one of the `separators` or the usual ones, and whether there are decimal commas, is told from
    the first lines. The first line, behind
    comments, is a header where none of its cells is a number. Blank lines are skipped, an empty cell is nan. Raises BindingError for
    a cell that is no number and for rows of different lengths, with the line and column, and for a column that is not
    there.
    """
    # Who reads no table does without csv.
    from gradcli.io import preambles
    from gradcli.io.separators import DEFAULT, told

    separators = separators or DEFAULT
    with phase("import"):
        import numpy  # noqa: F401
    start = text_lines.beginning(source.stream, _LARGE)
    preamble = preambles.of(start, separators)
    line, start = 1 + start.count(b"\n", 0, preamble.size), start[preamble.size :]
    notation = told(start.decode(errors="replace"), [preamble.separator] if preamble.separator else separators)
    # Of a large one only the beginning is read yet.
    is_large = preamble.size + len(start) >= _LARGE - 3
    lines = start[: start.rfind(b"\n") + 1] if is_large and not source.exact else b""
    records = _records(source, notation, lines or start, BytesIO() if lines else source.stream, line)
    first = next(records, None)
    if first is None:
        raise source.error("it is empty", "give a table with at least one line")
    layout = _layout(source, members, notation, first[1])
    table = _Table(source, members, notation, layout)
    if lines:
        records = _records_of_large(table, start, line)
    elif not layout.has_header:
        records = chain([first], records)
    while batch := list(islice(records, _ROWS)):
        table.add_records(batch)
    return table.values()


def _records(source: Source, notation: Notation, start: bytes, stream: BinaryIO, line: int) -> Iterator[_Record]:
    """The records of what `start` begins, with the line of this number, and a stream continues."""
    import csv

    trimmed = partial(_trimmed, separator=notation.separator)
    found = (
        map(trimmed, lines) if _needs_trimming(lines) else lines for lines in text_lines.lines(source, start, stream)
    )
    reader = csv.reader(chain.from_iterable(found), delimiter=notation.separator, skipinitialspace=True, strict=True)
    before = line - 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise source.error(f"line {line} is malformed: {error}", "check its quotes") from error


def _needs_trimming(lines: Sequence[str]) -> bool:
    text = "".join(lines)
    return '"' in text or " \n" in text or " \r" in text or text.endswith(" ")


def _trimmed(line: str, separator: str) -> str:
    """The line without the spaces that csv minds: those after a closing quote, those of a blank line, and at the end
    of any line where they separate cells."""
    if separator == " " or not line.strip(" \r\n"):
        return line.rstrip(" \r\n") + "\n"
    return _SPACE_AFTER_QUOTE.sub('"', line) if '"' in line else line


class _Layout(NamedTuple):
    """The number of columns, whether their names stand in the first line, and for each member that is asked for the
    number of its column, from 0, None for all of them."""

    width: int
    has_header: bool
    columns: Sequence[int | None]

    @property
    def wanted(self) -> Sequence[int]:
        """The columns that are read, ascending."""
        return range(self.width) if None in self.columns else sorted({c for c in self.columns if c is not None})


def _layout(source: Source, members: Sequence[str | None], notation: Notation, first: Sequence[str]) -> _Layout:
    names = [cell.strip() for cell in first]
    written = [name for name in names if name]
    has_header = all(_is_name(name, notation) for name in written) and (
        not all(map(_is_foreign, written)) or any(member in names for member in members)
    )

    def column(member: str | None) -> int | None:
        if member is None:
            return None
        asked = source._replace(member=member)
        return _named_column(asked, member, names) if has_header else _numbered_column(asked, member, len(names))

    return _Layout(len(names), has_header, [column(member) for member in members])


def _is_name(cell: str, notation: Notation) -> bool:
    """Whether there is more in a cell than a number, or several between other separators."""
    return any(notation.number(part) is None for part in _BETWEEN.split(cell) if part)


def _is_foreign(cell: str) -> bool:
    """Whether a cell is a number in another notation. Beside words it may be a name all the same: `mean,25%`."""
    return _FOREIGN_NUMBER.fullmatch(cell) is not None


def _named_column(source: Source, member: str, names: list[str]) -> int:
    if member not in names:
        raise source.no_such_member("column", member, names)
    if names.count(member) > 1:
        raise source.error(f"it has more than one column {member!r}", "give the columns different names")
    return names.index(member)


def _numbered_column(source: Source, member: str, width: int) -> int:
    """The 0-based column for a 1-based number, in a table without a header."""
    # Text as long as this is no column number, and int() is slow or refuses where it is far longer.
    digits = member.isdecimal() and len(member) < 10
    if not digits or not 1 <= int(member) <= width:
        raise source.error(
            f"it has no column {member!r}", f"it has no header line; its columns are numbered 1 to {width}"
        )
    return int(member) - 1


def _records_of_large(table: _Table, start: bytes, line: int) -> Iterator[_Record]:
    """The records of a large table without its header, of which this is the start, at the line of this number, but for
    those that Polars reads: as far as all in the lines is of the ordinary."""
    source, layout = table.source, table.layout
    header = _header(start) if layout.has_header else b""
    if header is None or table.notation.separator == " ":
        return islice(_records(source, table.notation, start, source.stream, line), layout.has_header, None)
    polars = by_polars.found()
    rest, line, more = start[len(header) :], line + layout.has_header, b" "
    while polars is not None and rest and more:
        more = source.stream.read(_BLOCK)
        block = rest[: rest.rfind(b"\n") + 1] if more else rest
        columns = regular_tables.columns(block, table.notation, layout.width, layout.wanted, polars)
        if columns is None:
            rest += more
            break
        count = len(columns[0])
        limits.charge_steps((text_lines.LINE + _CELL * layout.width) * count)
        table.add(columns)
        line += count
        rest = rest[len(block) :] + more
    return _records(source, table.notation, rest, source.stream, line)


def _header(start: bytes) -> bytes | None:
    """The first line, None where that is not the header and nothing else."""
    line, end, _ = start.partition(b"\n")
    text = line.removesuffix(b"\r")
    return None if not text.strip() or b"\r" in text or text.count(b'"') % 2 else line + end


class _Table:
    """What was read of a table so far."""

    def __init__(self, source: Source, members: Sequence[str | None], notation: Notation, layout: _Layout) -> None:
        self.source = source
        self.notation = notation
        self.layout = layout
        self._asked = [source._replace(member=member) for member in members]
        self._rows = 0
        self._parts: list[list[NDArray[Any]]] = [[] for _ in layout.wanted]

    def add_records(self, records: Sequence[_Record]) -> None:
        """Add the numbers of records. Raises BindingError where they hold anything else."""
        limits.charge_steps(_CELL * sum(len(cells) for _, cells in records))
        self.add(self._columns([cells for _, cells in records]) or self._columns_by_cell(records))

    def add(self, columns: Sequence[NDArray[Any]]) -> None:
        """Add rows, by column. Raises BindingError where they are too many."""
        self._rows += len(columns[0])
        for source, column in zip(self._asked, self.layout.columns):
            source.check_elements(self._rows * (self.layout.width if column is None else 1))
        for parts, column_part in zip(self._parts, columns):
            parts.append(column_part)

    def values(self) -> list[NDArray[Any]]:
        """What was asked for, each in an array of its own."""
        import numpy

        dtype = object if self.source.exact else numpy.float64
        read = dict(zip(self.layout.wanted, self._parts))

        def value(column: int | None) -> NDArray[Any]:
            if column is None and self.layout.width > 1:
                return numpy.stack([value(c) for c in self.layout.wanted], axis=1)
            return numpy.concatenate([numpy.empty(0, dtype), *read[column or 0]])

        return [value(column) for column in self.layout.columns]

    def _columns(self, rows: Sequence[list[str]]) -> list[NDArray[Any]] | None:
        """The numbers in the columns that are wanted, None where not all in the rows is of the ordinary."""
        if self.source.exact or set(map(len, rows)) != {self.layout.width}:
            return None
        columns = list(zip(*rows))
        found = []
        for column in self.layout.wanted:
            part = _floats(columns[column], self.notation.decimal_comma)
            if part is None:
                return None
            found.append(part)
        return found

    def _columns_by_cell(self, records: Sequence[_Record]) -> list[NDArray[Any]]:
        """The same, of any rows. Raises BindingError for the first thing that is wrong."""
        import numpy

        layout = self.layout
        found: list[list[float]] = [[] for _ in layout.wanted]
        for line, cells in records:
            if len(cells) != layout.width:
                raise self.source.error(
                    f"line {line} has {len(cells)} cells where the first line has {layout.width}",
                    f"give every line the same number of cells, separated by {self.notation.separator!r}",
                )
            for values, column in zip(found, layout.wanted):
                value = _number(cells[column], self.notation)
                if value is None:
                    raise self._not_a_number(line, column, cells[column])
                keeps = self.source.exact and cells[column].strip()
                values.append(_written(cells[column], self.notation) if keeps else value)
        return [numpy.array(values, dtype=object if self.source.exact else numpy.float64) for values in found]

    def _not_a_number(self, line: int, column: int, cell: str) -> FileError:
        asked = next(s for s, c in zip(self._asked, self.layout.columns) if c is None or c == column)
        return asked.error(
            f"line {line}, column {column + 1}: {beginning(cell)!r} is no float64 number",
            "cells are numbers, nan, inf, or empty for nan; a header is the first line and holds no numbers",
        )


def _floats(cells: Sequence[str], decimal_comma: bool) -> NDArray[Any] | None:
    """The numbers of cells, None where one of them is empty, infinite, not as others write it, or no number."""
    import numpy

    text = "".join(cells)
    if "_" in text or (decimal_comma and "." in text):
        return None
    if decimal_comma:
        cells = [cell.replace(",", ".", 1) for cell in cells]
    try:
        found = numpy.fromiter(map(float, cells), numpy.float64, len(cells))
    except ValueError:
        return None
    return None if numpy.isinf(found).any() else found


def _number(cell: str, notation: Notation) -> float | None:
    """The value of a cell, nan for an empty one, None for one that is no float64."""
    value = notation.number(cell)
    if value is None:
        return None if cell.strip() else math.nan
    # Python reads 1_000 as a number, and one that is too large as infinity.
    if "_" in cell or (math.isinf(value) and "inf" not in cell.lower()):
        return None
    return value


def _written(cell: str, notation: Notation) -> Written:
    return Written(cell.strip().replace(",", ".") if notation.decimal_comma else cell.strip())
