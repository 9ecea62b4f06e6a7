"""The columns that programs can name, and the hints for names without a column."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.errors import BindingError, closest_word
from gradcli.language.syntax import tree


def nearest_column(name: str, columns: Collection[str]) -> str | None:
    """The column with the name closest to `name`, ignoring case first; None where none is close."""
    return next((column for column in columns if column.lower() == name.lower()), None) or closest_word(name, columns)


def hint_of_column(name: str, columns: Collection[str], otherwise: str | None) -> str | None:
    """A hint how to read the column with the closest name; `otherwise` where none is close."""
    close = nearest_column(name, columns)
    if close is None:
        return otherwise
    asked = f"{name}='column:{close}'"
    return f"did you mean '{close}'? write " + (f"it so, or {asked}" if close.isidentifier() else asked)


def check_dots(program: tree.Module, columns: Collection[str], source: str) -> None:
    """Raise BindingError for a program that contains a column name with a dot, such as `Solar.R`."""
    dotted = {column for column in columns if "." in column}
    if not dotted:
        return
    for node in tree.all_nodes(program):
        if isinstance(node, tree.Attribute) and (title := source[node.span.start : node.span.end]) in dotted:
            name = title.replace(".", "_")
            raise BindingError(
                f"'{title}' is a column, and no name of a program: it has a dot",
                hint=f"write {name} for it, and {name}='column:{title}' beside the program",
                span=node.span,
                source=source,
            )
