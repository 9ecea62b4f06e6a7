"""Adaptive sampling of a curve: points as close together as it bends, up to the ends of its domain, with gaps at jumps.

The exact derivatives at two points predict how the curve changes between them, by the trapezoidal rule with its
correction (Euler and Maclaurin): f(b) - f(a) = h/2 (f'(a) + f'(b)) - h²/12 (f''(b) - f''(a)) + O(h⁵). An interval is
halved where this prediction fails or the curve leaves its chord. At a steep slope the prediction holds eventually.
Where it still fails between neighbouring floats, there is a jump, or a pole if f' h stays as large as the picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.named_tuples import NamedTuple

# Computes values, first and second derivatives at points `[n]`, nan where there are none.
Evaluate = Callable[[Any], tuple[Any, Any, Any]]

# The initial number of intervals, and the upper bound of points.
_INTERVALS = 128
MOST_EVALUATIONS = 2**15
# The deviation of the drawn polyline from the curve that is allowed, as a share of the height of the picture.
_TOLERANCE = 1e-3
# A smaller deviation is a rounding error, as a share of the largest value.
_ROUNDING = 2.0**-49
# Intervals of at most this share of the range are narrower than a dot.
_DOT = 2.0**-12
# The number of halvings after which an interval may contain a pole, and after which it is not halved again.
_SUSPECT, _DEEPEST = 12, 46
# The least f' h at a pole, as a share of the height of the picture; at a jump it tends to 0.
_UNBOUNDED = 1e-3
# Points near a pole do not count for the height of the picture: up to the share `_BESIDE` of the range, and `_BETWEEN`
# of the distance to the next pole.
_BESIDE, _BETWEEN = 0.05, 0.1
# Poles within this share of the range count as one.
_ONE_POLE = 5e-5
# Points near a pole are kept up to this many heights beyond the picture.
_BEYOND = 3.0
# Pieces between gaps that are narrower than the share `_MIN_PIECE` of the range are dropped, and so are points that are
# within the share `_COLLINEAR` of the height of the picture from a line through their neighbours.
_MIN_PIECE, _COLLINEAR = 1e-9, 1e-4
_PASSES = 4
# Greater absolute values count as infinite, so that the height of the picture does not overflow.
_GIANT = 1e305
# The quantiles between which a curve is shown that has too many poles to be resolved.
_USUAL = (0.05, 0.95)
# The margin above and below a curve that is cut at a pole, as a share of the height.
_MARGIN = 0.05


class SampledCurve(NamedTuple):
    """The points `[n]` of a curve, nan in its gaps, and the limits `view` of the y axis, None where it has no poles."""

    x: Any
    y: Any
    view: tuple[float, float] | None


def refined(
    evaluate: Evaluate, low: float, high: float, most: int = MOST_EVALUATIONS, rounding: float = 0.0
) -> SampledCurve:
    """The curve of a function from `low` to `high`, by at most `most` evaluations. Its values have errors up to
    `rounding`, if these are not small compared to the values themselves."""
    mesh = _Mesh(evaluate, low, high, rounding)
    while mesh.x.size < most and (mesh.halve(most - mesh.x.size) or mesh.be_patient()):
        pass
    return mesh.curve()


class _Mesh:
    """Sample points in ascending order, and how often each interval between two of them was halved."""

    def __init__(self, evaluate: Evaluate, low: float, high: float, rounding: float) -> None:
        np = self.np = arrays.numpy_namespace()
        self.evaluate = evaluate
        self.range = float(high - low)
        self.rounding = rounding
        self.x = np.linspace(low, high, _INTERVALS + 1)
        self.f, self.f1, self.f2 = self._values(self.x)
        self.depth = np.zeros(_INTERVALS, "int64")
        # The number of halvings after which an interval that is not resolved counts as one with a pole.
        self.depth_limit = _SUSPECT

    def _values(self, x: Any) -> tuple[Any, Any, Any]:
        f, f1, f2 = self.evaluate(x)
        return self.np.where(self.np.abs(f) > _GIANT, self.np.copysign(self.np.inf, f), f), f1, f2

    def be_patient(self) -> bool:
        """Accept intervals as poles only after the most halvings, and say whether this is a change."""
        earlier, self.depth_limit = self.depth_limit, _DEEPEST
        return earlier < _DEEPEST

    def halve(self, most: int) -> bool:
        """Halve the intervals that are not resolved, at most `most` of them, and say whether there were any."""
        np = self.np
        with arrays.quiet():
            wrong = self._unknown(self._seen()[0])
        middle = self._middle()
        places = np.flatnonzero(wrong & ~self._last())
        if not places.size:
            return False
        # Prefer the widest intervals.
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
        """A mask of the intervals that cannot be halved."""
        middle = self._middle()
        return (self.depth >= _DEEPEST) | (middle <= self.x[:-1]) | (middle >= self.x[1:])

    def _unknown(self, view: tuple[float, float]) -> Any:
        """A mask of the intervals in which the values at the ends do not determine the curve."""
        np = self.np
        low, high = view
        here = np.isfinite(self.f)
        # Intervals in which the curve begins or ends are halved to find this point.
        ending = here[:-1] != here[1:]
        least = max(_TOLERANCE * (high - low), _ROUNDING * max(abs(low), abs(high)), self.rounding)
        tolerance = np.full(self.depth.shape, least)
        outside = np.maximum(self.f - high, low - self.f)
        unseen = (np.sign(self.f[:-1] - low) == np.sign(self.f[1:] - low)) & (np.minimum(outside[:-1], outside[1:]) > 0)
        tolerance = np.where(unseen, np.maximum(outside[:-1], outside[1:]) / 2, tolerance)
        fine = np.diff(self.x) <= _DOT * self.range
        error, bend = self._error(), self._bend()
        told = np.isfinite(error) & np.isfinite(bend)
        known = told & (error <= tolerance) & (fine | (bend <= tolerance))
        # Where derivatives are infinite or inconsistent with the values, small differences of the values suffice.
        known |= (fine | ~told) & (np.abs(np.diff(self.f)) <= tolerance)
        return ending | (here[:-1] & here[1:] & ~known)

    def _error(self) -> Any:
        """The difference between the change of the curve and the prediction of its derivatives, by interval."""
        np = self.np
        h = np.diff(self.x)
        said = h / 2 * (self.f1[:-1] + self.f1[1:]) - h**2 / 12 * np.diff(self.f2)
        return np.abs(np.diff(self.f) - said)

    def _bend(self) -> Any:
        """A bound of the distance of the curve from its chord, by interval."""
        np = self.np
        return np.diff(self.x) ** 2 / 8 * np.maximum(np.abs(self.f2[:-1]), np.abs(self.f2[1:]))

    # --- what is to be seen

    def _seen(self) -> tuple[tuple[float, float], Any]:
        """The least and the greatest value of the curve away from its poles, and the positions of the poles."""
        np = self.np
        here = np.isfinite(self.f)
        view, poles = _ends(self.f[here]), self.x[:0]
        while True:
            # A weak pole near a strong one is only found once the strong one is known.
            found = self._poles(view)
            if found.size <= poles.size:
                return view, poles
            poles = found
            kept = here & ~self._beside(poles)
            if not kept.any():
                return view, poles
            view = _ends(self.f[kept])

    def _poles(self, view: tuple[float, float]) -> Any:
        """The positions of the poles that have been found."""
        np = self.np
        deep = (self.depth >= self.depth_limit) | self._last()
        deep[deep] = self._unknown(view)[deep]
        here = np.isfinite(self.f)
        # A square root has an infinite slope at the end of its domain but a finite value, and no pole.
        slope = np.where(here & np.isfinite(self.f1), np.abs(self.f1), 0.0)
        rise = np.diff(self.x) * np.maximum(slope[:-1], slope[1:])
        infinite = np.isinf(self.f)
        rises = (rise > _UNBOUNDED * (view[1] - view[0])) | infinite[:-1] | infinite[1:]
        return self.x[:-1][deep & (here[:-1] | here[1:]) & rises]

    def _beside(self, poles: Any) -> Any:
        """A mask of the points near a pole."""
        np = self.np
        if not poles.size:
            return np.zeros(self.x.shape, "bool")
        poles = poles[np.r_[True, np.diff(poles) > _ONE_POLE * self.range]]
        free = np.r_[np.inf, np.diff(poles), np.inf]
        width = np.minimum(_BESIDE * self.range, _BETWEEN * free)
        # The poles to the right and to the left of each point.
        right = np.searchsorted(poles, self.x)
        before = np.r_[poles, np.inf][right] - self.x < width[right]
        after = self.x - np.r_[-np.inf, poles][right] < width[right]
        return after | before

    def curve(self) -> SampledCurve:
        np = self.np
        with arrays.quiet():
            (low, high), poles = self._seen()
            if self.depth_limit < _DEEPEST and poles.size:
                low, high = (float(q) for q in np.quantile(self.f[np.isfinite(self.f)], _USUAL))
            gaps = np.flatnonzero(self._gaps((low, high)))
        x = np.insert(self.x, gaps + 1, self._middle()[gaps])
        y = np.insert(np.where(np.isfinite(self.f), self.f, np.nan), gaps + 1, np.nan)
        x, y = _without_short_pieces(x, y, _MIN_PIECE * self.range)
        x, y = _without_collinear(x, y, self.range / _INTERVALS, _COLLINEAR * (high - low))
        if not poles.size:
            return SampledCurve(*_with_single_gaps(x, y), None)
        kept = _near(y, low, high)
        margin = _MARGIN * (high - low) or 1.0
        return SampledCurve(*_with_single_gaps(x[kept], y[kept]), (low - margin, high + margin))

    def _gaps(self, view: tuple[float, float]) -> Any:
        """A mask of the intervals in which the curve is broken: they are not resolved and cannot be halved, or the
        curve falls between two rising ends or rises between two falling ones."""
        np = self.np
        unknown = self._unknown(view)
        rising, falling = self.f1 > 0, self.f1 < 0
        up = np.diff(self.f) > 0
        backwards = (rising[:-1] & rising[1:] & ~up) | (falling[:-1] & falling[1:] & up)
        both = np.isfinite(self.f[:-1]) & np.isfinite(self.f[1:])
        return unknown & both & (self._last() | backwards)


def _ends(numbers: Any) -> tuple[float, float]:
    return (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)


def _without_short_pieces(x: Any, y: Any, width: float) -> tuple[Any, Any]:
    """The points without pieces between gaps that are at most `width` wide, so that a pole has one gap."""
    np = arrays.numpy_namespace()
    here = np.isfinite(y)
    piece = np.cumsum(np.diff(here, prepend=False))
    first, last = np.searchsorted(piece, piece), np.searchsorted(piece, piece, side="right") - 1
    wide = here & (x[last] - x[first] > width)
    return x, (np.where(wide, y, np.nan) if wide.any() else y)


def _without_collinear(x: Any, y: Any, width: float, tolerance: float) -> tuple[Any, Any]:
    """The points without those that are on the line between their neighbours, where these are at most `width` apart."""
    np = arrays.numpy_namespace()
    for start in (1, 2) * _PASSES:
        a, b, c = x[:-2], x[1:-1], x[2:]
        with arrays.quiet():
            on_line = np.abs(y[:-2] + (b - a) / (c - a) * (y[2:] - y[:-2]) - y[1:-1]) <= tolerance
        idle = np.flatnonzero(on_line & (c - a <= width * (1 + 1e-9))) + 1
        # A pass drops only one of two adjacent points.
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
    """A mask of the points without those far beyond the picture whose neighbours are far beyond it on the same side."""
    np = arrays.numpy_namespace()
    far = np.where(y > high + _BEYOND * (high - low), 1, np.where(y < low - _BEYOND * (high - low), -1, 0))
    before, behind = np.r_[far[:1], far[:-1]], np.r_[far[1:], far[-1:]]
    return (far == 0) | (far != before) | (far != behind)
