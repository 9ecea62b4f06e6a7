"""Operands of a program as programs of their own: what bounds they have is found as that of any value.

Over a part of a box a ball of an operand such as 1 - x**2 may reach beyond a domain that the number itself does not
leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradcli.errors import Span
from gradcli.language.operations import place
from gradcli.language.syntax import tree


def operands_at(program: tree.Module, span: Span) -> Iterator[tuple[Span, tree.Module]]:
    """The operands of the operation at a place that are operations themselves, or names for one, by their places, each as a
    program with it as its value; none of what stands in a loop or a function."""
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
    """What a name stands for that was given a value in one of the statements before, and those before that; anything
    else as it is."""
    for number in reversed(range(len(before))):
        statement = before[number]
        if isinstance(node, tree.Name) and isinstance(statement, tree.Assign):
            names = [n.name if isinstance(n, tree.BoundName) else None for n in statement.targets]
            if names == [node.id]:
                node, before = statement.value, before[:number]
    return node, before
