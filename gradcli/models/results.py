"""The common parts of the results of all models: conversion to JSON, progress reports, and the history of the
iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

from gradcli.errors import expect
from gradcli.io import output
from gradcli.io.text_tables import Table, as_html, plain
from gradcli.models.packing import Packing
from gradcli.named_tuples import NamedTuple

# Upper bound of the float64 numbers in the points kept: 800 MB.
_MOST_NUMBERS = 100_000_000


class Iteration(NamedTuple):
    """The progress of a search: its iteration number, objective, gradient norm and point (a vector). The last two are
    None where they are not known."""

    number: int
    objective: float
    gradient_norm: float | None = None
    point: Any = None


class Sampling(NamedTuple):
    """The number of samples that have been drawn."""

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


class History:
    """A callback that records iterations, with their points where they are `kept`."""

    def __init__(self, kept: bool) -> None:
        self._kept = kept
        self.iterations: list[Iteration] = []

    def __call__(self, iteration: Iteration) -> None:
        point = iteration.point
        fits = point is not None and len(point) * (len(self.iterations) + 1) <= _MOST_NUMBERS
        kept = point.copy() if self._kept and fits else None
        self.iterations.append(iteration._replace(point=kept))

    def columns(self, packing: Packing) -> dict[str, Any]:
        """Columns of n iterations by name: their numbers, objectives, gradient norms, and each element that is
        varied."""
        found: dict[str, Any] = {
            "iteration": [i.number for i in self.iterations],
            "objective": [i.objective for i in self.iterations],
            "gradient_norm": [i.gradient_norm for i in self.iterations],
        }
        nowhere = [None] * packing.size
        points = [nowhere if i.point is None else i.point.tolist() for i in self.iterations]
        return found | {label: [p[k] for p in points] for k, label in enumerate(packing.labels())}

    def save_table(self, path: str, packing: Packing, save: output.Save = output.write_atomically) -> None:
        """Write every iteration to a table file, in the format of its extension."""
        from gradcli.rows.formats import new_tables

        new_tables.save(self.columns(packing), path, save)

    def save_curve(self, path: str, title: str, save: output.Save = output.write_atomically) -> None:
        """Plot the objective by iteration, on a logarithmic axis where it is nonnegative with at least two positive
        values."""
        from gradcli.models.plotting import by_matplotlib
        from gradcli.models.plotting.charts import Chart, Polyline

        numbers = [i.number for i in self.iterations]
        values = [i.objective for i in self.iterations]
        log = "y" if all(v >= 0 for v in values) and sum(v > 0 for v in values) > 1 else ""
        chart = Chart([Polyline("objective", numbers, values)], x="iteration", y="objective", title=title, log=log)
        by_matplotlib.save(chart, path, save)


def check_paths(trace: str | None, plot: str | None) -> None:
    """Raise UsageError where the extension of a path does not name a known format."""
    for path in (trace, plot):
        expect(path, (str, NoneType), "the path of a file is a text")
    if trace is not None:
        from gradcli.rows.formats import outputs

        outputs.check_path(trace)
    if plot is not None:
        from gradcli.models.plotting import by_matplotlib

        by_matplotlib.format_of(plot)
