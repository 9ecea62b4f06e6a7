"""Finds the expressions that names stand for, where they would still have the value that was assigned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from gradcli.language.names import scope
from gradcli.language.syntax import tree


class _Block(NamedTuple):
    """A sequence of statements, with the names around it.

    `counts` has how often each name is assigned in the enclosing function, `settled` the names that have their final
    value, and `known` the expressions that names stand for.
    """

    statements: Sequence[tree.Statement]
    counts: Mapping[str, int]
    settled: frozenset[str] = frozenset()
    known: Mapping[str, tree.Expression] = {}


def meanings(
    program: tree.Module, apart: Collection[str], is_plain: Callable[[tree.Expression], bool]
) -> dict[tree.SyntaxNode, tree.Expression]:
    """For each read of a name, the plain expression that it stands for, if any.

    A name that is assigned once stands for its expression, as long as no name in that can have been reassigned. Names
    in `apart`, and names by which the program differentiates, stand for themselves.
    """
    if not any(isinstance(n, tree.Assign) for n in tree.everything(program)) or scope.changes_in_place(program):
        return {}
    apart = {*apart, *scope.differentiation_targets(program, ())}
    found: dict[tree.SyntaxNode, tree.Expression] = {}
    waiting = [*_functions(program)]
    while waiting:
        waiting += _read(waiting.pop(), found, lambda name, value: name not in apart and is_plain(value))
    return found


def _functions(program: tree.Module) -> Iterator[_Block]:
    yield _Block(program.body, _counts(program.body))
    for node in tree.everything(program):
        if isinstance(node, tree.Define) and isinstance(node.body, tree.Block):
            counts = _counts(node.body.statements)
            counts.update(p.name for p in node.parameters)
            settled = frozenset(p.name for p in node.parameters if counts[p.name] == 1)
            yield _Block(node.body.statements, counts, settled)


def _counts(statements: Sequence[tree.Statement]) -> Counter[str]:
    """How often each name is assigned, not counting assignments inside functions."""
    found: Counter[str] = Counter()
    waiting = [*statements]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, tree.Define):
            found[statement.name] += 1
        else:
            found.update(scope.bound_by(statement))
            waiting += [s for s in tree.children(statement) if isinstance(s, tree.Statement)]
    return found


def _read(
    block: _Block,
    found: dict[tree.SyntaxNode, tree.Expression],
    is_meant: Callable[[str, tree.Expression], bool],
) -> Iterator[_Block]:
    """Add to `found` what the names read in a block stand for, and yield the blocks inside it."""
    counts, settled, known = block.counts, block.settled, {**block.known}
    for statement in block.statements:
        found.update((name, known[name.id]) for name in _names(statement) if name.id in known)
        if isinstance(statement, (tree.If, tree.For, tree.While)):
            own = {n for n in scope.bound_by(statement) if counts[n] == 1}
            for inside in (statement.body, statement.orelse if isinstance(statement, tree.If) else ()):
                yield _Block(inside, counts, settled | own, {**known})
        elif isinstance(statement, tree.Assign):
            own = {n for n in scope.bound_by(statement) if counts[n] == 1}
            target, value = statement.targets[0], statement.value
            name = target.name if isinstance(target, tree.BoundName) else None
            settled_in = all(n.id in settled or not counts[n.id] for n in _names(value))
            if name is not None and own == {name} and settled_in and is_meant(name, value):
                known[name] = value
            settled |= own


def _names(node: tree.SyntaxNode) -> Iterator[tree.Name]:
    """The names that are read in an expression, or directly in a statement, outside of its blocks and functions."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tree.Name) and not part.module:
            yield part
        elif not isinstance(part, (tree.Lambda, tree.Comprehension, tree.Define)):
            waiting += [c for c in tree.children(part) if not isinstance(c, tree.Statement)]
