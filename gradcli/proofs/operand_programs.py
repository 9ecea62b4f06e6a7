"""Extracts the operands of an operation as programs of their own, so that they can be enclosed like any value.

The ball of an operand such as 1 - x**2 may extend beyond a domain that the number itself does not leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.errors import Span
from gradcli.language.operations import place
from gradcli.language.syntax import tree


def operands_at(program: tree.Module, span: Span) -> Iterator[tuple[Span, tree.Module]]:
    """Yield (span, program) for each operand of the operation at `span` that is an operation itself, or a name of one.

    The program has the operand as its value. Operations within loops and functions are skipped.
    """
    for number, statement in enumerate(program.body):
        if not isinstance(statement, (tree.Evaluate, tree.Assign, tree.Augment)):
            continue
        for node in _evaluated_once(statement):
            if place(node) == span:
                for operand in tree.children(node):
                    known, before = _meaning(operand, program.body[:number])
                    if isinstance(known, (tree.Binary, tree.Unary, tree.Call)):
                        value = tree.Evaluate(known.span, known)
                        yield place(known), tree.Module(program.span, program.source, (*before, value))


def _evaluated_once(statement: tree.Statement) -> Iterator[tree.Expression]:
    stack: list[tree.SyntaxNode] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, (tree.Lambda, tree.Comprehension)):
            continue
        if isinstance(node, tree.Expression):
            yield node
        stack += tree.children(node)


def _meaning(
    node: tree.SyntaxNode, before: Sequence[tree.Statement]
) -> tuple[tree.SyntaxNode, Sequence[tree.Statement]]:
    """Resolve a name to the expression assigned to it, and return that with the statements before the assignment.

    Any other node is returned as it is.
    """
    for number in reversed(range(len(before))):
        statement = before[number]
        if isinstance(node, tree.Name) and isinstance(statement, tree.Assign):
            names = [n.name if isinstance(n, tree.BoundName) else None for n in statement.targets]
            if names == [node.id]:
                node, before = statement.value, before[:number]
    return node, before
