"""Columns by the names that programs read them by, and what to say of a name that no column has."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.errors import BindingError, nearest
from gradcli.language.syntax import tree


def nearest_column(name: str, columns: Collection[str]) -> str | None:
    """The column that is called most like `name`."""
    return next((column for column in columns if column.lower() == name.lower()), None) or nearest(name, columns)


def hint_of_column(name: str, columns: Collection[str], otherwise: str | None) -> str | None:
    """How to read the column that is called most like `name`; what is given where none is."""
    close = nearest_column(name, columns)
    if close is None:
        return otherwise
    asked = f"{name}='column:{close}'"
    return f"did you mean '{close}'? write " + (f"it so, or {asked}" if close.isidentifier() else asked)


def check_dots(program: tree.Module, columns: Collection[str], source: str) -> None:
    """Raise BindingError for a column whose title has a dot in it and stands in the program as it is: `Solar.R`."""
    dotted = {column for column in columns if "." in column}
    if not dotted:
        return
    for node in tree.everything(program):
        if isinstance(node, tree.Attribute) and (title := source[node.span.start : node.span.end]) in dotted:
            name = title.replace(".", "_")
            raise BindingError(
                f"'{title}' is a column, and no name of a program: it has a dot",
                hint=f"write {name} for it, and {name}='column:{title}' beside the program",
                span=node.span,
                source=source,
            )
