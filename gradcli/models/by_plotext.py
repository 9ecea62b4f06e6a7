"""The door to plotext, which draws charts as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, installing
from gradcli.errors import BackendError
from gradcli.models.charts import Arrows, Band, Chart, Field, Line, Points
from gradcli.timing import phase

# Characters of a picture in width, at least and at most, and in height, by its width.
_WIDTH = (32, 300)
_HEIGHT = (12, 0.3, 40)
# More points than this are drawn by how many there are at each character.
_MOST_POINTS = 5_000
# Curves are told apart by colours, or by characters where there are none.
_COLORS = ("blue+", "orange+", "green+", "red+", "magenta+", "cyan+")
_CHARACTERS = "*+ox#%@="
_SHADES = ".:-=+*#%@"
# Of the same number of colours, from dark to bright, among the 256 of a terminal.
_HEIGHTS = (53, 60, 24, 30, 36, 41, 77, 148, 220)
# Arrows to the right, and on from there against the clock.
_ARROWS, _PLAIN_ARROWS = "→↗↑↖←↙↓↘", ">/^\\</v\\"
# One character among so many columns and rows is an arrow.
_EVERY = (8, 4)
_TICKS = 6
# A tick that is so little beyond the end of an axis, by its length, is on it.
_NEAR = 0.03
_ROUND = (1.0, 2.0, 5.0, 10.0)


class Style(NamedTuple):
    """What a terminal can show: so many columns, colours, and characters beyond ASCII."""

    columns: int = 80
    colors: bool = False
    unicode: bool = True


def _needed() -> Any:
    """plotext. Raises BackendError where it is not installed."""
    with phase("import"):
        try:
            import plotext
        except ImportError:
            raise BackendError(
                "a picture on a terminal needs plotext, which is not installed", hint=installing.command("plot")
            ) from None
    return plotext


def text(chart: Chart, style: Style) -> str:
    """A chart as lines of text, no longer than a style says. Raises BackendError where plotext is not installed."""
    return _Drawing(chart, style).text()


class _Axis(NamedTuple):
    """The part of an axis that is seen; numbers are logarithms along one that is logarithmic."""

    low: float
    high: float
    log: bool

    def scaled(self, numbers: Any) -> Any:
        np = arrays.numpy_namespace()
        numbers = np.asarray(numbers, "float64")
        if not self.log:
            return numbers
        with arrays.quiet():
            return np.log10(np.where(numbers > 0, numbers, np.nan))

    def rounded(self, most: int) -> _Axis:
        """The axis to the next ticks, where they are near."""
        step, near = self._step(most), _NEAR * (self.high - self.low)
        low, high = math.floor(self.low / step) * step, math.ceil(self.high / step) * step
        return _Axis(
            low if self.low - low <= near else self.low, high if high - self.high <= near else self.high, self.log
        )

    def centres(self, count: int) -> Any:
        """The numbers at the middles of so many characters."""
        return arrays.numpy_namespace().linspace(self.low, self.high, count)

    def _step(self, most: int) -> float:
        step = (self.high - self.low) / most
        size = 10.0 ** math.floor(math.log10(step))
        step = size * next(r for r in _ROUND if r * size >= step * (1 - 1e-9))
        return max(1.0, step) if self.log else step

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """Round numbers along the axis, and their texts."""
        step = self._step(most)
        places = [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]
        if self.log and len(places) < 2:
            places = [self.low, self.high]
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        return places, [_power(p) if self.log else _decimal(p, digits) for p in places]


def _power(place: float) -> str:
    return f"{10**place:.3g}" if -4 <= place <= 5 or place != round(place) else f"1e{round(place)}"


def _decimal(number: float, digits: int) -> str:
    if number and not 1e-4 <= abs(number) < 1e7:
        return f"{number:.6g}"
    return f"{number + 0.0:.{digits}f}"


class _Drawing:
    def __init__(self, chart: Chart, style: Style) -> None:
        self.plotext = _needed()
        self.chart = chart
        self.style = style
        least, part, most = _HEIGHT
        self.columns = min(max(_WIDTH[0], style.columns), _WIDTH[1])
        self.rows = min(max(least, round(self.columns * part)), most)
        self.x, self.y = self._axis("x"), self._axis("y").rounded(_TICKS)
        # What each layer is drawn with.
        self.keys: list[tuple[str, str, Any]] = []
        lines = sum(isinstance(layer, Line) for layer in chart.layers)
        self.fine = style.unicode and (style.colors or lines < 2)

    def text(self) -> str:
        figure = self.figure = self.plotext.figure
        self.plotext.terminal.limit(False, False)
        figure.clear()
        try:
            figure.theme("colorless")
            figure.plot_size(self.columns, self.rows)
            self._frame()
            for layer in self.chart.layers:
                self._layer(layer)
            drawn = figure.build().string(colorless=not self.style.colors)
        finally:
            figure.clear()
        lines = [line.rstrip() for line in drawn.rstrip("\n").split("\n")]
        return "\n".join([*lines, *self._legend()]) + "\n"

    def _frame(self) -> None:
        self.figure.title(self.chart.title or None)
        for name, axis, title, most in (("x", self.x, self.chart.x, _TICKS), ("y", self.y, self.chart.y, _TICKS)):
            self.figure.label(title, name)
            ruler = self.figure.ruler(name)
            ruler.lim(axis.low, axis.high)
            ruler.ticks(*axis.ticks(most))

    def _axis(self, name: str) -> _Axis:
        np = arrays.numpy_namespace()
        log = name in self.chart.log
        if name == "y" and self.chart.y_limits is not None:
            low, high = self.chart.y_limits
            return _Axis(math.log10(low) if log else low, math.log10(high) if log else high, log)
        axis = _Axis(0.0, 1.0, log)
        found = [np.ravel(axis.scaled(numbers)) for numbers in _numbers(self.chart, name)]
        numbers = np.concatenate([n[np.isfinite(n)] for n in found] or [np.zeros(1)])
        if not numbers.size:
            return axis
        low, high = float(numbers.min()), float(numbers.max())
        if low == high:
            room = abs(low) / 2 or 1.0
            low, high = low - room, high + room
        return _Axis(low, high, log)

    # --- layers

    def _layer(self, layer: Any) -> None:
        if isinstance(layer, Line):
            self._line(layer)
        elif isinstance(layer, Points):
            self._points(layer)
        elif isinstance(layer, Band):
            self._line(Line(layer.label, layer.x, layer.low), "." if not self.style.unicode else "·")
            self._put(layer.x, layer.high, self.keys[-1][1], self.keys[-1][2], connected=True)
        else:
            self._field(layer)

    def _next(self, character: str | None) -> tuple[str, Any]:
        number = len(self.keys)
        pixel = self.plotext.pixel(_COLORS[number % len(_COLORS)]) if self.style.colors else None
        return character or ("braille" if self.fine else _CHARACTERS[number % len(_CHARACTERS)]), pixel

    def _line(self, line: Line, character: str | None = None) -> None:
        symbol, pixel = self._next(character)
        self.keys.append((line.label, symbol, pixel))
        self._put(line.x, line.y, symbol, pixel, connected=True)

    def _points(self, points: Points) -> None:
        if len(points.x) > _MOST_POINTS:
            self._density(points)
            return
        symbol, pixel = self._next("•" if self.style.unicode else "o")
        self.keys.append((points.label, symbol, pixel))
        self._put(points.x, points.y, symbol, pixel, connected=False)

    def _put(self, x: Any, y: Any, symbol: str, pixel: Any, *, connected: bool) -> None:
        """Draw what is seen of points and of the lines between them. The library must be given no others."""
        x, y = self.x.scaled(x), self.y.scaled(y)
        if connected:
            x, y, begins = clipped(x, y, self.y.low, self.y.high)
        else:
            inside = (x >= self.x.low) & (x <= self.x.high) & (y >= self.y.low) & (y <= self.y.high)
            x, y, begins = x[inside], y[inside], []
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
        """How many characters there are within the frame."""
        _, labels = self.y.ticks(_TICKS)
        beside = max(map(len, labels), default=0) + 2
        below = 4 + bool(self.chart.title)
        return max(4, self.columns - beside), max(4, self.rows - below)

    def _density(self, points: Points) -> None:
        """Draw how many points there are at each character."""
        np = arrays.numpy_namespace()
        _, pixel = self._next(None)
        cells = self._cells()
        places = []
        for axis, numbers, count in zip((self.x, self.y), (points.x, points.y), cells):
            with arrays.quiet():
                places.append((axis.scaled(numbers) - axis.low) / (axis.high - axis.low) * (count - 1))
        seen = np.isfinite(places[0]) & np.isfinite(places[1])
        for place, count in zip(places, cells):
            seen[seen] &= (place[seen] > -0.5) & (place[seen] < count - 0.5)
        columns, rows = (np.rint(place[seen]).astype(int) for place in places)
        counts = np.bincount(rows * cells[0] + columns, minlength=cells[0] * cells[1]).reshape(cells[::-1])
        most = int(counts.max())
        shade = np.ceil(np.log1p(counts) / math.log1p(most or 1) * len(_SHADES)).astype(int) - 1
        self._shades(shade, [pixel] * len(_SHADES), _SHADES)
        self.keys.append((f"{points.label}: 1 to {most:,} of {len(points.x):,} points", _SHADES, pixel))

    def _shades(self, shade: Any, pixels: Sequence[Any], symbols: str) -> None:
        """Draw a symbol at each character that has the number of one, `[rows, columns]`."""
        np = arrays.numpy_namespace()
        x, y = np.meshgrid(self.x.centres(shade.shape[1]), self.y.centres(shade.shape[0]))
        for number, (symbol, pixel) in enumerate(zip(symbols, pixels)):
            taken = shade == number
            if taken.any():
                marker = self.plotext.marker(symbol, pixel)
                self.figure.draw(self.figure.signal(x[taken].tolist(), y[taken].tolist(), marker=marker))

    def _field(self, field: Field) -> None:
        np = arrays.numpy_namespace()
        columns, rows = self._cells()
        finite = field.z[np.isfinite(field.z)]
        low, high = field.limits or (float(finite.min()), float(finite.max()))
        places = [np.rint(np.linspace(0, size - 1, n)).astype(int) for size, n in zip(field.z.shape, (rows, columns))]
        shade = _levels(field.z[np.ix_(*places)], low, high)
        pixels = [self.plotext.pixel(color) if self.style.colors else None for color in _HEIGHTS]
        symbols = "█" * len(_SHADES) if self.style.colors and self.style.unicode else _SHADES
        self._shades(shade, pixels, symbols)
        if field.arrows is not None:
            self._arrows(field.arrows, shade)
        self.keys.append((f"{field.label}: {low:.4g} to {high:.4g}", symbols, pixels))

    def _arrows(self, arrows_: Arrows, shade: Any) -> None:
        """Draw arrows uphill as it is seen, where a character is twice as high as it is wide."""
        np = arrays.numpy_namespace()
        rows, columns = shade.shape
        dx = arrows_.dx * (self.x.high - self.x.low) / columns
        dy = arrows_.dy * (self.y.high - self.y.low) / rows / 2
        seen = np.isfinite(dx) & np.isfinite(dy) & ((dx != 0) | (dy != 0))
        for numbers, count, every in ((arrows_.x, columns, _EVERY[0]), (arrows_.y, rows, _EVERY[1])):
            places = np.unique(numbers)
            seen &= np.isin(numbers, places[:: max(1, math.ceil(places.size * every / count))])
        eighth = np.rint(np.arctan2(dy, dx) / (math.pi / 4)).astype(int, copy=False) % 8
        at = [
            np.rint((n - axis.low) / (axis.high - axis.low) * (count - 1)).astype(int)
            for n, axis, count in ((arrows_.y, self.y, rows), (arrows_.x, self.x, columns))
        ]
        for number, symbol in enumerate(_ARROWS if self.style.unicode else _PLAIN_ARROWS):
            for level in np.unique(shade[tuple(at)]):
                taken = seen & (eighth == number) & (shade[tuple(at)] == level)
                self._put(arrows_.x[taken], arrows_.y[taken], symbol, self._on(int(level)), connected=False)

    def _on(self, level: int) -> Any:
        """The colour of an arrow, and behind it that of a height."""
        return self.plotext.pixel("white", _HEIGHTS[level]) if self.style.colors and level >= 0 else None

    def _legend(self) -> Iterator[str]:
        """Lines that say what is drawn with what, where that is not plain."""
        if len(self.keys) < 2 and not any(len(symbol) > 1 and symbol != "braille" for _, symbol, _ in self.keys):
            return
        line, length = "", 0
        for label, symbol, pixel in self.keys:
            shown = "──" if symbol == "braille" else symbol
            width = len(shown) + 1 + len(label)
            if line and length + 3 + width > self.columns:
                yield line
                line, length = "", 0
            line += f"{'   ' if line else '  '}{self._painted(shown, pixel)} {label}"
            length += 3 + width
        yield line

    def _painted(self, shown: str, pixel: Any) -> str:
        """A text in its colour, or each of its characters in one of several."""
        if not self.style.colors or pixel is None:
            return shown
        if isinstance(pixel, list):
            return "".join(map(self._painted, shown, pixel))
        return str(self.plotext.colorize(shown).fill(pixel).string())


def _levels(z: Any, low: float, high: float) -> Any:
    """Which of the shades each number has, -1 where it is nan."""
    np = arrays.numpy_namespace()
    with arrays.quiet():
        level = np.floor((z - low) / ((high - low) or 1.0) * len(_SHADES))
    return np.where(np.isfinite(z), np.clip(np.nan_to_num(level), 0, len(_SHADES) - 1), -1).astype(int)


def _numbers(chart: Chart, name: str) -> Iterator[Any]:
    for layer in chart.layers:
        if name == "x" or isinstance(layer, (Line, Points, Field)):
            yield getattr(layer, name)
        else:
            yield layer.low
            yield layer.high


def clipped(x: Any, y: Any, low: float, high: float) -> tuple[Any, Any, Sequence[int]]:
    """The parts of a line through points that lie between two heights, and where each part begins; nan is a gap."""
    np = arrays.numpy_namespace()
    found: list[tuple[float, float]] = []
    begins: list[int] = []
    last: tuple[float, float] | None = None
    for start, end in zip(zip(x[:-1].tolist(), y[:-1].tolist()), zip(x[1:].tolist(), y[1:].tolist())):
        piece = _within(start, end, low, high)
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


def _within(start: tuple[float, float], end: tuple[float, float], low: float, high: float) -> Any:
    """The part of a piece of a line between two heights, None where there is none."""
    (a, f), (b, g) = start, end
    if math.isnan(f) or math.isnan(g) or max(f, g) < low or min(f, g) > high:
        return None

    def at(height: float) -> tuple[float, float]:
        return a + (b - a) * ((height - f) / (g - f)), height

    ends = [at(low) if h < low else at(high) if h > high else (p, h) for p, h in ((a, f), (b, g))]
    return ends[0], ends[1]
