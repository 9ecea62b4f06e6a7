"""Reading of tables of numbers from text, `.csv` and `.tsv`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO

from gradcli import limits
from gradcli.errors import abbreviated
from gradcli.io import by_polars, regular_tables, text_lines
from gradcli.io.json_numbers import DecimalFloat
from gradcli.io.source import FileError, Source
from gradcli.named_tuples import NamedTuple
from gradcli.timing import phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradcli.io.separators import CellNotation

# Bytes of a table from which importing Polars pays off (the times with and without it are equal at 6 MB), and bytes
# that are read at a time.
_LARGE = _BLOCK = 2**23
# Rows per batch without Polars.
_ROWS = 4096
# The charge for each cell, in units of 1/8 of a step.
_CELL = 1
_SPACE_AFTER_QUOTE = re.compile(r'" +(?=[,;|\t\r\n]|$)')
# Possible separators of several numbers in one cell.
_BETWEEN = re.compile(r"[\s,;|\0]+")
# Numbers in other notations: 0x1F, 0b101, 1.5d3, 1'000, 5%.
_FOREIGN_NUMBER = re.compile(
    r"[+-]?(?:0x[\da-f]+|0[bo]\d+|\d*\.?\d+d[+-]?\d+|\d+('\d{3})+|\d*\.?\d+%"
    # With a unit prefix.
    r"|\d*\.?\d+(?:e[+-]?\d+)?[kmgtunpµμ])",
    re.IGNORECASE,
)

# The number of the first line of a record, from 1, and its cells.
_Record = tuple[int, list[str]]


def read_table(
    source: Source, members: Sequence[str | None], separators: Sequence[str] | None = None
) -> list[NDArray[Any]]:
    """Read a column with shape (rows,) for each member, or the whole table with shape (rows, columns) for None.

    The separator, one of `separators` or the usual ones, and decimal commas are detected from the first lines. The
    first line after comments is a header where none of its cells is a number. Blank lines are skipped, an empty cell is
    nan. Raises BindingError, with line and column, for a cell that is not a number, for rows of different lengths, and
    for a column that does not exist.
    """
    # Imported only where a table is read.
    from gradcli.io.separators import DEFAULT, detected_notation, preamble_of

    separators = separators or DEFAULT
    with phase("import"):
        import numpy  # noqa: F401
    start = text_lines.beginning(source.stream, _LARGE)
    preamble = preamble_of(start, separators)
    line, start = 1 + start.count(b"\n", 0, preamble.size), start[preamble.size :]
    notation = detected_notation(
        start.decode(errors="replace"), [preamble.separator] if preamble.separator else separators
    )
    # Only the beginning of a large table has been read at this point.
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


def _records(source: Source, notation: CellNotation, start: bytes, stream: BinaryIO, line: int) -> Iterator[_Record]:
    """The records of the text `start`, whose first line has the number `line`, and of the stream that continues it."""
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
    """A line without the spaces that csv does not ignore: those after a closing quote, in a blank line, and at line
    ends where spaces separate cells."""
    if separator == " " or not line.strip(" \r\n"):
        return line.rstrip(" \r\n") + "\n"
    return _SPACE_AFTER_QUOTE.sub('"', line) if '"' in line else line


class _Layout(NamedTuple):
    """The number of columns, whether the first line is a header, and the index of the column of each member, None for
    the whole table."""

    width: int
    has_header: bool
    columns: Sequence[int | None]

    @property
    def wanted(self) -> Sequence[int]:
        """The indices of the columns that are read, ascending."""
        return range(self.width) if None in self.columns else sorted({c for c in self.columns if c is not None})


def _layout(source: Source, members: Sequence[str | None], notation: CellNotation, first: Sequence[str]) -> _Layout:
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


def _is_name(cell: str, notation: CellNotation) -> bool:
    """Return whether a cell holds more than a number, or than several numbers with other separators."""
    return complex_number(cell) is None and any(notation.number(part) is None for part in _BETWEEN.split(cell) if part)


def _is_foreign(cell: str) -> bool:
    """Return whether a cell is a number in another notation. Beside words it may still be a name, as in `mean,25%`."""
    return _FOREIGN_NUMBER.fullmatch(cell) is not None


def _named_column(source: Source, member: str, names: list[str]) -> int:
    if member not in names:
        raise source.no_such_member("column", member, names)
    if names.count(member) > 1:
        raise source.error(f"it has more than one column {member!r}", "give the columns different names")
    return names.index(member)


def _numbered_column(source: Source, member: str, width: int) -> int:
    """The 0-based column of a 1-based number, in a table without a header."""
    # int() is slow for, or refuses, much longer text.
    digits = member.isdecimal() and len(member) < 10
    if not digits or not 1 <= int(member) <= width:
        raise source.error(
            f"it has no column {member!r}", f"it has no header line; its columns are numbered 1 to {width}"
        )
    return int(member) - 1


def _records_of_large(table: _Table, start: bytes, line: int) -> Iterator[_Record]:
    """The records of a large table without its header and without the leading blocks that Polars can read. `start` is
    the beginning of the table, at line number `line`."""
    source, layout = table.source, table.layout
    header = _header(start) if layout.has_header else b""
    if header is None or table.notation.separator == " ":
        return islice(_records(source, table.notation, start, source.stream, line), layout.has_header, None)
    polars = by_polars.installed()
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
    """The first line, None where it is not certain to be the whole header."""
    line, end, _ = start.partition(b"\n")
    text = line.removesuffix(b"\r")
    return None if not text.strip() or b"\r" in text or text.count(b'"') % 2 else line + end


class _Table:
    """Collects the columns of a table."""

    def __init__(self, source: Source, members: Sequence[str | None], notation: CellNotation, layout: _Layout) -> None:
        self.source = source
        self.notation = notation
        self.layout = layout
        self._asked = [source._replace(member=member) for member in members]
        self._rows = 0
        self._parts: list[list[NDArray[Any]]] = [[] for _ in layout.wanted]

    def add_records(self, records: Sequence[_Record]) -> None:
        """Add the numbers of records. Raises BindingError for records with anything else."""
        limits.charge_steps(_CELL * sum(len(cells) for _, cells in records))
        self.add(self._columns([cells for _, cells in records]) or self._columns_by_cell(records))

    def add(self, columns: Sequence[NDArray[Any]]) -> None:
        """Add rows, given by column. Raises BindingError where there are too many elements."""
        self._rows += len(columns[0])
        for source, column in zip(self._asked, self.layout.columns):
            source.check_elements(self._rows * (self.layout.width if column is None else 1))
        for parts, column_part in zip(self._parts, columns):
            parts.append(column_part)

    def values(self) -> list[NDArray[Any]]:
        """The values of the members, each in a separate array."""
        import numpy

        dtype = object if self.source.exact else numpy.float64
        read = dict(zip(self.layout.wanted, self._parts))

        def value(column: int | None) -> NDArray[Any]:
            if column is None and self.layout.width > 1:
                return numpy.stack([value(c) for c in self.layout.wanted], axis=1)
            return numpy.concatenate([numpy.empty(0, dtype), *read[column or 0]])

        return [value(column) for column in self.layout.columns]

    def _columns(self, rows: Sequence[list[str]]) -> list[NDArray[Any]] | None:
        """The numbers in the wanted columns, None where the rows need the slower reader."""
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
        """The numbers in the wanted columns of any rows. Raises BindingError for the first error."""
        import numpy

        layout = self.layout
        found: list[list[float | complex]] = [[] for _ in layout.wanted]
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
                keeps = self.source.exact and cells[column].strip() and not isinstance(value, complex)
                values.append(_written(cells[column], self.notation) if keeps else value)
        return [numpy.array(values, dtype=object if self.source.exact else _dtype_of(values)) for values in found]

    def _not_a_number(self, line: int, column: int, cell: str) -> FileError:
        asked = next(s for s, c in zip(self._asked, self.layout.columns) if c is None or c == column)
        return asked.error(
            f"line {line}, column {column + 1}: {abbreviated(cell)!r} is no float64 number",
            "cells are numbers, nan, inf, or empty for nan; a header is the first line and holds no numbers",
        )


def _floats(cells: Sequence[str], decimal_comma: bool) -> NDArray[Any] | None:
    """The numbers of cells, None where a cell is empty, infinite, in another notation, or not a number."""
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


def _dtype_of(values: Sequence[float | complex]) -> str:
    return "complex128" if complex in map(type, values) else "float64"


# A digit, or the parenthesis in which Python writes complex numbers: `j` alone is a name.
_OF_COMPLEX = re.compile(r"[\d(]")


def complex_number(cell: str) -> complex | None:
    """The value of a cell with a complex number as Python writes it, `(1+2j)`; None for any other text."""
    if cell.rstrip(") ")[-1:] not in ("j", "J") or "_" in cell or not _OF_COMPLEX.search(cell):
        return None
    try:
        return complex(cell.strip())
    except ValueError:
        return None


def _number(cell: str, notation: CellNotation) -> float | complex | None:
    """The value of a cell, nan for an empty one, None for one that is not a number of float64 or complex128."""
    value = notation.number(cell)
    if value is None:
        return complex_number(cell) if cell.strip() else math.nan
    # float() accepts 1_000, and returns infinity for numbers that are too large.
    if "_" in cell or (math.isinf(value) and "inf" not in cell.lower()):
        return None
    return value


def _written(cell: str, notation: CellNotation) -> DecimalFloat:
    return DecimalFloat(cell.strip().replace(",", ".") if notation.decimal_comma else cell.strip())
