"""The contents of a chart, independent of the backend that draws it: curves, points, bands and fields over named axes,
and round numbers for the ticks of an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import UsageError
from gradcli.named_tuples import NamedTuple

# The brightness of a number that is nan.
_UNKNOWN = 0.5
# The steps between ticks, as multiples of a power of 10.
_ROUND = (1.0, 2.0, 5.0, 10.0)
# An axis is extended to a tick that is at most this share of its length beyond its end.
_NEAR = 0.03
# Numbers that differ by less than `_LEAST`, or relatively by less than `_ALIKE`, count as equal, so that there are no
# ticks between them.
_LEAST, _ALIKE = 1e-300, 1e-13
# Tick labels have no exponent where the largest absolute value is in this range.
_PLAIN = (1e-4, 1e7)
# The greatest exponent of 10 of a float.
_MOST_POWER = 308.0


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


class GridValues(NamedTuple):
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


Layer = Polyline | Points | Band | GridValues | HueField


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
    """The settings of a user for the appearance of a picture, None for the default; see `Chart`."""

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


class Axis(NamedTuple):
    """The visible part of an axis; on a logarithmic one the ends are decimal logarithms."""

    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, numbers: Iterable[Any], log: bool, ticks: int | None = None) -> Axis:
        """The axis that contains all numbers of some arrays; with `ticks`, about this many ticks are intended and its
        ends are moved to ticks nearby."""
        np = arrays.numpy_namespace()
        scaled = [_scaled(n, log).ravel() for n in numbers]
        finite = np.concatenate([n[np.isfinite(n)] for n in scaled] or [np.zeros(1)])
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if high / 2 - low / 2 <= max(_LEAST, _ALIKE * max(abs(low), abs(high))):
            room = abs(low) / 2 or 1.0
            low, high = low - room, high + room
        return cls(low, high, log)._to(ticks) if ticks else cls(low, high, log)

    def placed(self, numbers: Any) -> Any:
        """The positions of numbers along the axis, 0 at its beginning and 1 at its end; nan for numbers without one."""
        with arrays.quiet():
            # Halves are subtracted, since the difference may overflow.
            return (_scaled(numbers, self.log) / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """The positions of at most about `most` round numbers, and their texts."""
        numbers, texts = self.marks(most), self._texts(most)
        places = [(n / 2 - self.low / 2) / (self.high / 2 - self.low / 2) for n in numbers]
        return [min(max(p, 0.0), 1.0) for p in places], [*texts]

    def marks(self, most: int) -> list[float]:
        """At most about `most` round numbers; decimal logarithms of them on a logarithmic axis."""
        even = self._even()
        return [math.log10(n) for n in even.marks(most)] if even is not None else self._multiples(self._step(most))

    def _texts(self, most: int) -> Iterator[str]:
        even = self._even()
        if even is not None:
            return even._texts(most)
        step = self._step(most)
        numbers = self._multiples(step)
        return map(_power, numbers) if self.log else _decimals(numbers, step)

    def _even(self) -> Axis | None:
        """The axis without logarithms, where a logarithmic axis has less than two powers of 10 and linear ticks say
        more."""
        if self.log and len(self._multiples(1.0)) < 2:
            return Axis(10**self.low, 10 ** min(self.high, _MOST_POWER), False)
        return None

    def _multiples(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]

    def _to(self, ticks: int) -> Axis:
        step, near = self._step(ticks), _NEAR * (self.high - self.low)
        low, high = math.floor(self.low / step) * step, math.ceil(self.high / step) * step
        return Axis(
            low if self.low - low <= near else self.low, high if high - self.high <= near else self.high, self.log
        )

    def _step(self, most: int) -> float:
        step = self.high / most - self.low / most
        size = 10.0 ** math.floor(math.log10(step))
        step = size * next((r for r in _ROUND if r * size >= step * (1 - 1e-9)), _ROUND[-1])
        return max(1.0, step) if self.log else step


def _scaled(numbers: Any, log: bool) -> Any:
    np = arrays.numpy_namespace()
    numbers = np.asarray(numbers, "float64")
    if not log:
        return numbers
    with arrays.quiet():
        return np.log10(np.where(numbers > 0, numbers, np.nan))


def _power(place: float) -> str:
    return f"{10**place:g}" if -4 <= place <= 5 else f"1e{round(place)}"


def _decimals(numbers: Sequence[float], step: float) -> Iterator[str]:
    """The texts of multiples of a step, all in one form, with enough digits to tell them apart."""
    size, least = max(map(abs, numbers), default=0.0), math.floor(math.log10(step) + 1e-9)
    low, high = _PLAIN
    exponent = bool(size) and not low <= size < high
    digits = math.floor(math.log10(size)) - least + 1 if size else 1
    for n in numbers:
        if exponent:
            # A multiple of a step may differ from 0 by rounding.
            yield f"{n:.{max(1, digits)}g}" if abs(n) > step / 2 else "0"
        else:
            # Adding 0.0 turns -0.0 into 0.0.
            yield f"{n + 0.0:.{max(0, -least)}f}"
