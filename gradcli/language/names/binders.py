"""Which names statements, functions and loops bind, by their nodes alone."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.language.syntax import tree


def bound_names(target: tree.SyntaxNode) -> frozenset[str]:
    """The names that an assignment target or a loop target binds."""
    return frozenset(
        n.id if isinstance(n, tree.Name) else n.name
        for n in ([target] if isinstance(target, tree.Name) else tree.walk(target))
        if isinstance(n, (tree.BoundName, tree.Name)) and not isinstance(target, tree.Index)
    )


def names_given(statement: tree.Statement) -> list[str]:
    """The names that a definition or an assignment gives; none for other statements."""
    if isinstance(statement, tree.Define):
        return [statement.name]
    if isinstance(statement, tree.Assign):
        return [name for target in statement.targets for name in bound_names(target)]
    return []


def local_names(node: tree.Define | tree.Lambda) -> frozenset[str]:
    """The local names of a function: its parameters and the names that it assigns."""
    found = {p.name for p in node.parameters}
    stack = [*body_of(node)]
    while stack:
        within = stack.pop()
        if isinstance(within, tree.Define):
            found.add(within.name)
        elif isinstance(within, tree.Statement):
            found |= bound_by(within)
            stack += [s for s in tree.children(within) if isinstance(s, tree.Statement)]
    if isinstance(node, tree.Define) and node.backward is not None:
        found.add(node.backward.cotangent.name)
    return frozenset(found)


def body_of(node: tree.Define | tree.Lambda) -> Sequence[tree.SyntaxNode]:
    """The statements or expressions that run when a function is called."""
    if isinstance(node.body, tree.Block):
        return node.body.statements
    rule = node.backward if isinstance(node, tree.Define) else None
    return (node.body, *(rule.gradients if rule is not None else ()))


def bound_by(statement: tree.SyntaxNode) -> frozenset[str]:
    """The names that a statement itself binds, without those of statements within it."""
    if isinstance(statement, tree.Assign):
        return frozenset().union(*map(bound_names, statement.targets))
    if isinstance(statement, (tree.For, tree.Augment, tree.Clause)):
        return bound_names(statement.target)
    return frozenset()
