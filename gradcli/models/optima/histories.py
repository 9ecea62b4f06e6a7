"""The iterations of a search, recorded for a table and a picture."""

from __future__ import annotations

from types import NoneType
from typing import Any

from gradcli.errors import expect
from gradcli.io import output
from gradcli.models.packing import Packing
from gradcli.models.results import Iteration

# Upper bound of the float64 numbers in the points kept: 800 MB.
_MOST_NUMBERS = 100_000_000


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
        from gradcli.rows import new_tables

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
        from gradcli.rows import outputs

        outputs.check_path(trace)
    if plot is not None:
        from gradcli.models.plotting import by_matplotlib

        by_matplotlib.format_of(plot)
