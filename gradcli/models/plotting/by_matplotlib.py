"""Drawing of charts by Matplotlib, for pictures that are saved."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

from gradcli import arrays, install_command
from gradcli.errors import BackendError, UsageError, did_you_mean
from gradcli.io import output
from gradcli.models.plotting.charts import Arrows, Band, Chart, Field, Points, Polyline, density, isolated_points, shown
from gradcli.models.plotting.tick_marks import Axis
from gradcli.timing import phase

# The formats of pictures, which are the extensions of their files.
FORMATS = ("png", "svg", "pdf")
_INCHES = (8.0, 5.0)
_DOTS_PER_INCH = 150
# Settings and metadata that make the bytes of a file reproducible: no dates, and fixed ids in SVG.
_SETTINGS = {"svg.hashsalt": "gradcli", "axes.formatter.useoffset": False}
_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# More points are drawn as a density: their number in each cell of a grid of `_CELLS` columns and rows.
MOST_POINTS = 5_000
_CELLS = (240, 150)
# The number of contour levels of a field.
_LEVELS = 10
_ON_DENSITY = ("tab:red", "tab:orange", "black", "tab:pink")
# The width of the axes divided by their height, assumed for the direction of arrows.
_ASPECT = 1.5
# The longest arrow as a share of the width of the axes; gradients above the quantile `_USUAL` are drawn as long as it.
_LONGEST_ARROW = 1 / 22
_USUAL = 0.9
# Upper bound of the curves with distinguishable colours; more curves get colours along a colormap, from the range
# `_SCALE` of it.
_MOST_COLORS = 10
_SCALE = (0.0, 0.92)
# Dash patterns of the value and its derivatives, which share a colour.
_DASHES = ("solid", (0, (5, 2)), (0, (4, 2, 1, 2)), (0, (1, 1.5)))
# Upper bound of the legend entries in one column, and the number of entries above which the font is small.
_IN_COLUMN, _MANY = 20, 8
# The margin beside points, and at both ends of a logarithmic axis, as a share of the length of an axis.
_ROOM = 0.04
# The least and the greatest exponent of 10 of a logarithmic axis: beyond are no normal floats.
_POWERS = (-307.0, 307.0)
# A logarithmic axis whose ends have a ratio above `_MOST_DECADES` squared gets explicit ticks, about `_TICKS`.
_MOST_DECADES, _TICKS = 1e10, 8
# Matplotlib treats smaller absolute values as 0, and the reciprocal of the length of a shorter axis overflows.
_TINY, _SHORTEST = 1e-280, 1e-303
# Matplotlib's settings are global to the process.
_LOCK = threading.Lock()


def _needed() -> Any:
    """Matplotlib. Raises BackendError where it is not installed."""
    with phase("import"):
        try:
            import matplotlib
            import matplotlib.figure
        except ImportError:
            raise BackendError(
                "a picture needs Matplotlib, which is not installed", hint=install_command.install_command("plot")
            ) from None
        except ValueError as error:
            # For example, an invalid backend in the environment.
            raise BackendError(f"Matplotlib does not start: {error}", hint="mend its settings") from None
    return matplotlib


@contextmanager
def _settings() -> Iterator[Any]:
    """A context in which Matplotlib has its default settings, whatever the user's own are. Threads take turns, since
    each would otherwise save the settings of another as the user's."""
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
            # Numbers that are not positive are masked, and not clipped to the end of the axis.
            getattr(axes, f"set_{axis}scale")("log", nonpositive="mask")
            # Matplotlib's automatic margins may exceed the largest float.
            axes.autoscale(False, axis=axis)
        _Drawing(matplotlib, figure, axes, chart).draw()
        return figure


def _write(figure: Any, stream: IO[bytes], format: str) -> None:
    with _settings():
        figure.savefig(stream, format=format, dpi=_DOTS_PER_INCH, metadata=_METADATA[format])


def format_of(path: str) -> str:
    """The format of a picture by the extension of its path. Raises UsageError for an unknown extension."""
    _, dot, ending = path.rpartition(".")
    if dot and ending.lower() in FORMATS:
        return ending.lower()
    known = ", ".join(f".{name}" for name in FORMATS)
    raise UsageError(
        f"{path!r} does not end in {known}",
        hint=did_you_mean(ending if dot else "", FORMATS, f"the end says which picture it is: {path + '.png'!r}"),
    )


def save(chart: Chart, path: str, write: output.Save = output.write_atomically) -> None:
    """Save a picture in the format of its path's extension. The same chart gives the same bytes.

    Raises UsageError for an unknown extension, BackendError where Matplotlib is not installed, and OutputError where
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
        # The entries of the legend.
        self.keys: list[tuple[Any, str]] = []
        self.colors = self._palette()
        # The colour of each group, and the number of its curves drawn so far.
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
        """The colours in the order of their use: one for points, and one for each line or group of lines."""
        groups = [line.group for line in self._lines()]
        count = len({*groups} - {None}) + groups.count(None) + self._has(Points)
        maps = self.matplotlib.colormaps
        if count <= _MOST_COLORS:
            return iter(maps["tab10"].colors)
        return iter(maps["viridis"](arrays.numpy_namespace().linspace(*_SCALE, count)))

    def _lines(self) -> Sequence[Polyline]:
        return [layer for layer in self.chart.layers if isinstance(layer, Polyline)]

    def _limits(self) -> None:
        """Set the ends of the axes: the given ones, and on logarithmic axes those of the numbers."""
        np = arrays.numpy_namespace()
        if "x" not in self.chart.log and all(np.asarray(line.x).dtype.kind == "i" for line in self._lines()):
            # Integers get ticks at integers only.
            self.axes.xaxis.get_major_locator().set_params(integer=True)
        for name, given in (("x", self.chart.x_limits), ("y", self.chart.y_limits)):
            log = name in self.chart.log
            ends = given or (self._positive(name) if log else None)
            if not log:
                ends = self._tiny(name, ends) or ends
            if ends is None:
                continue
            # Without a margin, points at the ends of an axis would be cut in half.
            room = _ROOM if given is None or self._has(Points) else 0.0
            low, high = _widened(ends, log, room)
            self.axes.set(**{f"{name}lim": (low, high)})
            if log and high / _MOST_DECADES > low * _MOST_DECADES:
                self._powers(name, Axis(math.log10(low), math.log10(high), True))

    def _positive(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest positive number along an axis."""
        data = self.axes.dataLim
        low, high = getattr(data, f"minpos{name}"), getattr(data, f"{name}1")
        return (float(low), float(high)) if 0 < low <= high < math.inf else None

    def _tiny(self, name: str, given: tuple[float, float] | None) -> tuple[float, float] | None:
        """The ends of an axis whose numbers are so small that Matplotlib takes them for 0, after setting its ticks;
        None for other axes."""
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
        """Set the ticks of a long logarithmic axis: Matplotlib's own reach beyond its ends, where they may overflow."""
        ticker = self.matplotlib.ticker
        marked = getattr(self.axes, f"{name}axis")
        marked.set_major_locator(ticker.FixedLocator([10.0**mark for mark in axis.marks(_TICKS)]))
        marked.set_minor_locator(ticker.NullLocator())

    def _legend(self) -> None:
        """Add the legend: outside the axes where there are several curves, as there may be no free place inside."""
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
        points = isolated_points(line, self.chart.log)
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
        """Draw points as their number in each cell of a grid."""
        x, y, counts = density(points, self.chart.log, *_CELLS)
        mesh = self.axes.pcolormesh(
            x, y, counts, cmap="viridis", norm=self.matplotlib.colors.LogNorm(), rasterized=True, zorder=0.5
        )
        # Lines get colours that stand out against the density.
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
            # Mask values beyond the limits, so that no contours run along a pole, where all levels meet.
            seen = np.ma.masked_outside(np.ma.masked_invalid(field.z), low, high)
            self.axes.contour(field.x, field.y, seen, levels=levels, colors="white", alpha=0.6, linewidths=0.8)
        self.axes.set(xlim=(field.x[0], field.x[-1]), ylim=(field.y[0], field.y[-1]))
        self.figure.colorbar(
            mesh, ax=self.axes, label=_plain(field.label), extend="both" if field.limits else "neither"
        )
        if field.arrows is not None:
            self._arrows(field.arrows)

    def _arrows(self, arrows: Arrows) -> None:
        """Draw arrows along the gradient as it appears on the axes, perpendicular to the contours."""
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
    """The ends of an axis with a margin of the share `room` of its length at both."""
    if not log:
        low, high = limits
        room *= high - low
        return low - room, high + room
    low, high = map(math.log10, limits)
    room *= (high - low) or 1.0
    least, most = _POWERS
    return 10 ** max(low - room, least), 10 ** min(high + room, most)


def _plain(text: str) -> str:
    """A text with `$` escaped, so that Matplotlib does not parse it as TeX."""
    return text.replace("$", r"\$")
