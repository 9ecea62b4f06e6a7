"""What the results of all models share: how they become JSON, and what is told on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple


class Iteration(NamedTuple):
    """How far a search is. The norm is that of the gradient, and the point a vector; None where they are not known."""

    number: int
    objective: float
    gradient_norm: float | None = None
    point: Any = None


class Sampling(NamedTuple):
    """How many of the samples are drawn."""

    drawn: int
    samples: int


# What a field of a result has as its metadata that is None where something cannot be told, which JSON says then.
_NULL = "may be null"
MAY_BE_NULL = {_NULL: True}

# What JSON has as it is, and most of what there is.
_PLAIN = frozenset({float, int, bool, str, type(None)})

# Is told of each iteration.
Watcher = Callable[[Iteration], object]


def as_json(result: Any) -> Any:
    """A result as the object that JSON has for it, its fields in their order, and without those that are None, since
    nobody asked for them, unless they may be null; arrays and tuples as nested lists, but for those that say otherwise."""
    if type(result) in _PLAIN:
        return result
    if is_dataclass(result):
        named = ((field.name, getattr(result, field.name), field.metadata) for field in fields(result))
        return {n: as_json(value) for n, value, told in named if value is not None or _NULL in told}
    if hasattr(result, "as_json"):
        return result.as_json()
    if isinstance(result, Mapping):
        return {name: as_json(value) for name, value in result.items()}
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [as_json(value) for value in result]
    return result.tolist() if hasattr(result, "tolist") else result
