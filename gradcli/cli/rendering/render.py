"""Prints results: tables on a terminal, aligned plain columns elsewhere, and JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gradcli import arrays
from gradcli.cli.process.environment import Environment, is_unicode
from gradcli.errors import caret_text, position
from gradcli.io.text_tables import Table, plain
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.evaluation.diagnose import Warning


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
        environment.write("\n".join(plain(table) for table in tables))


# The width that Rich adds between columns, and around the table.
_GAP = 2
# The columns of a table of names and values.
_NAMES_AND_VALUES = 2


def _width(table: Table) -> int:
    """The width of a table on a terminal without truncation, in characters."""
    rows = [*([table.header] if table.header else []), *table.rows]
    return sum(max(_longest_line(row[i]) for row in rows) + _GAP for i in range(len(rows[0]))) + _GAP


def _longest_line(text: str) -> int:
    return max(map(len, text.split("\n")))


def _below_itself(table: Table, width: int) -> str:
    """A table that is too wide, as blocks with one line for each column; one of names and values stays such a list."""
    if not table.header and len(table.rows[0]) == _NAMES_AND_VALUES:
        wide = max((len(name) for name, _ in table.rows if len(name) <= width // 2), default=0)
        return "\n".join(_beside(name, cell, wide, width) for name, cell in table.rows) + "\n"
    heads = table.header or ("",) * len(table.rows[0])
    wide = max(map(len, heads))
    rows = ("\n".join(_beside(head, cell, wide, width) for head, cell in zip(heads, row)) for row in table.rows)
    return "\n\n".join(rows) + "\n"


def _beside(name: str, cell: str, wide: int, width: int) -> str:
    """A cell beside its name, for which there are `wide` characters, or below it where it has lines too long for
    that."""
    # Imported here as few tables are too wide.
    from textwrap import wrap

    start = f"{name:{wide}}  " if wide else ""
    hanging, lines = " " * len(start), cell.split("\n")
    if len(name) <= wide and _longest_line(cell) <= width - len(start):
        return start + f"\n{hanging}".join(lines)
    below = wrap(name, width)
    if cell.startswith("gradcli "):
        # Text that can be copied is not wrapped.
        return "\n".join([*below, f"  {cell}"])
    if not cell.startswith("["):
        if len(name) <= wide and len(start) <= width // 2:
            parts = [part for line in lines for part in wrap(line, width - len(start)) or [""]]
            return start + f"\n{hanging}".join(parts)
        return "\n".join([*below, *(f"  {part}" for line in lines for part in wrap(line, width - 2))])
    # The blanks that align the columns of an array are removed, and lines are broken after commas.
    if not cell.startswith("[["):
        lines = [" ".join(line.strip() for line in lines)]
    for line in lines:
        dense = re.sub(r" +(?=[,\]])", "", line)
        hanging = " " * (len(dense) - len(dense.lstrip(" [")))
        below += wrap(dense, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return "\n".join(below)


def _decorated(tables: Sequence[Table], environment: Environment) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=environment.stdout, highlight=True)
    with console.capture() as capture:
        for table in tables:
            if _width(table) > console.width:
                console.print(Text(_below_itself(table, console.width)), soft_wrap=True)
                continue
            drawn = RichTable(box=box.SIMPLE_HEAD if table.header else None, show_header=bool(table.header))
            for name in table.header or ("",) * len(table.rows[0]):
                first = not drawn.columns
                drawn.add_column(name, style="bold" if first else None, no_wrap=first and table.drawn)
            for row in table.rows:
                drawn.add_row(*map(Text, row))
            console.print(drawn)
    return capture.get()


def warning_text(warning: Warning, source: str) -> str:
    return f"warning: {warning.message}\n{caret_text(source, warning.span)}"


def warning_json(warning: Warning, source: str) -> dict[str, Any]:
    place = position(source, warning.span)
    return {
        "code": warning.code,
        "phase": warning.phase,
        "operation": warning.operation,
        "line": place.line,
        "column": place.column,
        "message": warning.message,
    } | ({} if warning.digits is None else {"digits": dict(warning.digits)})
