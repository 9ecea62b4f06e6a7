"""Tables of numbers as text, `.csv` and `.tsv`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from gradcli import limits
from gradcli.errors import BindingError
from gradcli.io.json_numbers import Written
from gradcli.io.source import Source
from gradcli.timing import phase

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Characters of a line: each cell of one takes memory until all are read.
MAX_LINE = 10_000_000
# In eighths of steps.
_LINE = 3
_CELL = 1
_SPACE_AFTER_QUOTE = re.compile(r'" +(?=[,\t\r\n]|$)')


class _Record(NamedTuple):
    line: int
    cells: list[str]


def read_table(source: Source) -> NDArray[Any]:
    """The whole table with shape (rows, columns), or one column with shape (rows,).

    The first line is a header where none of its cells is a number. Blank lines are skipped, an empty cell is
    nan. Raises BindingError for a cell that is no number and for rows of different lengths, with the line and
    column, and for a column that is not there.
    """
    with phase("import"):
        import numpy

    rows = _rows(source)
    first = next(rows, None)
    if first is None:
        raise source.error("it is empty", "give a table with at least one line")
    if _is_header(first.cells):
        column = _named_column(source, [cell.strip() for cell in first.cells])
    else:
        column = _numbered_column(source, len(first.cells))
        rows = chain([first], rows)
    width = len(first.cells)
    found = _values(source, rows, width, column)
    values = numpy.array(found, dtype=object if source.exact else numpy.float64)
    return values if column is not None or width == 1 else values.reshape(-1, width)


def _delimiter(source: Source) -> str:
    return "\t" if source.path.lower().endswith(".tsv") else ","


def _rows(source: Source) -> Iterator[_Record]:
    import csv

    with io.TextIOWrapper(source.stream, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(
            map(_trimmed, _lines(source, text)), delimiter=_delimiter(source), skipinitialspace=True, strict=True
        )
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield _Record(line, cells)
                line = reader.line_num + 1
        except csv.Error as error:
            raise source.error(f"line {line} is malformed: {error}", "check its quotes") from error


def _lines(source: Source, text: TextIO) -> Iterator[str]:
    while line := text.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise source.error(
                f"a line of it is longer than {MAX_LINE:,} characters", "save large arrays with numpy.save"
            )
        limits.charge_steps(_LINE)
        yield line


def _trimmed(line: str) -> str:
    """The line without the spaces that csv minds: those after a closing quote, and those of a blank line."""
    if not line.strip(" \r\n"):
        return "\n"
    return _SPACE_AFTER_QUOTE.sub('"', line) if '"' in line else line


def _is_header(cells: Sequence[str]) -> bool:
    names = [cell for cell in cells if cell.strip()]
    return bool(names) and not any(_float(name) is not None for name in names)


def _named_column(source: Source, names: list[str]) -> int | None:
    if source.member is None:
        return None
    if source.member not in names:
        raise source.no_such_member("column", source.member, names)
    if names.count(source.member) > 1:
        raise source.error(f"it has more than one column {source.member!r}", "give the columns different names")
    return names.index(source.member)


def _numbered_column(source: Source, width: int) -> int | None:
    """The 0-based column for a 1-based number, in a table without a header."""
    if source.member is None:
        return None
    # Text as long as this is no column number, and int() is slow or refuses where it is far longer.
    digits = source.member.isdecimal() and len(source.member) < 10
    if not digits or not 1 <= int(source.member) <= width:
        raise source.error(
            f"it has no column {source.member!r}",
            f"it has no header line; its columns are numbered 1 to {width}",
        )
    return int(source.member) - 1


def _values(source: Source, rows: Iterable[_Record], width: int, column: int | None) -> Sequence[float]:
    from array import array

    values: Any = [] if source.exact else array("d")
    for row in rows:
        limits.charge_steps(_CELL * len(row.cells))
        if len(row.cells) != width:
            raise source.error(
                f"line {row.line} has {len(row.cells)} cells where the first line has {width}",
                f"give every line the same number of cells, separated by {_delimiter(source)!r}",
            )
        first = 0 if column is None else column
        cells = row.cells if column is None else row.cells[column : column + 1]
        for at, cell in enumerate(cells, first + 1):
            value = _number(cell)
            if value is None:
                raise _not_a_number(source, row.line, at, cell)
            values.append(Written(cell.strip()) if source.exact and cell.strip() else value)
        source.check_elements(len(values))
    return values  # type: ignore[no-any-return]


def _number(cell: str) -> float | None:
    """The value of a cell, nan for an empty one, None for one that is no float64."""
    value = _float(cell)
    if value is None:
        return None if cell.strip() else math.nan
    # Python reads 1_000 as a number, and one that is too large as infinity.
    if "_" in cell or (math.isinf(value) and "inf" not in cell.lower()):
        return None
    return value


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _not_a_number(source: Source, line: int, column: int, cell: str) -> BindingError:
    shown = cell if len(cell) <= 40 else cell[:40] + "…"
    return source.error(
        f"line {line}, column {column}: {shown!r} is no float64 number",
        "cells are numbers, nan, inf, or empty for nan; a header is the first line and holds no numbers",
    )
