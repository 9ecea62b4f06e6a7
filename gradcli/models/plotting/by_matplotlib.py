"""Drawing of charts by Matplotlib, for pictures that are saved."""

from __future__ import annotations

import io
import math
import os
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

from gradcli import arrays, install_command
from gradcli.errors import BackendError, UsageError, did_you_mean
from gradcli.io import output
from gradcli.models.plotting.charts import (
    Arrows,
    Axis,
    Band,
    Chart,
    GridValues,
    HueField,
    Points,
    Polyline,
    density,
    isolated_points,
    rgb,
    shown,
)
from gradcli.timing import phase

# The formats of pictures, which are the extensions of their files.
FORMATS = ("png", "svg", "pdf")
_INCHES = (8.0, 5.0)
_DOTS_PER_INCH = 150
_POINTS_PER_INCH = 72
# The size of Matplotlib's font, in points.
_FONT_SIZE = 10.0
# The share of the width and the height of a picture that its title and its labels may take.
_ROOM_FOR_TEXT = 0.85
# The width of a narrow letter, as a share of the size of the font.
_NARROW_LETTER = 0.35
# The share of the width that the labels of a legend may take.
_ROOM_FOR_LEGEND = 0.3
# The heights of a picture and of the panel of residuals below it.
_HEIGHTS = (3, 1)
# Settings and metadata that make the bytes of a file reproducible: no dates, and fixed ids in SVG.
_SETTINGS = {"svg.hashsalt": "gradcli", "axes.formatter.useoffset": False}
_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# More points are drawn as a density: their number in each cell of a grid of `_CELLS` columns and rows.
MOST_POINTS = 5_000
_CELLS = (240, 150)
# The number of colours of all angles.
_HUES = 361
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
        figure = matplotlib.figure.Figure(figsize=chart.size or _INCHES, layout="constrained")
        axes, *below = _panels(figure, chart)
        _label(figure, axes, below[-1] if below else axes, chart)
        if chart.residuals:
            _residuals(below[0], chart)
        _scale(axes, chart.log)
        if chart.below is not None:
            _label_below(below[0], chart)
            _scale(below[0], chart.below.log)
            _Drawing(matplotlib, figure, below[0], chart.below, None).draw(legend=False)
        _Drawing(matplotlib, figure, axes, chart, below[0] if chart.residuals else None).draw()
        return figure


def _scale(axes: Any, log: str) -> None:
    """Make the axes in `log` logarithmic."""
    for axis in log:
        # Numbers that are not positive are masked, and not clipped to the end of the axis.
        getattr(axes, f"set_{axis}scale")("log", nonpositive="mask")
        # Matplotlib's automatic margins may exceed the largest float.
        axes.autoscale(False, axis=axis)


def _panels(figure: Any, chart: Chart) -> Any:
    """The axes of the picture, and those of the residuals or of another chart below."""
    if chart.below is not None:
        return figure.subplots(2, 1, sharex=True)
    if not chart.residuals:
        return [figure.add_subplot()]
    return figure.subplots(2, 1, sharex=True, height_ratios=_HEIGHTS)


def _label(figure: Any, axes: Any, lowest: Any, chart: Chart) -> None:
    """Set title and labels, on as many lines as they need."""
    width, height = (length * _POINTS_PER_INCH * _ROOM_FOR_TEXT for length in chart.size or _INCHES)
    share = 1 / 2 if chart.below is not None else _HEIGHTS[0] / sum(_HEIGHTS) if chart.residuals else 1.0
    # The title is that of the figure: beside a legend, the axes may be narrower than it.
    size = axes.title.get_fontsize()
    if chart.title:
        figure.suptitle(_lines_of(chart.title, width, size), fontsize=size)
    # Beside a legend, the axes take about half of the width.
    lines = sum(isinstance(layer, Polyline) for layer in chart.layers)
    across = width / 2 if lines > 1 else width
    lowest.set_xlabel(_lines_of(chart.x, across, lowest.xaxis.label.get_fontsize()))
    axes.set_ylabel(_lines_of(chart.y, height * share, axes.yaxis.label.get_fontsize()))


def _label_below(axes: Any, chart: Chart) -> None:
    """Set the y label of the chart below."""
    _, height = chart.size or _INCHES
    room = height * _POINTS_PER_INCH * _ROOM_FOR_TEXT / 2
    axes.set_ylabel(_lines_of(chart.below.y, room, axes.yaxis.label.get_fontsize()))  # type: ignore[union-attr]


def _lines_of(text: str, length: float, size: float) -> str:
    """A text, broken into lines of at most a length in points; `size` is that of the font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(size=size)

    def fits(line: str) -> bool:
        return bool(TextPath((0, 0), _plain(line), prop=font).get_extents().width <= length)

    lines: list[str] = []
    for paragraph in text.split("\n"):
        most = min(len(paragraph), int(length / (_NARROW_LETTER * size))) or 1
        while most > 1 and not all(map(fits, textwrap.wrap(paragraph, most) or [""])):
            most -= max(1, most // 20)
        lines += textwrap.wrap(paragraph, most) or [""]
    return "\n".join(map(_plain, lines))


def _residuals(axes: Any, chart: Chart) -> None:
    """Draw the residuals below the picture, with a line where they would be 0."""
    axes.axhline(0.0, color="gray", linewidth=1.0)
    axes.set_ylabel("residual")
    axes.grid(alpha=0.3)
    if "x" in chart.log:
        axes.set_xscale("log", nonpositive="mask")


def _write(figure: Any, stream: IO[bytes], format: str, dpi: int) -> None:
    with _settings(), warnings.catch_warnings():
        # The layout gives up where texts are larger than the picture.
        warnings.filterwarnings("error", ".*constrained_layout not applied.*")
        try:
            figure.savefig(stream, format=format, dpi=dpi, metadata=_METADATA[format])
        except UserWarning:
            width, height = figure.get_size_inches()
            raise UsageError(
                f"its texts leave no room for a picture of {width:g}x{height:g} inches",
                hint="give it a larger --size, or shorter texts",
            ) from None


def format_of(path: str) -> str:
    """The format of a picture by the extension of its path. Raises UsageError for an unknown extension."""
    stem, extension = os.path.splitext(path)
    ending = extension.removeprefix(".").lower()
    if ending in FORMATS:
        return ending
    known = ", ".join(f".{name}" for name in FORMATS)
    raise UsageError(
        f"{path!r} does not end in {known}",
        hint=did_you_mean(ending, FORMATS, f"write {stem + '.png'!r}"),
    )


def save(chart: Chart, path: str, write: output.Save = output.write_atomically) -> None:
    """Save a picture in the format of its path's extension. The same chart gives the same bytes.

    Raises UsageError for an unknown extension, BackendError where Matplotlib is not installed, and OutputError where
    the file cannot be written.
    """
    format = format_of(path)
    figure = drawn(chart)
    write(path, lambda stream: _write(figure, stream, format, chart.dpi or _DOTS_PER_INCH))


def svg(chart: Chart) -> str:
    """A picture as SVG. Raises BackendError where Matplotlib is not installed."""
    stream = io.BytesIO()
    _write(drawn(chart), stream, "svg", chart.dpi or _DOTS_PER_INCH)
    return stream.getvalue().decode()


class _Drawing:
    def __init__(self, matplotlib: Any, figure: Any, axes: Any, chart: Chart, below: Any) -> None:
        self.matplotlib = matplotlib
        self.below = below
        self.figure = figure
        self.axes = axes
        self.chart = chart
        # The entries of the legend.
        self.keys: list[tuple[Any, str]] = []
        self.colors = self._palette()
        # The colour of each group, and the number of its curves drawn so far.
        self.groups: dict[int | None, tuple[Any, int]] = {}

    def draw(self, *, legend: bool = True) -> None:
        for layer in self.chart.layers:
            if isinstance(layer, Polyline):
                self._line(layer)
            elif isinstance(layer, Points):
                self._points(shown(layer, self.chart.log))
            elif isinstance(layer, Band):
                self._band(layer)
            elif isinstance(layer, HueField):
                self._hues(layer)
            else:
                self._field(layer)
        for points in self.chart.residuals:
            self._residuals(shown(points, self.chart.log.replace("y", "")))
        if not self._has(GridValues) and not self._has(HueField):
            self._limits()
            self.axes.grid(alpha=0.3)
        if legend and len(self.keys) > 1:
            self._legend()

    def _has(self, kind: type) -> bool:
        return any(isinstance(layer, kind) for layer in self.chart.layers)

    def _palette(self) -> Iterator[Any]:
        """The colours in the order of their use: one for points, and one for each line or group of lines."""
        groups = [line.group for line in self._lines()]
        groups += [layer.group for layer in self.chart.layers if isinstance(layer, Points)]
        count = len({*groups} - {None}) + groups.count(None)
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
            room = _ROOM if (given is None or self._has(Points)) and name not in self.chart.exact else 0.0
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
        width, _ = self.chart.size or _INCHES
        most = width * _POINTS_PER_INCH * _ROOM_FOR_LEGEND
        handles, labels = zip(*((artist, _lines_of(label, most, _FONT_SIZE)) for artist, label in self.keys))
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
        artist = self._dots(self.axes, points, self._color_of(points.group))
        self.keys.append((artist, points.label))

    def _color_of(self, group: int | None) -> Any:
        """The next colour, or that of a group."""
        if group is None:
            return next(self.colors)
        color, count = self.groups.get(group) or (next(self.colors), 0)
        self.groups[group] = color, count
        return color

    def _dots(self, axes: Any, points: Points, color: Any) -> Any:
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3 if len(points.x) > 200 else 5}
        style |= {"color": color, "alpha": 0.7}
        if points.error is None and points.x_error is None:
            (artist,) = axes.plot(points.x, points.y, **style)
            return artist
        return axes.errorbar(points.x, points.y, yerr=points.error, xerr=points.x_error, capsize=2, **style)

    def _residuals(self, points: Points) -> None:
        """Draw residuals in the panel below, in the colour of the points that they belong to."""
        if not len(points.x):
            return
        known = self.groups.get(points.group)
        color = known[0] if known else self.matplotlib.colormaps["tab10"].colors[0]
        self._dots(self.below, points, color)

    def _density(self, points: Points) -> None:
        """Draw points as their number in each cell of a grid."""
        x, y, counts = density(points, self.chart.log, *_CELLS)
        mesh = self.axes.pcolormesh(
            x, y, counts, cmap="viridis", norm=self.matplotlib.colors.LogNorm(), rasterized=True, zorder=0.5
        )
        # Lines get colours that stand out against the density.
        self.colors = chain(_ON_DENSITY, self.colors)
        self.figure.colorbar(
            mesh, ax=self.axes, label=self._beside(f"{points.label}: {len(points.x):,} points, number in each cell")
        )

    def _beside(self, text: str) -> str:
        """The label of a colour bar, on as many lines as the height of the picture needs."""
        _, height = self.chart.size or _INCHES
        return _lines_of(text, height * _POINTS_PER_INCH * _ROOM_FOR_TEXT, _FONT_SIZE)

    def _band(self, band: Band) -> None:
        color = self.axes.lines[-1].get_color() if self.axes.lines else None
        artist = self.axes.fill_between(band.x, band.low, band.high, alpha=0.2, linewidth=0, color=color)
        self.keys.append((artist, band.label))

    def _field(self, field: GridValues) -> None:
        np = arrays.numpy_namespace()
        low, high = field.limits or (np.nanmin(field.z), np.nanmax(field.z))
        z = np.ma.masked_less_equal(field.z, 0.0) if field.log else field.z
        if field.log:
            low = max(low, float(z.min()))
        norm = self.matplotlib.colors.LogNorm(low, high) if field.log else self.matplotlib.colors.Normalize(low, high)
        mesh = self.axes.pcolormesh(field.x, field.y, z, cmap="viridis", shading="nearest", norm=norm, rasterized=True)
        levels = self._contour_levels(low, high, field.log)
        if levels.size:
            # Mask values beyond the limits, so that no contours run along a pole, where all levels meet.
            seen = np.ma.masked_outside(np.ma.masked_invalid(field.z), low, high)
            lines = self.axes.contour(field.x, field.y, seen, levels=levels, colors="white", alpha=0.6, linewidths=0.8)
            for label in self.axes.clabel(lines, fmt="%g", fontsize="small"):
                label.set_alpha(1.0)
        self.axes.set(xlim=(field.x[0], field.x[-1]), ylim=(field.y[0], field.y[-1]))
        self.figure.colorbar(
            mesh, ax=self.axes, label=self._beside(field.label), extend="both" if field.limits else "neither"
        )
        if field.arrows is not None:
            self._arrows(field.arrows)

    def _hues(self, field: HueField) -> None:
        """Draw complex numbers by hue, with a bar of the hues of all angles."""
        np = arrays.numpy_namespace()
        (left, right), (bottom, top) = ((n[0], n[-1]) for n in (field.x, field.y))
        # A number is in the middle of its cell.
        dx, dy = ((n[1] - n[0]) / 2 for n in (field.x, field.y))
        ends = (left - dx, right + dx, bottom - dy, top + dy)
        self.axes.imshow(rgb(field.z), origin="lower", extent=ends, aspect="auto", interpolation="nearest")
        self.axes.set(xlim=(left, right), ylim=(bottom, top))
        angles = np.linspace(-180.0, 180.0, _HUES)
        hues = self.matplotlib.colors.ListedColormap(rgb(np.exp(1j * np.radians(angles))))
        bar = self.matplotlib.cm.ScalarMappable(self.matplotlib.colors.Normalize(-180.0, 180.0), hues)
        label = self._beside(f"angle in degrees of {field.label}, from black at 0 to white at infinity")
        self.figure.colorbar(bar, ax=self.axes, label=label, ticks=range(-180, 181, 60))

    def _contour_levels(self, low: float, high: float, log: bool) -> Any:
        np = arrays.numpy_namespace()
        if log and high > 10 * low:
            levels = 10.0 ** np.arange(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
            levels = levels[:: -(-levels.size // _LEVELS)]
        else:
            levels = self.matplotlib.ticker.MaxNLocator(_LEVELS).tick_values(low, high)
        return levels[(levels > low) & (levels < high)]

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
