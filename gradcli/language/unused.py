"""What a program says and does not use: it was probably meant otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradcli.errors import Span
from gradcli.language import scope
from gradcli.language.syntax import tree


class Unused(NamedTuple):
    """A part of a program that changes nothing, and what to say of it."""

    span: Span
    message: str


_NOT_USED = "the value of this statement is not used: the value of the program is that of its last statement"


def unused(program: tree.Module) -> list[Unused]:
    """The statements whose values are lost, and the functions that are never called, in the order of the text."""
    found = [*_values(program), *_functions(program)]
    return sorted(found)


def _values(program: tree.Module) -> Iterator[Unused]:
    # With each list of statements, whether the value of the last one is used.
    blocks: list[tuple[Sequence[tree.SyntaxNode], bool]] = [(program.body, True)]
    while blocks:
        statements, used = blocks.pop()
        for place, node in enumerate(statements):
            last = used and place == len(statements) - 1
            if isinstance(node, tree.Evaluate) and not last and not _does_something(node.value):
                yield Unused(node.span, _NOT_USED)
            elif isinstance(node, tree.If):
                blocks += [(node.body, last), (node.orelse, last)]
            elif isinstance(node, (tree.For, tree.While)):
                blocks.append((node.body, last))
            elif isinstance(node, tree.Define) and isinstance(node.body, tree.Block):
                blocks.append((node.body.statements, False))


def _does_something(value: tree.Expression) -> bool:
    """Whether an expression is there for what it does: a call of a method, a docstring, or `…`."""
    return isinstance(value, tree.String) or (isinstance(value, tree.Call) and value.name in scope.LIST_METHODS)


def _functions(program: tree.Module) -> Iterator[Unused]:
    defined = [n for n in program.body if isinstance(n, tree.Define)]
    if not defined:
        return
    mentioned = {n.name for n in tree.everything(program) if isinstance(n, tree.Call)}
    mentioned |= {n.id for n in tree.everything(program) if isinstance(n, tree.Name)}
    yield from (
        Unused(d.name_span, f"'{d.name}' is defined and never called") for d in defined if d.name not in mentioned
    )
