"""What the results of all models share: conversion to JSON, and progress reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple


class Iteration(NamedTuple):
    """The progress of a search: its iteration number, objective, gradient norm and point (a vector). The last two are
    None where they are not known."""

    number: int
    objective: float
    gradient_norm: float | None = None
    point: Any = None


class Sampling(NamedTuple):
    """How many of the samples have been drawn."""

    drawn: int
    samples: int


# Metadata of a dataclass field whose None is written as null, since it means that the quantity could not be determined;
# other fields that are None are omitted.
_NULL = "may be null"
MAY_BE_NULL = {_NULL: True}

# Types that JSON represents directly, tested first because most values have them.
_PLAIN = frozenset({float, int, bool, str, type(None)})

# A callback that receives each iteration.
ProgressCallback = Callable[[Iteration], object]


def as_json(result: Any) -> Any:
    """A result as nested dicts, lists and numbers for JSON. Fields keep their order; those that are None are omitted
    unless their metadata is `MAY_BE_NULL`; arrays and tuples become nested lists, unless their type has its own
    `as_json`."""
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
