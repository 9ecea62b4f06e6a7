"""What is to be seen in a picture, whoever draws it: curves, points, bands and fields over named axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays


class Polyline(NamedTuple):
    """A curve through the points `x`, `y`, both `[n]`; nan is a gap in it. Those of one `group` belong together."""

    label: str
    x: Any
    y: Any
    group: int | None = None


class Points(NamedTuple):
    """Points, `[n]`; `error` are the lengths of the bars above and below them, `[n]` or one for all."""

    label: str
    x: Any
    y: Any
    error: Any = None


class Band(NamedTuple):
    """What lies between two curves over the same `x`, all `[n]`."""

    label: str
    x: Any
    low: Any
    high: Any


class Arrows(NamedTuple):
    """Gradients at some points, all `[k]`: where they start, and their parts along both axes."""

    x: Any
    y: Any
    dx: Any
    dy: Any


class Field(NamedTuple):
    """The numbers `z`, `[n, m]`, over a grid of the places `x`, `[m]`, and `y`, `[n]`, as a map of heights; colours are for
    those between two `limits`, where these are given."""

    label: str
    x: Any
    y: Any
    z: Any
    arrows: Arrows | None = None
    limits: tuple[float, float] | None = None


Layer = Polyline | Points | Band | Field


class Chart(NamedTuple):
    """Layers over one another, the first of them undermost, and what their axes are called.

    `log` names the axes that are logarithmic, `"x"`, `"y"` or `"xy"`; what is not positive is not drawn along these.
    `x_limits` and `y_limits` are the ends of an axis, where those of the numbers do not serve.
    """

    layers: Sequence[Layer]
    x: str = "x"
    y: str = "y"
    title: str = ""
    log: str = ""
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None


def along(numbers: Any, log: bool) -> Any:
    """Which of some numbers have a place along an axis, `[n]`: the finite ones, and above 0 where it is logarithmic."""
    np = arrays.numpy_namespace()
    numbers = np.asarray(numbers, "float64")
    return np.isfinite(numbers) & (numbers > 0) if log else np.isfinite(numbers)


def shown(points: Points, log: str) -> Points:
    """The points that have a place along both axes, of which those in `log` are logarithmic."""
    np = arrays.numpy_namespace()
    seen = along(points.x, "x" in log) & along(points.y, "y" in log)
    error = points.error[seen] if np.ndim(points.error) else points.error
    return Points(points.label, np.asarray(points.x)[seen], np.asarray(points.y)[seen], error)


def alone(line: Polyline, log: str) -> Points:
    """The points of a curve to which it does not go from another: there are gaps, or nothing, on both sides."""
    np = arrays.numpy_namespace()
    x, y = np.asarray(line.x, "float64"), np.asarray(line.y, "float64")
    here = along(x, "x" in log) & along(y, "y" in log)
    kept = here & ~np.r_[False, here[:-1]] & ~np.r_[here[1:], False]
    return Points(line.label, x[kept], y[kept])


def density(points: Points, log: str, columns: int, rows: int) -> tuple[Any, Any, Any]:
    """The edges of cells along both axes, evenly wide on these, and how many of some points, all of them shown, each
    has, `[rows, columns]`, masked where there is none."""
    np = arrays.numpy_namespace()
    scaled = [np.log10(n) if name in log else n for name, n in (("x", points.x), ("y", points.y))]
    counts, *edges = np.histogram2d(*scaled, bins=(columns, rows))
    x_edges, y_edges = (10**e if name in log else e for name, e in zip("xy", edges))
    return x_edges, y_edges, np.ma.masked_equal(counts.T, 0)
