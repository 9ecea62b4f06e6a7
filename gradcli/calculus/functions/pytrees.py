"""Handles nested tuples, lists and dicts of values, as arguments and results of Python functions have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gradcli.errors import CallError


def leaves(value: Any) -> list[Any]:
    """Return the leaves of nested containers in order; any other value is a leaf itself."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def unflatten(container: Any, values: Iterable[Any]) -> Any:
    """Return the same containers with `values` as their leaves."""
    return _filled(container, iter(values))


def _filled(container: Any, values: Iterator[Any]) -> Any:
    if isinstance(container, dict):
        return {key: _filled(item, values) for key, item in container.items()}
    if isinstance(container, (tuple, list)):
        items = [_filled(item, values) for item in container]
        # The constructor of a named tuple takes its fields separately.
        return type(container)(*items) if hasattr(container, "_fields") else type(container)(items)
    return next(values)


def mapped(function: Callable[..., Any], container: Any, *others: Any) -> Any:
    """Apply `function` to each leaf and the corresponding leaves of `others`. Raises CallError where structures
    differ."""
    columns = [leaves(container), *(aligned(container, other) for other in others)]
    return unflatten(container, [function(*row) for row in zip(*columns)])


def aligned(container: Any, other: Any) -> list[Any]:
    """Return the leaves of `other`, which must have the structure of `container`. Raises CallError otherwise."""
    if not _same_structure(container, other):
        raise CallError(f"{_outline(other)} does not have the structure of {_outline(container)}")
    return leaves(other)


def broadcast_prefix(prefix: Any, container: Any) -> list[Any]:
    """Broadcast a prefix tree: for each leaf of `container`, the value of `prefix` at its place or at that of an
    enclosing container.

    Raises CallError where the structures do not match.
    """
    if isinstance(container, dict) and isinstance(prefix, dict) and prefix.keys() == container.keys():
        return [value for key in container for value in broadcast_prefix(prefix[key], container[key])]
    if isinstance(prefix, (tuple, list)):
        if not isinstance(container, (tuple, list)) or len(prefix) != len(container):
            raise CallError(f"{_outline(prefix)} does not have the structure of {_outline(container)}")
        return [value for part, item in zip(prefix, container) for value in broadcast_prefix(part, item)]
    return [prefix] * len(leaves(container))


def _same_structure(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(_same_structure(one[k], other[k]) for k in one)
        )
    if isinstance(one, (tuple, list)):
        return isinstance(other, (tuple, list)) and len(one) == len(other) and all(map(_same_structure, one, other))
    return not isinstance(other, (dict, tuple, list))


def _outline(container: Any) -> str:
    """Text of a container with a dot for each leaf."""
    if isinstance(container, dict):
        return "{" + ", ".join(f"{key!r}: {_outline(item)}" for key, item in container.items()) + "}"
    if isinstance(container, (tuple, list)):
        return "(" + ", ".join(map(_outline, container)) + ")"
    return "·"
