"""Integrals over finite and infinite intervals, with singularities inside and at the ends.

Smooth panels are left to `quadrature`. What it cannot refine is a point: around it, panels that shrink geometrically
are summed, and the sum is extrapolated by Wynn's epsilon algorithm. Tails that oscillate are summed between zeros.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.functionals.extrapolation import limit_of_sums
from gradcli.functionals.quadrature import FIRST_PANELS, Integrand, Panels, Tolerance, evaluated, refined
from gradcli.functionals.resolution import Bounds, resolving_panels

# A panel next to a singularity is this number of times smaller than its neighbour.
_RATIO = 2.0
# The number of panels beside a singularity at 0, to which floats come arbitrarily close, and the negative binary
# logarithm of the distance from other ones, relative to the place, up to which distances have a few digits.
_MOST_GRADES, _CLOSEST = 60, 34
_FEWEST_GRADES = 6
# Magnitudes of panels beside a singularity that do not shrink by more than this for as many panels: it diverges.
_SHRINKING, _LAST = 1 - 1e-6, 8
# The number of half-waves of an oscillating tail that are summed, and the number of places at which it is examined.
_HALF_WAVES, _EXAMINED = 48, 4_000


class Integral(NamedTuple):
    """An integral with its error estimate, and where the integrand is at fault, if it is: the place and the reason."""

    value: float
    error: float
    size: float
    fault: str | None = None


class _Segment(NamedTuple):
    """A part of the line on which one integral is computed: u from `low` to `high`.

    The place is u itself if `direction` is 0, else `origin` + `direction` * (1/u - 1): a tail, which ends at u = 0.
    """

    row: int
    low: float
    high: float
    sign: float
    direction: float = 0.0
    origin: float = 0.0

    def place(self, u: float) -> float:
        if not self.direction:
            return u
        return self.direction * math.inf if u == 0 else self.origin + self.direction * (1 / u - 1)


def integrals(
    function: Integrand,
    low: Sequence[float],
    high: Sequence[float],
    points: Sequence[float],
    tolerance: Tolerance,
    bounds: Bounds | None = None,
) -> list[Integral]:
    """The integrals of `function` from each of `low` to that of `high`, split at `points`.

    Limits may be infinite, reversed and equal. With `bounds`, the panels are refined until the integrand cannot do much
    between its nodes. Raises LimitError past the budget of the run.
    """
    segments = [s for row, (a, b) in enumerate(zip(low, high)) for s in _segments(row, a, b, points)]
    return _Integration(function, bounds, segments, len(low), tolerance).integrals()


def _segments(row: int, a: float, b: float, points: Sequence[float]) -> list[_Segment]:
    if math.isnan(a) or math.isnan(b):
        return [_Segment(row, math.nan, math.nan, 1.0)]
    sign = -1.0 if a > b else 1.0
    a, b = min(a, b), max(a, b)
    inside = sorted(p for p in points if a < p < b)
    if a == -math.inf and b == math.inf and not inside:
        inside = [0.0]
    edges = [a, *inside, b]
    return [_segment(row, c, d, sign) for c, d in itertools.pairwise(edges) if c < d]


def _segment(row: int, a: float, b: float, sign: float) -> _Segment:
    if b == math.inf:
        return _Segment(row, 0.0, 1.0, sign, 1.0, a)
    if a == -math.inf:
        return _Segment(row, 0.0, 1.0, sign, -1.0, b)
    return _Segment(row, a, b, sign)


class _Integration:
    def __init__(
        self,
        function: Integrand,
        bounds: Bounds | None,
        segments: Sequence[_Segment],
        rows: int,
        tolerance: Tolerance,
    ) -> None:
        np = self.np = arrays.numpy_namespace()
        self.function, self.bounds = function, bounds
        self.segments, self.rows, self.tolerance = segments, rows, tolerance
        self.row = np.array([s.row for s in segments], int)
        self.direction = np.array([s.direction for s in segments])
        self.origin = np.array([s.origin for s in segments])

    def integrals(self) -> list[Integral]:
        np, count = self.np, len(self.segments)
        if not count:
            return [Integral(0.0, 0.0, 0.0)] * self.rows
        low, high = np.array([s.low for s in self.segments]), np.array([s.high for s in self.segments])
        edges = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, FIRST_PANELS + 1)
        edges[:, -1] = high
        number = np.repeat(np.arange(count), FIRST_PANELS)
        panels = number, edges[:, :-1].ravel(), edges[:, 1:].ravel()
        with np.errstate(all="ignore"):
            if self.bounds is not None:
                panels = resolving_panels(self._along, self._bounds_along, *panels)
            found = refined(self._along, *panels, count, self.tolerance)
            parts = [Integral(float(v), float(e), float(s)) for v, e, s in zip(found.value, found.error, found.size)]
            for segment in sorted({*found.left.row.tolist()}):
                parts[segment] = self._with_singularities(segment, parts[segment], found.left)
        return [self._total(row, parts) for row in range(self.rows)]

    def _along(self, u: Any, segment: Any) -> Any:
        """The integrand in the variable of the segments."""
        np = self.np
        direction = self.direction[segment]
        if not self.direction.any():
            return self.function(u, self.row[segment])
        tail = direction != 0
        v = np.where(tail, u, 1.0)
        place = np.where(tail, self.origin[segment] + direction * ((1.0 - v) / v), u)
        values = self.function(place, self.row[segment])
        return np.where(tail & (values != 0), values / v / v, values)

    def _bounds_along(self, low: Any, high: Any, segment: Any) -> tuple[Any, Any]:
        """The bounds of the integrand in the variable of the segments."""
        np = self.np
        assert self.bounds is not None
        direction = self.direction[segment]
        tail = direction != 0
        ends = [
            np.where(tail, self.origin[segment] + direction * ((1.0 - u) / np.where(tail, u, 1.0)), u)
            for u in (low, high)
        ]
        least, most = self.bounds(np.minimum(*ends), np.maximum(*ends), self.row[segment])
        nearest, farthest = np.where(tail, high, 1.0) ** -2, np.where(tail, low, 1.0) ** -2
        bounded = [np.where(x * f == 0, 0.0, x * f) for x, f in _outward(np, least, most, nearest, farthest)]
        return bounded[0], bounded[1]

    def _total(self, row: int, parts: Sequence[Integral]) -> Integral:
        own = [(s.sign, p) for s, p in zip(self.segments, parts) if s.row == row]
        fault = next((p.fault for _, p in own if p.fault), None)
        value = (
            math.fsum(sign * p.value for sign, p in own) if all(math.isfinite(p.value) for _, p in own) else math.nan
        )
        return Integral(value, sum(p.error for _, p in own), sum(p.size for _, p in own), fault)

    def _with_singularities(self, segment: int, found: Integral, left: Panels) -> Integral:
        """The integral over a segment: `found` over most of it, and what is around the panels that were left."""
        np = self.np
        own = left.chosen(left.row == segment)
        own = own.chosen(np.argsort(own.low))
        clusters = np.split(np.arange(len(own.low)), np.flatnonzero(own.low[1:] > own.high[:-1]) + 1)
        if self.segments[segment].direction and (len(clusters) > 1 or own.low[0] == 0.0):
            tail = self._tail(segment)
            if tail is not None:
                return tail
        if len(clusters) > _MOST_CLUSTERS:
            place = self.segments[segment].place(float(own.low[0]))
            return Integral(
                found.value + float(np.sum(own.value)),
                found.error + float(np.sum(own.error)),
                found.size + float(np.sum(own.size)),
                f"the integrand is no number at {place:.6g}" if np.isnan(own.value).any() else None,
            )
        for cluster in clusters:
            part = self._around(segment, float(own.low[cluster[0]]), float(own.high[cluster[-1]]))
            found = Integral(found.value + part.value, found.error + part.error, found.size + part.size, part.fault)
            if part.fault is not None:
                break
        return found

    def _around(self, segment: int, low: float, high: float) -> Integral:
        """The integral from `low` to `high`, between which there is a singularity."""
        whole = self.segments[segment]
        if low == whole.low:
            return self._beside(segment, low, high)
        if high == whole.high:
            return self._beside(segment, high, low)
        point = self._located(segment, low, high)
        left, right = self._beside(segment, point, low), self._beside(segment, point, high)
        return Integral(
            left.value + right.value, left.error + right.error, left.size + right.size, left.fault or right.fault
        )

    def _located(self, segment: int, low: float, high: float) -> float:
        """The place of a singularity, by bisection: the half with the larger error has it."""
        np = self.np
        rows = np.array([segment, segment])
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            first, second = evaluated(self._along, rows, np.array([low, middle]), np.array([middle, high])).error
            if not first <= second:
                high = middle
            else:
                low = middle
        return 0.5 * (low + high)

    def _beside(self, segment: int, point: float, far: float) -> Integral:
        """The integral between a singularity and a place at which the integrand is smooth."""
        np = self.np
        distance = abs(far - point)
        grades = _MOST_GRADES
        if point:
            grades = max(_FEWEST_GRADES, min(grades, _CLOSEST + int(math.log2(distance / abs(point)))))
        edges = point + (far - point) * _RATIO ** -np.arange(grades + 1.0)
        near, away = np.minimum(edges[1:], edges[:-1]), np.maximum(edges[1:], edges[:-1])
        # Closer to the point, the distance to it has fewer digits.
        digits = 4 * 2.0**-52 * abs(point) / np.abs(edges[1:] - point)
        found = refined(
            lambda u, _: self._along(u, np.full(len(u), segment)),
            np.arange(grades), near, away, grades, Tolerance(np.maximum(_OF_A_GRADE, digits), _ABSOLUTE),
        )  # fmt: skip
        value, error, size = found.whole()
        if not np.isfinite(value).all():
            place = self.segments[segment].place(float(edges[1 + int(np.argmin(np.isfinite(value)))]))
            return Integral(math.nan, math.inf, math.nan, f"the integrand is no number at {place:.6g}")
        place = self.segments[segment].place(point)
        if _diverges(np, value, size):
            return Integral(math.nan, math.inf, math.inf, f"the integral diverges at {place:.6g}")
        limit = limit_of_sums(value.tolist())
        return Integral(limit.value, limit.error + float(np.sum(error)), float(np.sum(size)))

    def _tail(self, segment: int) -> Integral | None:
        """The integral over a tail that oscillates; None for any other.

        An alternating series of its half-waves, which is extrapolated (I. M. Longman, Proc. Camb. Phil. Soc. 52 (1956),
        764).
        """
        np = self.np
        whole = self.segments[segment]
        row = np.array([whole.row])

        def along(t: Any, _: Any = None) -> Any:
            return self.function(t, np.repeat(row, len(t)))

        # The origin may be a singularity.
        start = whole.origin + whole.direction
        zeros = _zeros(np, along, start, whole.direction)
        if zeros is None:
            return None
        first = integrals(along, [whole.origin], [zeros[0]], (), self.tolerance)[0]
        if first.fault is not None:
            return first
        near, away = np.minimum(zeros[1:], zeros[:-1]), np.maximum(zeros[1:], zeros[:-1])
        count = len(near)
        value, error, size = refined(
            along, np.arange(count), near, away, count, Tolerance(_OF_A_GRADE, _ABSOLUTE)
        ).whole()
        waves = np.abs(value)
        if not np.isfinite(value).all() or waves[-_LAST:].min() > _SHRINKING * waves[:_LAST].max():
            place = "-inf" if whole.direction < 0 else "inf"
            return Integral(math.nan, math.inf, math.inf, f"the integral diverges at {place}")
        limit = limit_of_sums([whole.direction * first.value, *value.tolist()])
        return Integral(limit.value, limit.error + first.error + float(np.sum(error)), float(np.sum(size)))


# The tolerance of each panel beside a singularity, and of each half-wave.
_OF_A_GRADE, _ABSOLUTE = 1e-14, 1e-15
# Bound on the number of singularities of an integral.
_MOST_CLUSTERS = 64


def _diverges(np: Any, value: Any, size: Any) -> bool:
    """Whether panels that shrink geometrically have integrals that do not."""
    last = np.abs(value[-_LAST:])
    return bool((last > 0).all() and (last[1:] >= _SHRINKING * last[:-1]).all())


def _outward(np: Any, least: Any, most: Any, nearest: Any, farthest: Any) -> list[tuple[Any, Any]]:
    """The factors that make bounds of a product with a factor from `nearest` to `farthest`, which is positive."""
    return [
        (least, np.where(least < 0, farthest, nearest)),
        (most, np.where(most > 0, farthest, nearest)),
    ]


def _zeros(np: Any, along: Callable[..., Any], start: float, direction: float) -> Any:
    """The next zeros of an oscillating tail after `start`; None where there are too few of them."""
    length, signs, places = 4.0, np.zeros(0), np.zeros(0)
    for _ in range(40):
        places = start + direction * length * np.linspace(0.0, 1.0, _EXAMINED)
        signs = np.sign(along(places))
        changes = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        if len(changes) >= _HALF_WAVES:
            break
        length *= 2
    else:
        return None
    changes = changes[:_HALF_WAVES]
    before, after, sign = places[changes], places[changes + 1], signs[changes]
    for _ in range(60):
        middle = 0.5 * (before + after)
        same = np.sign(along(middle)) == sign
        before, after = np.where(same, middle, before), np.where(same, after, middle)
    return 0.5 * (before + after)
