"""Curves as points: as close together as the curve bends, to the ends of where it is defined, with gaps where it jumps.

Between two points the exact derivatives at both say how far the curve goes: by the trapezoidal rule with its
correction (Euler and Maclaurin), f(b) - f(a) = h/2 (f'(a) + f'(b)) - h²/12 (f''(b) - f''(a)) + O(h⁵). An interval of
which that is not true is halved, and so is one in which the curve leaves its chord. What is steep comes right in the
end; what is not true of two neighbouring numbers either is a jump, or a pole, where f' h stays as large as the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradcli import arrays

# A function's values and its first and second derivatives at points `[n]`, nan where there are none.
Evaluate = Callable[[Any], tuple[Any, Any, Any]]

# Intervals at the beginning, and points at most.
_INTERVALS = 128
MOST_EVALUATIONS = 2**15
# How far a curve may be from what is drawn, by the height of the picture.
_TOLERANCE = 1e-3
# Intervals of this part of the range are no wider than a dot.
_DOT = 2.0**-12
# Halvings after which an interval may hold a pole, and after which it is not halved again.
_SUSPECT, _DEEPEST = 12, 46
# What f' h is at a pole, by the height of the picture, or more; at a jump it is nothing.
_UNBOUNDED = 1e-3
# How much beside a pole is no measure of the height of a picture: by the range, and by the distance to the next pole.
_BESIDE, _BETWEEN = 0.05, 0.1
# Poles that are closer by the range are one.
_ONE_POLE = 5e-5
# Points at a pole are kept so many heights beyond the picture.
_BEYOND = 3.0
# Points between gaps are left out where they are closer by the range, and those on a line, by the height of the picture.
_CRUMB, _IDLE = 1e-9, 1e-4
_PASSES = 4
# What is greater is infinite: the height of a picture is a number too.
_GIANT = 1e305
# The part of its numbers between which a curve is seen that has more poles than could be told apart.
_USUAL = (0.05, 0.95)
# What is left free above and below a curve that is cut at a pole.
_MARGIN = 0.05


class SampledCurve(NamedTuple):
    """The points of a curve, `[n]`, nan in its gaps, and, where it has poles, the ends of the y axis that show it."""

    x: Any
    y: Any
    view: tuple[float, float] | None


def refined(evaluate: Evaluate, low: float, high: float, most: int = MOST_EVALUATIONS) -> SampledCurve:
    """The curve of a function from `low` to `high`, by at most so many evaluations."""
    mesh = _Mesh(evaluate, low, high)
    while mesh.x.size < most and (mesh.halve(most - mesh.x.size) or mesh.settle()):
        pass
    return mesh.curve()


class _Mesh:
    """Points in their order, and of each interval between two of them how often it has been halved."""

    def __init__(self, evaluate: Evaluate, low: float, high: float) -> None:
        np = self.np = arrays.numpy_namespace()
        self.evaluate = evaluate
        self.range = float(high - low)
        self.x = np.linspace(low, high, _INTERVALS + 1)
        self.f, self.f1, self.f2 = self._values(self.x)
        self.depth = np.zeros(_INTERVALS, "int64")
        # After so many halvings an interval that is not known counts as one with a pole.
        self.patience = _SUSPECT

    def _values(self, x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = self.evaluate(x)
        return self.np.where(self.np.abs(f) > _GIANT, self.np.copysign(self.np.inf, f), f), f1, f2

    def settle(self) -> bool:
        """From now on take for poles what no halving resolves, and say whether it was otherwise."""
        earlier, self.patience = self.patience, _DEEPEST
        return earlier < _DEEPEST

    def halve(self, most: int) -> bool:
        """Halve the intervals in which the curve is not known well enough, and say whether there were any."""
        np = self.np
        with arrays.quiet():
            wrong = self._unknown(self._seen()[0])
        middle = self._middle()
        places = np.flatnonzero(wrong & ~self._last())
        if not places.size:
            return False
        # The widest first.
        places = np.sort(places[np.argsort(self.depth[places], kind="stable")][:most])
        self.depth[places] += 1
        self.depth = np.insert(self.depth, places, self.depth[places])
        found = self._values(middle[places])
        self.x = np.insert(self.x, places + 1, middle[places])
        self.f, self.f1, self.f2 = (
            np.insert(old, places + 1, new) for old, new in zip((self.f, self.f1, self.f2), found)
        )
        return True

    def _middle(self) -> Any:
        return self.x[:-1] + self.np.diff(self.x) / 2

    def _last(self) -> Any:
        """The intervals that are not halved."""
        middle = self._middle()
        return (self.depth >= _DEEPEST) | (middle <= self.x[:-1]) | (middle >= self.x[1:])

    def _unknown(self, view: tuple[float, float]) -> Any:
        """The intervals in which the curve is not what their ends say."""
        np = self.np
        low, high = view
        here = np.isfinite(self.f)
        # Of those in which the curve ends, its end is looked for.
        ending = here[:-1] != here[1:]
        tolerance = np.full(self.depth.shape, _TOLERANCE * (high - low))
        outside = np.maximum(self.f - high, low - self.f)
        unseen = (np.sign(self.f[:-1] - low) == np.sign(self.f[1:] - low)) & (np.minimum(outside[:-1], outside[1:]) > 0)
        tolerance = np.where(unseen, np.maximum(outside[:-1], outside[1:]) / 2, tolerance)
        fine = np.diff(self.x) <= _DOT * self.range
        error, bend = self._error(), self._bend()
        told = np.isfinite(error) & np.isfinite(bend)
        known = told & (error <= tolerance) & (fine | (bend <= tolerance))
        # Where derivatives are infinite, or not those of the value, small steps of the curve are enough.
        known |= (fine | ~told) & (np.abs(np.diff(self.f)) <= tolerance)
        return ending | (here[:-1] & here[1:] & ~known)

    def _error(self) -> Any:
        """How far the curve goes beyond what its derivatives say."""
        np = self.np
        h = np.diff(self.x)
        said = h / 2 * (self.f1[:-1] + self.f1[1:]) - h**2 / 12 * np.diff(self.f2)
        return np.abs(np.diff(self.f) - said)

    def _bend(self) -> Any:
        """How far the curve leaves its chord."""
        np = self.np
        return np.diff(self.x) ** 2 / 8 * np.maximum(np.abs(self.f2[:-1]), np.abs(self.f2[1:]))

    # --- what is to be seen

    def _seen(self) -> tuple[tuple[float, float], Any]:
        """The least and the greatest number of the curve beside its poles, and where these are."""
        np = self.np
        here = np.isfinite(self.f)
        view, poles = _ends(self.f[here]), self.x[:0]
        while True:
            # Beside a strong pole a weak one is seen when the strong one is known.
            found = self._poles(view)
            if found.size <= poles.size:
                return view, poles
            poles = found
            kept = here & ~self._beside(poles)
            if not kept.any():
                return view, poles
            view = _ends(self.f[kept])

    def _poles(self, view: tuple[float, float]) -> Any:
        """Where the curve is not bounded, as far as it is known."""
        np = self.np
        deep = (self.depth >= self.patience) | self._last()
        deep[deep] = self._unknown(view)[deep]
        here = np.isfinite(self.f)
        # The slope of a square root is infinite where it ends, and its value is not.
        slope = np.where(here & np.isfinite(self.f1), np.abs(self.f1), 0.0)
        rise = np.diff(self.x) * np.maximum(slope[:-1], slope[1:])
        infinite = np.isinf(self.f)
        rises = (rise > _UNBOUNDED * (view[1] - view[0])) | infinite[:-1] | infinite[1:]
        return self.x[:-1][deep & (here[:-1] | here[1:]) & rises]

    def _beside(self, poles: Any) -> Any:
        """The points that are beside a pole."""
        np = self.np
        if not poles.size:
            return np.zeros(self.x.shape, "bool")
        poles = poles[np.r_[True, np.diff(poles) > _ONE_POLE * self.range]]
        free = np.r_[np.inf, np.diff(poles), np.inf]
        width = np.minimum(_BESIDE * self.range, _BETWEEN * free)
        # The pole to the right of each point, and the one to its left.
        right = np.searchsorted(poles, self.x)
        before = np.r_[poles, np.inf][right] - self.x < width[right]
        after = self.x - np.r_[-np.inf, poles][right] < width[right]
        return after | before

    def curve(self) -> SampledCurve:
        np = self.np
        with arrays.quiet():
            (low, high), poles = self._seen()
            if self.patience < _DEEPEST and poles.size:
                low, high = (float(q) for q in np.quantile(self.f[np.isfinite(self.f)], _USUAL))
            gaps = np.flatnonzero(self._gaps((low, high)))
        x = np.insert(self.x, gaps + 1, self._middle()[gaps])
        y = np.insert(np.where(np.isfinite(self.f), self.f, np.nan), gaps + 1, np.nan)
        x, y = _without_crumbs(x, y, _CRUMB * self.range)
        x, y = _without_idle(x, y, self.range / _INTERVALS, _IDLE * (high - low))
        if not poles.size:
            return SampledCurve(*_with_single_gaps(x, y), None)
        kept = _near(y, low, high)
        margin = _MARGIN * (high - low) or 1.0
        return SampledCurve(*_with_single_gaps(x[kept], y[kept]), (low - margin, high + margin))

    def _gaps(self, view: tuple[float, float]) -> Any:
        """The intervals in which the curve is broken: they cannot be halved, or both ends rise and it falls."""
        np = self.np
        unknown = self._unknown(view)
        rising, falling = self.f1 > 0, self.f1 < 0
        up = np.diff(self.f) > 0
        backwards = (rising[:-1] & rising[1:] & ~up) | (falling[:-1] & falling[1:] & up)
        both = np.isfinite(self.f[:-1]) & np.isfinite(self.f[1:])
        return unknown & both & (self._last() | backwards)


def _ends(numbers: Any) -> tuple[float, float]:
    return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)


def _without_crumbs(x: Any, y: Any, width: float) -> tuple[Any, Any]:
    """The points without those between two gaps that are closer than this: a pole has one gap."""
    np = arrays.numpy_namespace()
    here = np.isfinite(y)
    piece = np.cumsum(np.diff(here, prepend=False))
    first, last = np.searchsorted(piece, piece), np.searchsorted(piece, piece, side="right") - 1
    wide = here & (x[last] - x[first] > width)
    return x, (np.where(wide, y, np.nan) if wide.any() else y)


def _without_idle(x: Any, y: Any, width: float, tolerance: float) -> tuple[Any, Any]:
    """The points without those that lie on the line between their neighbours, no further apart than `width`."""
    np = arrays.numpy_namespace()
    for start in (1, 2) * _PASSES:
        a, b, c = x[:-2], x[1:-1], x[2:]
        with arrays.quiet():
            on_line = np.abs(y[:-2] + (b - a) / (c - a) * (y[2:] - y[:-2]) - y[1:-1]) <= tolerance
        idle = np.flatnonzero(on_line & (c - a <= width * (1 + 1e-9))) + 1
        # Of two neighbours one stays.
        idle = idle[idle % 2 == start % 2]
        x, y = np.delete(x, idle), np.delete(y, idle)
    return x, y


def _with_single_gaps(x: Any, y: Any) -> tuple[Any, Any]:
    """The points with one nan for each gap, and none at the ends."""
    np = arrays.numpy_namespace()
    gap = np.isnan(y)
    kept = ~gap
    kept[1:] |= gap[1:] & ~gap[:-1]
    here = np.flatnonzero(~gap)
    kept[here[-1] + 1 if here.size else 0 :] = False
    return x[kept], y[kept]


def _near(y: Any, low: float, high: float) -> Any:
    """The points without those that lie far beyond a picture between others that do, on the same side of it."""
    np = arrays.numpy_namespace()
    far = np.where(y > high + _BEYOND * (high - low), 1, np.where(y < low - _BEYOND * (high - low), -1, 0))
    before, behind = np.r_[far[:1], far[:-1]], np.r_[far[1:], far[-1:]]
    return (far == 0) | (far != before) | (far != behind)
