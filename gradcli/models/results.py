"""What the results of all models share: conversion to JSON, and progress reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from gradcli.io.text_tables import Table, as_html, plain


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


class Reported:
    """A result that prints as the tables of its command: as text, and in a notebook as HTML."""

    def report(self) -> Sequence[Table]:
        """The tables, short enough for a screen."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(plain(table) for table in self.report() if table.rows).rstrip("\n")

    def _repr_html_(self) -> str:
        return as_html([table for table in self.report() if table.rows])

    def __init_subclass__(cls) -> None:
        # IPython prefers the __repr__ of a class, which a dataclass has, to what its bases have.
        cls._repr_pretty_ = cls._repr_pretty_  # type: ignore[method-assign]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


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
