"""The door to Matplotlib, which draws pictures that are saved."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

from gradcli import arrays, installing
from gradcli.errors import BackendError, UsageError, did_you_mean
from gradcli.io import output
from gradcli.models.plotting.charts import Arrows, Band, Chart, Field, Points, Polyline, alone, density, shown
from gradcli.models.plotting.tick_marks import Axis
from gradcli.timing import phase

# The pictures that can be saved, by the ends of their names.
FORMATS = ("png", "svg", "pdf")
_INCHES = (8.0, 5.0)
_DOTS_PER_INCH = 150
# A file says nothing of when it was made.
_SETTINGS = {"svg.hashsalt": "gradcli", "axes.formatter.useoffset": False}
_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# More points than this are drawn by how many there are in each of so many cells along both axes.
MOST_POINTS = 5_000
_CELLS = (240, 150)
# Heights at which lines of a field are drawn.
_LEVELS = 10
_ON_DENSITY = ("tab:red", "tab:orange", "black", "tab:pink")
# The width of the axes by their height.
_ASPECT = 1.5
# Of the longest arrow, by the width of the axes; those of gradients beyond this part of all are no longer.
_LONGEST_ARROW = 1 / 22
_USUAL = 0.9
# Curves of which each has a colour that is told from all others; more are given those of a scale, in their order.
_MOST_COLORS = 10
_SCALE = (0.0, 0.92)
# The orders of derivatives in one colour.
_DASHES = ("solid", (0, (5, 2)), (0, (4, 2, 1, 2)), (0, (1, 1.5)))
# Entries of a legend in one column, and from how many of them on it is small.
_IN_COLUMN, _MANY = 20, 8
# What is left free beside points, by the length of an axis, and above and below what is on a logarithmic one.
_ROOM = 0.04
# Ends of logarithmic axes, as powers of ten: beyond are no normal numbers.
_POWERS = (-307.0, 307.0)
# Ticks of one that is longer than the square of this.
_MOST_DECADES, _TICKS = 1e10, 8
# What is below counts as 0 to Matplotlib, and the inverse of the length of an axis is to be a number.
_TINY, _SHORTEST = 1e-280, 1e-303
# Matplotlib's settings are those of the process.
_LOCK = threading.Lock()


def _needed() -> Any:
    """Matplotlib. Raises BackendError where it is not installed."""
    with phase("import"):
        try:
            import matplotlib
            import matplotlib.figure
        except ImportError:
            raise BackendError(
                "a picture needs Matplotlib, which is not installed", hint=installing.command("plot")
            ) from None
        except ValueError as error:
            # Such as a backend in the environment that is none.
            raise BackendError(f"Matplotlib does not start: {error}", hint="mend its settings") from None
    return matplotlib


@contextmanager
def _settings() -> Iterator[Any]:
    """Within the block, Matplotlib is as it comes, whatever a user's own settings are; one thread after the other, as
    each would take the settings of another for the user's."""
    matplotlib = _needed()
    with _LOCK, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield matplotlib


def drawn(chart: Chart) -> Any:
    """The figure of a chart. Raises BackendError where Matplotlib is not installed."""
    with _settings() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot()
        axes.set(xlabel=_plain(chart.x), ylabel=_plain(chart.y), title=_plain(chart.title))
        for axis in chart.log:
            # What is not positive is left out, and not drawn at an end of the axis.
            getattr(axes, f"set_{axis}scale")("log", nonpositive="mask")
            # The library's margins may be beyond the greatest number.
            axes.autoscale(False, axis=axis)
        _Drawing(matplotlib, figure, axes, chart).draw()
        return figure


def _write(figure: Any, stream: IO[bytes], format: str) -> None:
    with _settings():
        figure.savefig(stream, format=format, dpi=_DOTS_PER_INCH, metadata=_METADATA[format])


def format_of(path: str) -> str:
    """The format that the name of a picture says. Raises UsageError for a name that says none."""
    _, dot, ending = path.rpartition(".")
    if dot and ending.lower() in FORMATS:
        return ending.lower()
    known = ", ".join(f".{name}" for name in FORMATS)
    raise UsageError(
        f"{path!r} does not end in {known}",
        hint=did_you_mean(ending if dot else "", FORMATS, f"the end says which picture it is: {path + '.png'!r}"),
    )


def save(chart: Chart, path: str, write: output.Save = output.write_atomically) -> None:
    """Save a picture of the format that its path says, the same bytes for the same chart.

    Raises UsageError for a path that says none, BackendError where Matplotlib is not installed, and OutputError where
    the file cannot be written.
    """
    format = format_of(path)
    figure = drawn(chart)
    write(path, lambda stream: _write(figure, stream, format))


class _Drawing:
    def __init__(self, matplotlib: Any, figure: Any, axes: Any, chart: Chart) -> None:
        self.matplotlib = matplotlib
        self.figure = figure
        self.axes = axes
        self.chart = chart
        # What the legend explains.
        self.keys: list[tuple[Any, str]] = []
        self.colors = self._palette()
        # The colours of groups, and how many of their curves there are so far.
        self.groups: dict[int | None, tuple[Any, int]] = {}

    def draw(self) -> None:
        for layer in self.chart.layers:
            if isinstance(layer, Polyline):
                self._line(layer)
            elif isinstance(layer, Points):
                self._points(shown(layer, self.chart.log))
            elif isinstance(layer, Band):
                self._band(layer)
            else:
                self._field(layer)
        if not self._has(Field):
            self._limits()
            self.axes.grid(alpha=0.3)
        if len(self.keys) > 1:
            self._legend()

    def _has(self, kind: type) -> bool:
        return any(isinstance(layer, kind) for layer in self.chart.layers)

    def _palette(self) -> Iterator[Any]:
        """A colour for points, and for each line or group of them."""
        groups = [line.group for line in self._lines()]
        count = len({*groups} - {None}) + groups.count(None) + self._has(Points)
        maps = self.matplotlib.colormaps
        if count <= _MOST_COLORS:
            return iter(maps["tab10"].colors)
        return iter(maps["viridis"](arrays.numpy_namespace().linspace(*_SCALE, count)))

    def _lines(self) -> Sequence[Polyline]:
        return [layer for layer in self.chart.layers if isinstance(layer, Polyline)]

    def _limits(self) -> None:
        """Set the ends of the axes: those that are given, and those of the numbers on logarithmic ones."""
        np = arrays.numpy_namespace()
        if "x" not in self.chart.log and all(np.asarray(line.x).dtype.kind == "i" for line in self._lines()):
            # What is counted has no halves.
            self.axes.xaxis.get_major_locator().set_params(integer=True)
        for name, given in (("x", self.chart.x_limits), ("y", self.chart.y_limits)):
            log = name in self.chart.log
            ends = given or (self._positive(name) if log else None)
            if not log:
                ends = self._tiny(name, ends) or ends
            if ends is None:
                continue
            # Half a point at the end of an axis is none.
            room = _ROOM if given is None or self._has(Points) else 0.0
            low, high = _widened(ends, log, room)
            self.axes.set(**{f"{name}lim": (low, high)})
            if log and high / _MOST_DECADES > low * _MOST_DECADES:
                self._powers(name, Axis(math.log10(low), math.log10(high), True))

    def _positive(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest number above 0 along an axis."""
        data = self.axes.dataLim
        low, high = getattr(data, f"minpos{name}"), getattr(data, f"{name}1")
        return (float(low), float(high)) if 0 < low <= high < math.inf else None

    def _tiny(self, name: str, given: tuple[float, float] | None) -> tuple[float, float] | None:
        """The ends of an axis, with its marks, all of which are so near to 0 that the library takes them for it; None of
        others."""
        data = self.axes.dataLim
        low, high = given or (float(getattr(data, f"{name}0")), float(getattr(data, f"{name}1")))
        if not (high - low > _SHORTEST and max(abs(low), abs(high)) < _TINY):
            return None
        ticker = self.matplotlib.ticker
        ticks = ticker.FixedLocator(Axis(low, high, False).marks(_TICKS))
        ticks.nonsingular = lambda low, high: (low, high)
        marked = getattr(self.axes, f"{name}axis")
        marked.set_major_locator(ticks)
        marked.set_major_formatter(ticker.FormatStrFormatter("%g"))
        return low, high

    def _powers(self, name: str, axis: Axis) -> None:
        """Mark a long logarithmic axis: the library marks powers beyond its end, which may be no numbers."""
        ticker = self.matplotlib.ticker
        marked = getattr(self.axes, f"{name}axis")
        marked.set_major_locator(ticker.FixedLocator([10.0**mark for mark in axis.marks(_TICKS)]))
        marked.set_minor_locator(ticker.NullLocator())

    def _legend(self) -> None:
        """Beside several curves, for which there may be no place that is free, or within the axes."""
        handles, labels = zip(*((artist, _plain(label)) for artist, label in self.keys))
        style: dict[str, Any] = {}
        if len(self._lines()) > 1:
            style = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0, "frameon": False}
        if len(labels) > _MANY:
            style |= {"fontsize": "small", "ncols": -(-len(labels) // _IN_COLUMN)}
        self.axes.legend(handles, labels, **style)

    def _line(self, line: Polyline) -> None:
        color, count = self.groups.get(line.group) or (next(self.colors), 0)
        if line.group is not None:
            self.groups[line.group] = color, count + 1
        dashes = _DASHES[count % len(_DASHES)]
        (artist,) = self.axes.plot(line.x, line.y, linewidth=1.5, color=color, linestyle=dashes)
        self.keys.append((artist, line.label))
        points = alone(line, self.chart.log)
        if len(points.x):
            self.axes.plot(points.x, points.y, linestyle="none", marker="o", markersize=3, color=color)

    def _points(self, points: Points) -> None:
        if not len(points.x):
            return
        if len(points.x) > MOST_POINTS:
            self._density(points)
            return
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3 if len(points.x) > 200 else 5}
        style |= {"color": next(self.colors), "alpha": 0.7}
        if points.error is None:
            (artist,) = self.axes.plot(points.x, points.y, **style)
        else:
            artist = self.axes.errorbar(points.x, points.y, yerr=points.error, capsize=2, **style)
        self.keys.append((artist, points.label))

    def _density(self, points: Points) -> None:
        """Points, as how many of them each cell of a grid has."""
        x, y, counts = density(points, self.chart.log, *_CELLS)
        mesh = self.axes.pcolormesh(
            x, y, counts, cmap="viridis", norm=self.matplotlib.colors.LogNorm(), rasterized=True, zorder=0.5
        )
        # Lines are told from it.
        self.colors = chain(_ON_DENSITY, self.colors)
        self.figure.colorbar(
            mesh, ax=self.axes, label=_plain(f"{points.label}: {len(points.x):,} points, number in each cell")
        )

    def _band(self, band: Band) -> None:
        color = self.axes.lines[-1].get_color() if self.axes.lines else None
        artist = self.axes.fill_between(band.x, band.low, band.high, alpha=0.2, linewidth=0, color=color)
        self.keys.append((artist, band.label))

    def _field(self, field: Field) -> None:
        np = arrays.numpy_namespace()
        low, high = field.limits or (np.nanmin(field.z), np.nanmax(field.z))
        mesh = self.axes.pcolormesh(
            field.x, field.y, field.z, cmap="viridis", shading="nearest", vmin=low, vmax=high, rasterized=True
        )
        levels = self.matplotlib.ticker.MaxNLocator(_LEVELS).tick_values(low, high)
        levels = levels[(levels > low) & (levels < high)]
        if levels.size:
            # They do not run along a pole, across which there is every height.
            seen = np.ma.masked_outside(np.ma.masked_invalid(field.z), low, high)
            self.axes.contour(field.x, field.y, seen, levels=levels, colors="white", alpha=0.6, linewidths=0.8)
        self.axes.set(xlim=(field.x[0], field.x[-1]), ylim=(field.y[0], field.y[-1]))
        self.figure.colorbar(
            mesh, ax=self.axes, label=_plain(field.label), extend="both" if field.limits else "neither"
        )
        if field.arrows is not None:
            self._arrows(field.arrows)

    def _arrows(self, arrows: Arrows) -> None:
        """Draw arrows that point uphill as it is seen, across the lines of equal height."""
        np = arrays.numpy_namespace()
        (left, right), (bottom, top) = self.axes.get_xlim(), self.axes.get_ylim()
        with arrays.quiet():
            dx, dy = arrows.dx * (right - left) / _ASPECT, arrows.dy * (top - bottom)
            size = np.hypot(dx, dy)
        seen = np.isfinite(size) & (size > 0)
        if not seen.any():
            return
        length = np.minimum(size[seen] / np.quantile(size[seen], _USUAL), 1.0)
        self.axes.quiver(
            arrows.x[seen],
            arrows.y[seen],
            length * dx[seen] / size[seen],
            length * dy[seen] / size[seen],
            angles="uv",
            scale_units="width",
            scale=1 / _LONGEST_ARROW,
            pivot="mid",
            width=0.0025,
            alpha=0.8,
        )


def _widened(limits: tuple[float, float], log: bool, room: float) -> tuple[float, float]:
    """The ends of an axis, with a part of its length as room at both."""
    if not log:
        low, high = limits
        room *= high - low
        return low - room, high + room
    low, high = map(math.log10, limits)
    room *= (high - low) or 1.0
    least, most = _POWERS
    return 10 ** max(low - room, least), 10 ** min(high + room, most)


def _plain(text: str) -> str:
    """A text of a user, which is no formula of TeX."""
    return text.replace("$", r"\$")
