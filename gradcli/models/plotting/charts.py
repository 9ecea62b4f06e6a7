"""The contents of a chart, independent of the backend that draws it: curves, points, bands and fields over named
axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import UsageError

# The brightness of a number that is nan.
_UNKNOWN = 0.5


class Polyline(NamedTuple):
    """A curve through the points `x`, `y`, both `[n]`; nan is a gap. Curves of one `group` share a colour."""

    label: str
    x: Any
    y: Any
    group: int | None = None


class Points(NamedTuple):
    """Points `[n]`; `error` and `x_error` are the half lengths of their error bars, `[n]` or one for all. Those of one
    `group` have the colour of its curves."""

    label: str
    x: Any
    y: Any
    error: Any = None
    x_error: Any = None
    group: int | None = None


class Band(NamedTuple):
    """The area between two curves over the same `x`, all `[n]`."""

    label: str
    x: Any
    low: Any
    high: Any


class Arrows(NamedTuple):
    """Gradients at points, all `[k]`: the points, and the components along both axes."""

    x: Any
    y: Any
    dx: Any
    dy: Any


class Field(NamedTuple):
    """The values `z` `[n, m]` over a grid of `x` `[m]` and `y` `[n]`, drawn in colours; these range between the two
    `limits`, where they are given, and are logarithmic with `log`."""

    label: str
    x: Any
    y: Any
    z: Any
    arrows: Arrows | None = None
    limits: tuple[float, float] | None = None
    log: bool = False


class HueField(NamedTuple):
    """The complex values `z` `[n, m]` over a grid of `x` `[m]` and `y` `[n]`, drawn with their angle as hue and their
    modulus as brightness; see `rgb`."""

    label: str
    x: Any
    y: Any
    z: Any


Layer = Polyline | Points | Band | Field | HueField


class Chart(NamedTuple):
    """Layers from bottom to top, and the labels of their axes.

    `log` names the logarithmic axes, `"x"`, `"y"` or `"xy"`; numbers that are not positive are not drawn along these.
    `x_limits` and `y_limits` are the ends of an axis, None for those of the numbers; those of the axes in `exact` have
    no margin. `residuals` are drawn in a panel below, and so is another chart, `below`, over the same x axis. `size` are the width and the height of a saved picture in inches,
    `dpi` are its dots in an inch.
    """

    layers: Sequence[Layer]
    x: str = "x"
    y: str = "y"
    title: str = ""
    log: str = ""
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    exact: str = ""
    residuals: Sequence[Points] = ()
    below: Chart | None = None
    size: tuple[float, float] | None = None
    dpi: int | None = None


class Presentation(NamedTuple):
    """What a user says about the looks of a picture, None for what is left as it is; see `Chart`."""

    title: str | None = None
    x: str | None = None
    y: str | None = None
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    size: tuple[float, float] | None = None
    dpi: int | None = None

    def of(self, chart: Chart) -> Chart:
        """A chart with these looks. Raises UsageError for ends of a logarithmic axis that are not above 0."""
        for name, ends in (("x", self.x_limits), ("y", self.y_limits)):
            if name in chart.log and ends is not None and ends[0] <= 0:
                raise UsageError("a logarithmic axis begins above 0", hint=f"--{name}lim 0.001..20")
        exact = "".join(name for name, ends in (("x", self.x_limits), ("y", self.y_limits)) if ends is not None)
        said = {name: value for name, value in self._asdict().items() if value is not None}
        below = None
        if chart.below is not None:
            below = Presentation(x=self.x, x_limits=self.x_limits).of(chart.below)
        return chart._replace(exact=exact, below=below, **said)


def axes_of(log: str) -> str:
    """The logarithmic axes in a text such as `x,y`: the names of axes, and z for colours. Raises UsageError."""
    names = [name.strip() for name in log.split(",") if name.strip()]
    for name in names:
        if name not in ("x", "y", "z") or names.count(name) > 1:
            raise UsageError(f"there is no logarithmic axis {name!r}", hint="--log x, --log y or --log x,y")
    return "".join(sorted(names))


def has_position(numbers: Any, log: bool) -> Any:
    """A mask `[n]` of the numbers that have a position along an axis: the finite ones, and only positive ones on a
    logarithmic axis."""
    np = arrays.numpy_namespace()
    numbers = np.asarray(numbers, "float64")
    return np.isfinite(numbers) & (numbers > 0) if log else np.isfinite(numbers)


def shown(points: Points, log: str) -> Points:
    """The points that have a position along both axes; `log` names the logarithmic ones."""
    np = arrays.numpy_namespace()
    seen = has_position(points.x, "x" in log) & has_position(points.y, "y" in log)
    errors = {
        name: value[seen] if np.ndim(value) else value
        for name, value in (("error", points.error), ("x_error", points.x_error))
    }
    return points._replace(x=np.asarray(points.x)[seen], y=np.asarray(points.y)[seen], **errors)


def isolated_points(line: Polyline, log: str) -> Points:
    """The points of a curve that no segment reaches, since on both sides there are gaps or nothing."""
    np = arrays.numpy_namespace()
    x, y = np.asarray(line.x, "float64"), np.asarray(line.y, "float64")
    here = has_position(x, "x" in log) & has_position(y, "y" in log)
    kept = here & ~np.r_[False, here[:-1]] & ~np.r_[here[1:], False]
    return Points(line.label, x[kept], y[kept])


def density(points: Points, log: str, columns: int, rows: int) -> tuple[Any, Any, Any]:
    """The edges of grid cells along both axes, equally wide as drawn, and the number of points in each cell, `[rows,
    columns]`, masked where it is 0. All points must have a position along both axes."""
    np = arrays.numpy_namespace()
    scaled = [np.log10(n) if name in log else n for name, n in (("x", points.x), ("y", points.y))]
    counts, *edges = np.histogram2d(*scaled, bins=(columns, rows))
    x_edges, y_edges = (10**e if name in log else e for name, e in zip("xy", edges))
    return x_edges, y_edges, np.ma.masked_equal(counts.T, 0)


def rgb(z: Any) -> Any:
    """The colours `[…, 3]` of complex numbers, each part between 0 and 1: red for an angle of 0, green for 120 degrees
    and blue for -120; black at 0, bright where the modulus is above its median, and white at infinity. Numbers that
    are nan are gray."""
    np = arrays.numpy_namespace()
    with arrays.quiet():
        size = np.abs(z)
        usual = np.median(size[np.isfinite(size) & (size > 0)]) if (np.isfinite(size) & (size > 0)).any() else 1.0
        lightness = 2 / np.pi * np.arctan(size / usual)
        sixths = np.angle(z) / (np.pi / 3)
    pure = np.clip(np.abs((sixths[..., None] + [0.0, 4.0, 2.0]) % 6 - 3) - 1, 0.0, 1.0)
    dark, bright = np.minimum(2 * lightness, 1.0), np.maximum(2 * lightness - 1, 0.0)
    colors = bright[..., None] + (dark - bright)[..., None] * pure
    colors[np.isinf(z)] = 1.0
    colors[np.isnan(z)] = _UNKNOWN
    return colors
