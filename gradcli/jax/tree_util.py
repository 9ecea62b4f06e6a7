"""Pytrees of tuples, lists and dicts with JAX's conventions: None is an empty tree, and dicts are ordered by key."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gradcli.errors import CallError

IsLeaf = Callable[[Any], bool] | None


class PyTreeDef:
    """The structure of a tree, without its leaves."""

    def __init__(self, tree: Any, is_leaf: IsLeaf = None) -> None:
        self._outline = _filled(tree, iter([_LEAF] * len(tree_leaves(tree, is_leaf))), is_leaf)
        self.num_leaves = len(tree_leaves(tree, is_leaf))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        given = [*leaves]
        if len(given) != self.num_leaves:
            raise CallError(f"a tree of {self.num_leaves} leaves cannot be made of {len(given)}")
        return _filled(self._outline, iter(given), None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PyTreeDef) and self._outline == other._outline

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"PyTreeDef({self._outline})"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in order."""
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in tree_leaves(tree[key], is_leaf)]
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in tree_leaves(item, is_leaf)]
    return [tree]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    return PyTreeDef(tree, is_leaf)


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves, and the structure from which `tree_unflatten` restores the tree."""
    return tree_leaves(tree, is_leaf), PyTreeDef(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    return treedef.unflatten(leaves)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of `f` applied to each leaf and to the corresponding parts of other trees. Raises CallError for trees of
    different structure."""
    columns = [tree_leaves(tree, is_leaf), *(_beside(tree, other, is_leaf) for other in rest)]
    return _filled(tree, iter([f(*row) for row in zip(*columns)]), is_leaf)


def tree_reduce(f: Callable[[Any, Any], Any], tree: Any, *initializer: Any) -> Any:
    return functools.reduce(f, tree_leaves(tree), *initializer)


def tree_all(tree: Any) -> bool:
    return all(tree_leaves(tree))


def _beside(tree: Any, other: Any, is_leaf: IsLeaf) -> list[Any]:
    """The parts of `other` at the positions of the leaves of `tree`."""
    if (is_leaf is not None and is_leaf(tree)) or (tree is not None and not isinstance(tree, (dict, tuple, list))):
        return [other]
    if tree is None:
        if other is not None:
            raise CallError("a tree has something where another has None")
        return []
    if isinstance(tree, dict):
        if not isinstance(other, dict) or tree.keys() != other.keys():
            raise CallError(f"a tree has no dict of the keys {', '.join(map(str, sorted(tree)))} where another has it")
        return [leaf for key in sorted(tree) for leaf in _beside(tree[key], other[key], is_leaf)]
    if not isinstance(other, (tuple, list)) or len(tree) != len(other):
        raise CallError(f"a tree has no sequence of {len(tree)} where another has it")
    return [leaf for one, two in zip(tree, other) for leaf in _beside(one, two, is_leaf)]


def _filled(tree: Any, values: Iterator[Any], is_leaf: IsLeaf) -> Any:
    if is_leaf is not None and is_leaf(tree):
        return next(values)
    if tree is None:
        return None
    if isinstance(tree, dict):
        found = {key: _filled(tree[key], values, is_leaf) for key in sorted(tree)}
        return {key: found[key] for key in tree}
    if isinstance(tree, (tuple, list)):
        items: Sequence[Any] = [_filled(item, values, is_leaf) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return next(values)
