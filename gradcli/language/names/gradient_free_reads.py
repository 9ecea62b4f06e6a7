"""Finds the calls `x.item()` and `float(x)` that lose no gradient, as only conditions and indices read their result.

All others are an error when the program differentiates through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradcli.language.names import binders
from gradcli.language.syntax import tree

# Functions that are piecewise constant, or that count.
_WITHOUT_GRADIENT = frozenset({"int", "range", "len"})


def gradient_free_calls(program: tree.Module) -> frozenset[tree.SyntaxNode]:
    """The calls of `item` and `float` in a program that lose no gradient."""
    nodes = tree.all_nodes(program)
    within = _below(part for node in nodes for part in _parts_without_gradient(node))
    # An assignment in the last statement gives the program its value.
    last = {*tree.walk(program.body[-1])}
    assigned = [node for node in nodes if isinstance(node, tree.Assign) and node not in last]
    while True:
        read = {n.id for n in nodes if isinstance(n, tree.Name) and n not in within} | _changed(nodes)
        further = _below(a.value for a in assigned if a.value not in within and not binders.bound_by(a) & read)
        if not further:
            return frozenset(n for n in within if isinstance(n, tree.Call))
        within |= further


def _parts_without_gradient(node: tree.SyntaxNode) -> Iterator[tree.SyntaxNode]:
    """The children of a node through which no gradient flows."""
    if isinstance(node, (tree.If, tree.While, tree.Conditional)):
        yield node.test
    elif isinstance(node, tree.Clause):
        yield from node.conditions
    elif isinstance(node, tree.Index):
        yield from node.items
    elif isinstance(node, tree.Compare):
        yield from node.operands
    elif isinstance(node, tree.Call) and node.name in _WITHOUT_GRADIENT and not node.module and node.receiver is None:
        yield from node.arguments


def _below(parts: Iterable[tree.SyntaxNode]) -> set[tree.SyntaxNode]:
    """The given nodes and all nodes below them."""
    return {node for part in parts for node in tree.walk(part)}


def _changed(nodes: Iterable[tree.SyntaxNode]) -> set[str]:
    """The names that are assigned in loops, by `+=` and the like, or by unpacking, all of which count as reads."""
    others = [n for n in nodes if isinstance(n, (tree.For, tree.Augment, tree.Clause))]
    elements = [t for n in nodes if isinstance(n, tree.Assign) for t in n.targets if not isinstance(t, tree.BoundName)]
    return set().union(*map(binders.bound_by, others), *map(binders.bound_names, elements))
