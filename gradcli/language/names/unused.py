"""Finds statements and functions of a program that are never used, which is probably a mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gradcli.errors import Span
from gradcli.language.names import binders, scope
from gradcli.language.names.evaluator_functions import LIST_METHODS
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple


class Unused(NamedTuple):
    """An unused part of a program, and the message of its warning."""

    span: Span
    message: str


# At most this many are listed, as each takes time to locate in the text.
_MOST = 20
_NOT_USED = "the value of this statement is not used: the value of the program is that of its last statement"
_OF_ITS_OWN = "this line is a statement of its own: a line goes on inside brackets alone"


def unused(program: tree.Module) -> list[Unused]:
    """The statements without effect and the functions that are never called, in the order of the text."""
    found = sorted([*_values(program), *_functions(program), *_lines(program)])
    if len(found) > _MOST:
        last = found[_MOST - 1]
        found[_MOST - 1 :] = [last._replace(message=f"{last.message}; {len(found) - _MOST:,} more are not listed")]
    return found


def _values(program: tree.Module) -> Iterator[Unused]:
    # Lists of statements, each with whether the value of its last statement is used.
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
    """Return whether an expression statement is not a mistake: it is a method call with an effect, or a docstring."""
    return isinstance(value, tree.String) or (isinstance(value, tree.Call) and value.name in LIST_METHODS)


def _functions(program: tree.Module) -> Iterator[Unused]:
    defined = [*_defined(program)]
    if not defined:
        return
    mentioned = Counter(scope.mentioned_names(tree.all_nodes(program)))
    for name, place, statement in defined:
        # Recursive calls do not count.
        if mentioned[name] == Counter(scope.mentioned_names(tree.walk(statement)))[name]:
            yield Unused(place, f"'{name}' is defined and never called")


def _defined(program: tree.Module) -> Iterator[tuple[str, Span, tree.SyntaxNode]]:
    """The functions that a program defines, each with the span of its name and the defining statement."""
    for node in program.body:
        if isinstance(node, tree.Define):
            yield node.name, node.name_span, node
        elif isinstance(node, tree.Assign) and isinstance(node.value, tree.Lambda):
            yield from ((t.name, t.span, node) for t in node.targets if isinstance(t, tree.BoundName))


def _lines(program: tree.Module) -> Iterator[Unused]:
    """A last line that starts with a sign, after an assignment that it may be meant to continue."""
    if len(program.body) < 2:
        return
    before, last = program.body[-2:]
    sign = program.source[last.span.start : last.span.start + 1]
    if (
        not isinstance(last, tree.Evaluate)
        or not sign
        or sign not in "+-−"
        or "\n" not in program.source[before.span.end : last.span.start]
    ):
        return
    names = {before.name} if isinstance(before, tree.Define) else set()
    if isinstance(before, tree.Assign):
        names = set().union(*map(binders.bound_names, before.targets))
    if names and not names.intersection(scope.mentioned_names(tree.walk(last))):
        yield Unused(last.span, _OF_ITS_OWN)
