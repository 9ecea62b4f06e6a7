"""Prints results: tables on a terminal, aligned plain columns elsewhere, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli import arrays
from gradcli.cli.process.environment import Environment, is_unicode
from gradcli.named_tuples import NamedTuple


class Table(NamedTuple):
    """A table of texts; without a header the first column has the names of the rows. In a `drawn` table the first
    column contains line drawings, which must not be wrapped."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    drawn: bool = False


# The number of significant digits to which numbers are rounded in tables, or None.
_PRECISION: ContextVar[int | None] = ContextVar("precision", default=None)


@contextmanager
def rounded(precision: int | None) -> Iterator[None]:
    """Within the block numbers are rounded to so many significant digits as text."""
    token = _PRECISION.set(precision)
    try:
        yield
    finally:
        _PRECISION.reset(token)


def flat(value: Any) -> Iterable[Any]:
    """The numbers of a value one by one."""
    return value.ravel() if getattr(value, "ndim", 0) else (value,)


def number_text(value: Any) -> str:
    """A number or array as text; a long array is abbreviated."""
    precision = _PRECISION.get()
    if precision is not None and not isinstance(value, (bool, str, int)) and value is not None:
        return _rounded_text(value, precision)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if type(value) in (float, int, str):
        return str(value)
    import numpy as np

    if value.ndim == 0:
        return str(value)
    # Object arrays contain strings, the proved digits of numbers.
    as_it_is: Any = {"object": str} if value.dtype == object else None
    text = np.array2string(
        value, separator=", ", threshold=200, edgeitems=3, floatmode="unique", max_line_width=100, formatter=as_it_is
    )
    return str(text)


def _rounded_text(value: Any, precision: int) -> str:
    def text(number: Any) -> str:
        return f"{float(number):.{precision}g}"

    if not getattr(value, "ndim", 0):
        return text(value)
    import numpy as np

    if value.dtype.kind != "f":
        return str(np.array2string(value, separator=", ", threshold=200, edgeitems=3, max_line_width=100))
    return str(
        np.array2string(
            value, separator=", ", threshold=200, edgeitems=3, max_line_width=100, formatter={"float_kind": text}
        )
    )


def opening(program: str, namespace: arrays.Namespace | None) -> dict[str, Any]:
    """The first members of the JSON object of an evaluated program: its text, and the backend and device (NumPy where
    `namespace` is None)."""
    return {
        "program": program,
        "backend": "numpy" if namespace is None else namespace.name,
        "device": "cpu" if namespace is None else namespace.device_name,
    }


def show_json(members: Mapping[str, Any], environment: Environment) -> None:
    """Write a JSON object to standard output, on one line."""
    # Imported here because tables do not need it.
    from gradcli.io import json_text

    environment.write(json_text.result_line(members, ascii=not is_unicode(environment.stdout)))


def show(tables: Sequence[Table], environment: Environment) -> None:
    """Write the tables to standard output."""
    if environment.for_terminal:
        environment.write(_decorated(tables, environment))
    else:
        environment.write("\n".join(_plain(table) for table in tables))


def _plain(table: Table) -> str:
    cells = [[cell.split("\n") for cell in row] for row in (*([table.header] if table.header else []), *table.rows)]
    widths = [max(len(line) for row in cells for line in row[i]) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        for n in range(max(map(len, row))):
            parts = [(cell[n] if n < len(cell) else "").ljust(width) for cell, width in zip(row, widths)]
            lines.append("  ".join(parts).rstrip())
    return "\n".join(lines) + "\n"


# The width that Rich adds between columns, and around the table.
_GAP = 2


def _width(table: Table) -> int:
    """The width of a table on a terminal without truncation, in characters."""
    rows = [*([table.header] if table.header else []), *table.rows]
    return sum(max(_longest_line(row[i]) for row in rows) + _GAP for i in range(len(rows[0]))) + _GAP


def _longest_line(text: str) -> int:
    return max(map(len, text.split("\n")))


def _below_itself(table: Table) -> str:
    """A table that is too wide, as blocks with one line for each column."""
    heads = table.header or ("",) * len(table.rows[0])
    wide = max(map(len, heads))
    rows = ("\n".join(f"{head:{wide}}  {cell}".lstrip() for head, cell in zip(heads, row)) for row in table.rows)
    return "\n\n".join(rows) + "\n"


def _decorated(tables: Sequence[Table], environment: Environment) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=environment.stdout, highlight=True)
    with console.capture() as capture:
        for table in tables:
            if _width(table) > console.width:
                console.print(Text(_below_itself(table), overflow="fold"))
                continue
            drawn = RichTable(box=box.SIMPLE_HEAD if table.header else None, show_header=bool(table.header))
            for name in table.header or ("",) * len(table.rows[0]):
                first = not drawn.columns
                drawn.add_column(name, style="bold" if first else None, no_wrap=first and table.drawn)
            for row in table.rows:
                drawn.add_row(*map(Text, row))
            console.print(drawn)
    return capture.get()
