"""Drawing of charts as text by plotext, for a terminal."""

from __future__ import annotations

import math
import string
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from gradcli import arrays, install_command
from gradcli.errors import BackendError
from gradcli.models.plotting.charts import (
    Arrows,
    Axis,
    Band,
    Chart,
    GridValues,
    HueField,
    Layer,
    Points,
    Polyline,
    isolated_points,
    rgb,
    shown,
)
from gradcli.named_tuples import NamedTuple
from gradcli.timing import phase

# The least and the greatest width in characters; the least height, the height as a share of the width, and the greatest
# height.
_WIDTH = (32, 300)
_HEIGHT = (12, 0.3, 40)
# The least height on a terminal that is too low for the others.
_LEAST_ROWS = 8
# More points are drawn as a density: their number at each character.
_MOST_POINTS = 5_000
# Curves have different colours; without colours, or with more curves than colours, they have different characters.
_COLORS = ("blue+", "orange+", "green+", "red+", "magenta+", "cyan+")
_CHARACTERS = "*+ox#%@=&$" + string.ascii_lowercase.translate({ord(c): None for c in "ox"}) + string.ascii_uppercase
_SHADES = ".:-=+*#%@"
# As many colours as shades, from dark to bright, among the 256 of a terminal.
_SHADE_COLORS = (53, 60, 24, 30, 36, 41, 77, 148, 220)
# Arrows in steps of 45 degrees, counterclockwise from the right.
_ARROWS, _PLAIN_ARROWS = "→↗↑↖←↙↓↘", ">/^\\</v\\"
# Without Unicode, a direction is a number of steps of 45 degrees.
_EIGHTHS = "01234567"
# There is at most one arrow per block of this many columns and rows.
_EVERY = (8, 4)
_TICKS = 6
_LONGEST_LABEL = 40


class Style(NamedTuple):
    """The capabilities of a terminal: its width in columns, colours, characters beyond ASCII, and its height in rows,
    None where there is none."""

    columns: int = 80
    colors: bool = False
    unicode: bool = True
    rows: int | None = None


def _needed() -> Any:
    """plotext. Raises BackendError where it is not installed."""
    with phase("import"):
        try:
            import plotext
        except ImportError:
            raise BackendError(
                "a picture on a terminal needs plotext, which is not installed",
                hint=install_command.install_command("plot"),
            ) from None
    return plotext


def text(chart: Chart, style: Style) -> str:
    """A chart as lines of text, no wider than the style allows, and where possible so low that it is seen above the
    next prompt. Raises BackendError where plotext is not installed."""
    drawn = _drawn(chart, style)
    excess = 0 if style.rows is None else drawn.count("\n") + 1 - style.rows
    return drawn if excess <= 0 else _drawn(chart, style, excess)


def _drawn(chart: Chart, style: Style, fewer: int = 0) -> str:
    """A chart with `fewer` rows than its width asks for."""
    if chart.below is None:
        return _Drawing(chart, style, fewer).text()
    # The legend and the label of the x axis are those of the chart below.
    half = -(-fewer // 2)
    drawings = _Drawing(chart._replace(x=""), style, half), _Drawing(chart.below, style, half)
    width = max(each.label_width() for each in drawings)
    above, below = (each.text(width, legend=place > 0) for place, each in enumerate(drawings))
    return above + below


class _Drawing:
    def __init__(self, chart: Chart, style: Style, fewer: int) -> None:
        self.plotext = _needed()
        self.chart = chart
        self.style = style
        least, part, most = _HEIGHT
        self.columns = min(max(_WIDTH[0], style.columns), _WIDTH[1])
        rows = min(max(least, round(self.columns * part)), most)
        self.rows = max(min(rows, _LEAST_ROWS), rows - fewer)
        self.x, self.y = self._axis("x"), self._axis("y")
        # The label, the symbol and the colour of each layer, for the legend.
        self.keys: list[tuple[str, str, Any]] = []
        lines = sum(isinstance(layer, Polyline) for layer in chart.layers)
        self.fine = style.unicode and lines <= (len(_COLORS) if style.colors else 1)

    def label_width(self) -> int:
        """The number of characters of the longest number along the y axis."""
        return max(map(len, self.y.ticks(_TICKS)[1]), default=0)

    def text(self, width: int = 0, *, legend: bool = True) -> str:
        """The lines of the chart; the numbers along the y axis take at least `width` characters."""
        figure = self.figure = self.plotext.figure
        self.plotext.terminal.limit(False, False)
        figure.clear()
        try:
            figure.theme("colorless")
            figure.plot_size(self.columns, self.rows)
            self._frame(width)
            # Points are drawn last, so that no curve hides them.
            for layer in sorted(self.chart.layers, key=lambda layer: isinstance(layer, Points)):
                self._layer(layer)
            drawn = figure.build().string(colorless=not self.style.colors)
        finally:
            figure.clear()
        lines = [line.rstrip() for line in drawn.rstrip("\n").split("\n")]
        return "\n".join([*self._title_lines(), *lines, *(self._legend() if legend else ())]) + "\n"

    def _title_lines(self) -> list[str]:
        """The lines of a title that is too long for one."""
        title = _plain(self.chart.title, len(self.chart.title))
        lines = textwrap.wrap(title, self.columns) if len(title) > self.columns else []
        return [line.center(self.columns).rstrip() for line in lines]

    def _frame(self, width: int) -> None:
        title = _plain(self.chart.title, len(self.chart.title))
        self.figure.title((title if len(title) <= self.columns else "") or None)
        for name, axis, title in (("x", self.x, self.chart.x), ("y", self.y, self.chart.y)):
            self.figure.label(_plain(title, self.columns // 2) or None, name)
            ruler = self.figure.ruler(name)
            ruler.lim(0.0, 1.0)
            places, numbers = axis.ticks(_TICKS)
            ruler.ticks(places, [number.rjust(width) for number in numbers] if name == "y" else numbers)

    def _axis(self, name: str) -> Axis:
        """The axis over all layers; where there is a field, over the field."""
        fields = [layer for layer in self.chart.layers if isinstance(layer, (GridValues, HueField))]
        log, limits = name in self.chart.log, self.chart.y_limits
        if name == "y" and limits is not None:
            return Axis.over([limits], log)
        if name == "x" and self.chart.x_limits is not None:
            return Axis.over([self.chart.x_limits], log)
        ticks = _TICKS if name == "y" and not fields else None
        return Axis.over(_coordinates(fields or self.chart.layers, name), log, ticks)

    # --- layers

    def _layer(self, layer: Layer) -> None:
        if isinstance(layer, Polyline):
            self._line(layer)
        elif isinstance(layer, Points):
            self._points(layer)
        elif isinstance(layer, Band):
            self._line(Polyline(layer.label, layer.x, layer.low), "." if not self.style.unicode else "·")
            self._put(layer.x, layer.high, self.keys[-1][1], self.keys[-1][2], connected=True)
        elif isinstance(layer, HueField):
            self._hues(layer)
        else:
            self._field(layer)

    def _next(self, character: str | None) -> tuple[str, Any]:
        number = len(self.keys)
        pixel = self.plotext.pixel(_COLORS[number % len(_COLORS)]) if self.style.colors else None
        return character or ("braille" if self.fine else _CHARACTERS[number % len(_CHARACTERS)]), pixel

    def _line(self, line: Polyline, character: str | None = None) -> None:
        symbol, pixel = self._next(character)
        self.keys.append((line.label, symbol, pixel))
        self._put(line.x, line.y, symbol, pixel, connected=True)
        points = isolated_points(line, self.chart.log)
        self._put(points.x, points.y, symbol, pixel, connected=False)

    def _points(self, every: Points) -> None:
        points = shown(every, self.chart.log)
        if not len(points.x):
            return
        if len(points.x) > _MOST_POINTS:
            self._density(points)
            return
        symbol, pixel = self._next("•" if self.style.unicode else "o")
        self.keys.append((points.label, symbol, pixel))
        self._put(points.x, points.y, symbol, pixel, connected=False)

    def _put(self, x: Any, y: Any, symbol: str, pixel: Any, *, connected: bool) -> None:
        """Draw the visible parts of points and of the lines between them; plotext must not be given others."""
        np = arrays.numpy_namespace()
        x, y = self.x.placed(x), self.y.placed(y)
        x = np.where((x >= 0) & (x <= 1), x, np.nan)
        begins: Sequence[int] = ()
        if connected:
            x, y, begins = thinned(*clipped(x, y), 2 * self.columns)
        else:
            inside = np.isfinite(x) & (y >= 0) & (y <= 1)
            x, y = x[inside], y[inside]
        if not len(x):
            return
        signal = self.figure.signal(x.tolist(), y.tolist(), marker=self.plotext.marker(symbol, pixel))
        if connected:
            signal.lines()
            signal.density("full")
            for place in begins:
                signal.line(place, False)
        self.figure.draw(signal)

    def _cells(self) -> tuple[int, int]:
        """The number of character columns and rows within the frame."""
        beside = self.label_width() + 2
        below = 4 + bool(self.chart.title)
        return max(4, self.columns - beside), max(4, self.rows - below)

    def _density(self, points: Points) -> None:
        """Draw the number of points at each character."""
        np = arrays.numpy_namespace()
        _, pixel = self._next(None)
        cells = self._cells()
        places = [
            axis.placed(numbers) * (count - 1)
            for axis, numbers, count in zip((self.x, self.y), (points.x, points.y), cells)
        ]
        seen = np.ones(places[0].shape, "bool")
        for place, count in zip(places, cells):
            seen &= (place > -0.5) & (place < count - 0.5)
        columns, rows = (np.rint(place[seen]).astype(int) for place in places)
        counts = np.bincount(rows * cells[0] + columns, minlength=cells[0] * cells[1]).reshape(cells[::-1])
        most = int(counts.max())
        shade = np.ceil(np.log1p(counts) / math.log1p(most) * len(_SHADES)).astype(int) - 1
        self._shades(shade, [pixel] * len(_SHADES), _SHADES)
        self.keys.append((f"{points.label}: {len(points.x):,} points, 1 to {most:,} at a character", _SHADES, pixel))

    def _shades(self, shade: Any, pixels: Sequence[Any], symbols: str) -> None:
        """Draw one of the symbols at each character, by its index in `shade` `[rows, columns]`."""
        np = arrays.numpy_namespace()
        x, y = np.meshgrid(np.linspace(0, 1, shade.shape[1]), np.linspace(0, 1, shade.shape[0]))
        for number, (symbol, pixel) in enumerate(zip(symbols, pixels)):
            taken = shade == number
            if taken.any():
                marker = self.plotext.marker(symbol, pixel)
                self.figure.draw(self.figure.signal(x[taken].tolist(), y[taken].tolist(), marker=marker))

    def _field(self, field: GridValues) -> None:
        np = arrays.numpy_namespace()
        seen = field.z[np.isfinite(field.z) & (field.z > 0 if field.log else True)]
        low, high = field.limits or (float(seen.min()), float(seen.max()))
        low = max(low, float(seen.min())) if field.log else low
        shade = _levels(self._sampled(field.z), low, high, log=field.log)
        pixels = [self.plotext.pixel(color) if self.style.colors else None for color in _SHADE_COLORS]
        symbols = "█" * len(_SHADES) if self.style.colors and self.style.unicode else _SHADES
        self._shades(shade, pixels, symbols)
        if field.arrows is not None:
            self._arrows(field.arrows, shade)
        self.keys.append((f"{field.label}: {low:.4g} to {high:.4g}", symbols, pixels))

    def _sampled(self, z: Any) -> Any:
        """The values of a grid `[y, x]` that are nearest to the characters within the frame, `[rows, columns]`."""
        np = arrays.numpy_namespace()
        places = [np.rint(np.linspace(0, size - 1, n)).astype(int) for size, n in zip(z.shape, self._cells()[::-1])]
        return z[np.ix_(*places)]

    def _hues(self, field: HueField) -> None:
        """Draw complex numbers in the colours of their angles; without colours, the directions of the numbers."""
        np = arrays.numpy_namespace()
        z = self._sampled(field.z)
        label = f"from 0 in steps of 45 degrees: the angle of {field.label}"
        if not self.style.colors:
            with arrays.quiet():
                eighth = np.rint(np.angle(z) / (math.pi / 4)).astype(int) % 8
            eighth = np.where(np.isfinite(z) & (z != 0), eighth, -1)
            symbols = _ARROWS if self.style.unicode else _EIGHTHS
            self._shades(eighth, [None] * 8, symbols)
            self.keys.append((label, symbols, None))
            return
        codes = _color_codes(z)
        listed, index = np.unique(codes, return_inverse=True)
        block = "█" if self.style.unicode else "#"
        self._shades(index.reshape(codes.shape), [self.plotext.pixel(int(c)) for c in listed], block * len(listed))
        around = _color_codes(np.exp(1j * np.arange(len(_ARROWS)) * math.pi / 4))
        pixels = [self.plotext.pixel(int(code)) for code in around]
        self.keys.append((label, block * len(_ARROWS), pixels))

    def _arrows(self, arrows_: Arrows, shade: Any) -> None:
        """Draw arrows along the gradient as it appears on the screen, where a character is twice as high as wide."""
        np = arrays.numpy_namespace()
        rows, columns = shade.shape
        x, y = self.x.placed(arrows_.x), self.y.placed(arrows_.y)
        with arrays.quiet():
            dx = arrows_.dx * (self.x.high - self.x.low) / columns
            dy = arrows_.dy * (self.y.high - self.y.low) / rows / 2
        seen = (
            np.isfinite(dx) & np.isfinite(dy) & ((dx != 0) | (dy != 0)) & (abs(x - 0.5) <= 0.5) & (abs(y - 0.5) <= 0.5)
        )
        for numbers, count, every in ((x, columns, _EVERY[0]), (y, rows, _EVERY[1])):
            places = np.unique(numbers)
            seen &= np.isin(numbers, places[:: max(1, math.ceil(places.size * every / count))])
        if not seen.any():
            return
        eighth = np.rint(np.arctan2(dy, dx)[seen] / (math.pi / 4)).astype(int) % 8
        level = shade[np.rint(y[seen] * (rows - 1)).astype(int), np.rint(x[seen] * (columns - 1)).astype(int)]
        for number, symbol in enumerate(_ARROWS if self.style.unicode else _PLAIN_ARROWS):
            for height in np.unique(level):
                taken = np.flatnonzero(seen)[(eighth == number) & (level == height)]
                self._put(arrows_.x[taken], arrows_.y[taken], symbol, self._on(int(height)), connected=False)

    def _on(self, level: int) -> Any:
        """The colour of an arrow on the background colour of a shade."""
        return self.plotext.pixel("white", _SHADE_COLORS[level]) if self.style.colors and level >= 0 else None

    def _legend(self) -> Iterator[str]:
        """The lines of the legend; none where a single layer needs no explanation."""
        if len(self.keys) < 2 and not any(len(symbol) > 1 and symbol != "braille" for _, symbol, _ in self.keys):
            return
        line, length = "", 0
        for text_, symbol, pixel in self.keys:
            mark = "──" if symbol == "braille" else symbol
            label = _plain(text_, self.columns - len(mark) - 3)
            width = len(mark) + 1 + len(label)
            if line and length + 3 + width > self.columns:
                yield line
                line, length = "", 0
            line += f"{'   ' if line else '  '}{self._painted(mark, pixel)} {label}"
            length += 3 + width
        yield line

    def _painted(self, mark: str, pixel: Any) -> str:
        """A text in its colour, or each of its characters in one of several."""
        if not self.style.colors or pixel is None:
            return mark
        if isinstance(pixel, list):
            return "".join(map(self._painted, mark, pixel))
        return str(self.plotext.colorize(mark).fill(pixel).string())


def _color_codes(z: Any) -> Any:
    """The colours of complex numbers among the 216 of a terminal that mix six levels of red, green and blue."""
    np = arrays.numpy_namespace()
    return 16 + np.rint(5 * rgb(z)).astype(int) @ [36, 6, 1]


def _levels(z: Any, low: float, high: float, *, log: bool = False) -> Any:
    """The index of the shade of each number, -1 for nan, and on a logarithmic scale for what is not above 0."""
    np = arrays.numpy_namespace()
    with arrays.quiet():
        if log:
            z, low, high = np.where(z > 0, np.log10(z), np.nan), math.log10(low), math.log10(high)
        # The halves keep the differences from overflowing.
        level = np.floor((z / 2 - low / 2) / ((high / 2 - low / 2) or 1.0) * len(_SHADES))
    return np.where(np.isfinite(z), np.clip(np.nan_to_num(level), 0, len(_SHADES) - 1), -1).astype(int)


def _coordinates(layers: Sequence[Layer], name: str) -> Iterator[Any]:
    """The arrays of x or y values of the layers; of a band those of both edges."""
    for layer in layers:
        if name == "x" or not isinstance(layer, Band):
            yield getattr(layer, name)
        else:
            yield layer.low
            yield layer.high


def _plain(label: str, most: int = _LONGEST_LABEL) -> str:
    """A text on one line, without control characters, shortened where it is long."""
    line = "".join(c if c.isprintable() else " " for c in label)
    return line if len(line) <= most else line[: most - 1] + "…"


def clipped(x: Any, y: Any) -> tuple[Any, Any, Sequence[int]]:
    """The parts of a polyline with y between 0 and 1, and the index at which each part begins; nan is a gap."""
    np = arrays.numpy_namespace()
    found: list[tuple[float, float]] = []
    begins: list[int] = []
    last: tuple[float, float] | None = None
    for start, end in pairwise(zip(x.tolist(), y.tolist())):
        piece = _within(start, end)
        if piece is None:
            last = None
            continue
        if piece[0] != last:
            begins.append(len(found))
            found.append(piece[0])
        found.append(piece[1])
        last = piece[1]
    made = np.asarray(found, "float64").reshape(-1, 2)
    return made[:, 0], made[:, 1], begins


def thinned(x: Any, y: Any, begins: Sequence[int], columns: int) -> tuple[Any, Any, Sequence[int]]:
    """The points of lines that are visible in a number of columns: for each line and column, the first, the last, the
    lowest and the highest (Jugel, Jerzak, Hackenbroich, Markl, M4, 2014)."""
    np = arrays.numpy_namespace()
    if len(x) <= 4 * columns:
        return x, y, begins
    line = np.searchsorted(np.asarray(begins), np.arange(len(x)), side="right")
    group = line * (columns + 1) + np.floor(x * columns).astype(int)
    order = np.lexsort((y, group))
    found = []
    for places, groups in ((np.arange(len(x)), group), (order, group[order])):
        new = np.diff(groups) != 0
        found += [places[np.r_[True, new]], places[np.r_[new, True]]]
    kept = np.unique(np.concatenate(found))
    return x[kept], y[kept], np.searchsorted(kept, np.asarray(begins)).tolist()


def _within(start: tuple[float, float], end: tuple[float, float]) -> Any:
    """The part of a line segment with y between 0 and 1, None where there is none."""
    (a, f), (b, g) = start, end
    if not all(map(math.isfinite, (a, b, f, g))) or max(f, g) < 0 or min(f, g) > 1:
        return None

    def at(height: float) -> tuple[float, float]:
        return a + (b - a) * ((height - f) / (g - f)), height

    ends = [at(0.0) if h < 0 else at(1.0) if h > 1 else (p, h) for p, h in (start, end)]
    return ends[0], ends[1]
