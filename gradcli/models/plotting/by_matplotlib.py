"""The door to Matplotlib, which draws pictures that are saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from gradcli import arrays, installing
from gradcli.errors import BackendError, UsageError, did_you_mean
from gradcli.io import output
from gradcli.models.plotting.charts import Arrows, Band, Chart, Field, Points, Polyline, density
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
# A legend with more entries stands beside the axes.
_MOST_INSIDE = 8


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
    return matplotlib


@contextmanager
def _settings() -> Iterator[Any]:
    """Within the block, Matplotlib is as it comes, whatever a user's own settings are."""
    matplotlib = _needed()
    with matplotlib.rc_context():
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
        _Drawing(matplotlib, figure, axes, chart.log).draw(chart)
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
    def __init__(self, matplotlib: Any, figure: Any, axes: Any, log: str) -> None:
        self.matplotlib = matplotlib
        self.figure = figure
        self.axes = axes
        self.log = log
        # What the legend explains.
        self.keys: list[tuple[Any, str]] = []

    def draw(self, chart: Chart) -> None:
        for layer in chart.layers:
            if isinstance(layer, Polyline):
                self._line(layer)
            elif isinstance(layer, Points):
                self._points(layer)
            elif isinstance(layer, Band):
                self._band(layer)
            else:
                self._field(layer)
        if chart.y_limits is not None:
            self.axes.set_ylim(chart.y_limits)
        if not any(isinstance(layer, Field) for layer in chart.layers):
            self.axes.grid(alpha=0.3)
        if len(self.keys) > 1:
            handles, labels = zip(*((artist, _plain(label)) for artist, label in self.keys))
            outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(labels) > _MOST_INSIDE else {}
            self.axes.legend(handles, labels, **outside)

    def _line(self, line: Polyline) -> None:
        (artist,) = self.axes.plot(line.x, line.y, linewidth=1.5)
        self.keys.append((artist, line.label))

    def _points(self, points: Points) -> None:
        if len(points.x) > MOST_POINTS:
            self._density(points)
            return
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3 if len(points.x) > 200 else 5}
        if points.error is None:
            (artist,) = self.axes.plot(points.x, points.y, alpha=0.7, **style)
        else:
            artist = self.axes.errorbar(points.x, points.y, yerr=points.error, capsize=2, alpha=0.7, **style)
        self.keys.append((artist, points.label))

    def _density(self, points: Points) -> None:
        """Points, as how many of them each cell of a grid has."""
        x, y, counts = density(points, self.log, *_CELLS)
        mesh = self.axes.pcolormesh(
            x, y, counts, cmap="viridis", norm=self.matplotlib.colors.LogNorm(), rasterized=True, zorder=0.5
        )
        # Lines are told from it.
        self.axes.set_prop_cycle(color=_ON_DENSITY)
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


def _plain(text: str) -> str:
    """A text of a user, which is no formula of TeX."""
    return text.replace("$", r"\$")
