"""What a program says and does not use: it was probably meant otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradcli.errors import Span
from gradcli.language import scope
from gradcli.language.syntax import tree


class Unused(NamedTuple):
    """A part of a program that changes nothing, and what to say of it."""

    span: Span
    message: str


# Those that are told: each takes the time to find its line in the text.
_MOST = 20
_NOT_USED = "the value of this statement is not used: the value of the program is that of its last statement"
_OF_ITS_OWN = "this line is a statement of its own: a line goes on inside brackets alone"


def unused(program: tree.Module) -> list[Unused]:
    """The statements whose values are lost, and the functions that are never called, in the order of the text."""
    found = sorted([*_values(program), *_functions(program), *_lines(program)])
    if len(found) > _MOST:
        last = found[_MOST - 1]
        found[_MOST - 1 :] = [last._replace(message=f"{last.message}; {len(found) - _MOST:,} more are not listed")]
    return found


def _values(program: tree.Module) -> Iterator[Unused]:
    # With each list of statements, whether the value of the last one is used.
    blocks: list[tuple[Sequence[tree.SyntaxNode], bool]] = [(program.body, True)]
    while blocks:
        statements, used = blocks.pop()
        for place, node in enumerate(statements):
            last = used and place == len(statements) - 1
            if isinstance(node, tree.Evaluate) and not last and not does_something(node.value):
                yield Unused(node.span, _NOT_USED)
            elif isinstance(node, tree.If):
                blocks += [(node.body, last), (node.orelse, last)]
            elif isinstance(node, (tree.For, tree.While)):
                blocks.append((node.body, last))
            elif isinstance(node, tree.Define) and isinstance(node.body, tree.Block):
                blocks.append((node.body.statements, False))


def does_something(value: tree.Expression) -> bool:
    """Whether an expression is there for what it does: a call of a method, a docstring, or `…`."""
    return isinstance(value, tree.String) or (isinstance(value, tree.Call) and value.name in scope.LIST_METHODS)


def _functions(program: tree.Module) -> Iterator[Unused]:
    defined = [*_defined(program)]
    if not defined:
        return
    mentioned = Counter(scope.mentions(tree.everything(program)))
    for name, place, statement in defined:
        # A function that calls itself is not called by that.
        if mentioned[name] == Counter(scope.mentions(tree.walk(statement)))[name]:
            yield Unused(place, f"'{name}' is defined and never called")


def _defined(program: tree.Module) -> Iterator[tuple[str, Span, tree.SyntaxNode]]:
    """The functions of a program, each with the place of its name, and the statement that defines it."""
    for node in program.body:
        if isinstance(node, tree.Define):
            yield node.name, node.name_span, node
        elif isinstance(node, tree.Assign) and isinstance(node.value, tree.Lambda):
            yield from ((t.name, t.span, node) for t in node.targets if isinstance(t, tree.BoundName))


def _lines(program: tree.Module) -> Iterator[Unused]:
    """A last line that begins with a sign, behind one that gives a value to a name that is read nowhere after: it may
    have been meant to go on with that."""
    if len(program.body) < 2:
        return
    before, last = program.body[-2:]
    sign = program.source[last.span.start]
    if (
        not isinstance(last, tree.Evaluate)
        or sign not in "+-−"
        or "\n" not in program.source[before.span.end : last.span.start]
    ):
        return
    names = {before.name} if isinstance(before, tree.Define) else set()
    if isinstance(before, tree.Assign):
        names = set().union(*map(scope.names_of, before.targets))
    if names and not names.intersection(scope.mentions(tree.walk(last))):
        yield Unused(last.span, _OF_ITS_OWN)
