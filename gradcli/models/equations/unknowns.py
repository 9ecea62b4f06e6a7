"""Which name is the unknown of equations for which no start is given."""

from __future__ import annotations

from collections.abc import Collection

from gradcli.language.equations import Equations, read_equations
from gradcli.language.names import scope
from gradcli.language.syntax import parse_equations, tree


def read_with_unknown(text: str, known: Collection[str]) -> tuple[Equations, str | None]:
    """The equations, and the only name in them that has no value and is not in `known`, or None unless there is exactly
    one. Raises what `read_equations` raises."""
    names = _names(text) - {*known} - {*scope.CONSTANTS}
    if len(names) == 1:
        # With the unknown known, x = cos(x) is an equation, and not a definition.
        (name,) = names
        return read_equations(text, [name, *known]), name
    equations = read_equations(text, known)
    free = [n for n in scope.outer_reads(equations.program) if n not in scope.CONSTANTS and n not in known]
    return equations, free[0] if len(free) == 1 else None


def _names(text: str) -> set[str]:
    """All names that are read or defined in a text."""
    found: set[str] = set()
    for said in parse_equations(text):
        for node in (n for part in said.sides or said.statements or () for n in tree.walk(part)):
            if isinstance(node, tree.Name) and not node.module:
                found.add(node.id)
            elif isinstance(node, tree.BoundName | tree.Define | tree.Parameter):
                found.add(node.name)
    return found
