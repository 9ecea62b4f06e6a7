"""Integrals over finite and infinite intervals, with singularities inside and at the ends.

Smooth panels are left to `quadrature`. What it cannot refine is a point: around it, panels that shrink geometrically
are summed, and the sum is extrapolated by Wynn's epsilon algorithm. Tails that oscillate are summed between zeros.

Integrals over the whole line are tried by the trapezoidal rule in t, where x = sinh(π/2 sinh t) (H. Takahasi and M.
Mori, Publ. RIMS 9 (1974), 721): a rule of few nodes for smooth integrands, which matters where integrals are nested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from gradcli import arrays, limits
from gradcli.functionals.integrals.extrapolation import Limit, limit_of_sums
from gradcli.functionals.integrals.quadrature import (
    FIRST_PANELS,
    Bounds,
    Integrand,
    Panels,
    Tolerance,
    evaluated,
    hidden,
    refined,
    resolving_panels,
)
from gradcli.named_tuples import NamedTuple

# The distance of the first nodes in t, the largest t, at which x is 1e30, and the number of times the distance is halved.
_FIRST, _FARTHEST, _HALVINGS = 0.25, 4.5, 4
# Terms of the sum that are this part of the largest one and less are left out from then on, and what those at both ends
# have to be for the sum to be the integral.
_NEGLIGIBLE_TERM = 1e-20


class WholeLineIntegrals(NamedTuple):
    """The integrals of some rows, their error estimates and those of their magnitudes; and for which rows these are
    known to be right, as far as the nodes tell."""

    value: Any
    error: Any
    size: Any
    settled: Any


def whole_lines(function: Integrand, rows: Any, tolerance: Tolerance, bounds: Bounds | None) -> WholeLineIntegrals:
    """The integrals from -inf to inf of the integrands with the numbers `rows` [n].

    One is not settled where the sums do not converge at once, where the integrand has no value at a node, and where it may
    have a peak between nodes, if its `bounds` are known.
    """
    np = arrays.numpy_namespace()
    count = len(rows)
    t = _FIRST * np.arange(-round(_FARTHEST / _FIRST), round(_FARTHEST / _FIRST) + 1)
    values, terms = _terms(function, rows, t)
    largest = np.abs(terms).max(axis=1)
    # Terms that are not finite are not small.
    settled = np.isfinite(terms).all(axis=1) & (np.abs(terms[:, [0, -1]]).max(axis=1) <= _NEGLIGIBLE_TERM * largest)
    # That an integrand is 0 between nodes, too, where it is 0 at all of them, is known from bounds alone.
    settled &= (largest > 0) | (bounds is not None)
    found = [_FIRST * terms.sum(axis=1)]
    size, error = _FIRST * np.abs(terms).sum(axis=1), np.full(count, np.inf)
    step = _FIRST
    for _ in range(_HALVINGS):
        if not (settled & (largest > 0)).any() or (error <= tolerance.of(found[-1], size))[settled].all():
            break
        between = 0.5 * (t[1:] + t[:-1])
        wanted = _wanted(terms[settled & (largest > 0)])
        step *= 0.5
        new_values, new = np.zeros((count, len(between))), np.zeros((count, len(between)))
        new_values[:, wanted], new[:, wanted] = _terms(function, rows, between[wanted])
        settled &= np.isfinite(new).all(axis=1)
        t = _woven(t[None], between[None])[0]
        values, terms = _woven(values, new_values), _woven(terms, new)
        found.append(step * terms.sum(axis=1))
        size = step * np.abs(terms).sum(axis=1)
        error = _error(found)
    error = np.where(largest > 0, error, 0.0)
    settled &= error <= tolerance.of(found[-1], size)
    if bounds is not None:
        settled &= ~_hides(bounds, rows, t, values, size)
    return WholeLineIntegrals(found[-1], error, size, settled)


def _error(sums: list[Any]) -> Any:
    """Estimates of the errors of the last of some sums. Halving the distance of the nodes doubles the number of right
    digits; the estimate assumes only that the differences go on to shrink as they did."""
    np = arrays.numpy_namespace()
    if len(sums) < 3:
        return np.full(len(sums[0]), np.inf)
    before, last = (np.abs(b - a) for a, b in zip(sums[-3:], sums[-2:]))
    return 2.0 * last * np.minimum(1.0, np.divide(last, before, out=np.ones_like(last), where=before > 0))


def _terms(function: Integrand, rows: Any, t: Any) -> tuple[Any, Any]:
    """The values of the integrands at the nodes, and those times the derivative of x, [rows, nodes]."""
    np = arrays.numpy_namespace()
    x, weight = _node(t)
    limits.charge_steps(len(rows))
    with np.errstate(all="ignore"):
        values = function(np.tile(x, len(rows)), np.repeat(rows, len(x))).reshape(len(rows), len(x))
        return values, np.where(values == 0, 0.0, values * weight)


def _node(t: Any) -> tuple[Any, Any]:
    """x and its derivative by t."""
    np = arrays.numpy_namespace()
    inner = 0.5 * math.pi * np.sinh(t)
    return np.sinh(inner), np.cosh(inner) * 0.5 * math.pi * np.cosh(t)


def _wanted(terms: Any) -> Any:
    """Between which nodes some terms count."""
    np = arrays.numpy_namespace()
    counts = (np.abs(terms) > _NEGLIGIBLE_TERM * np.abs(terms).max(axis=1, keepdims=True)).any(axis=0)
    return counts[1:] | counts[:-1]


def _woven(first: Any, between: Any) -> Any:
    """The columns of two arrays in turn."""
    np = arrays.numpy_namespace()
    found = np.empty((len(first), first.shape[1] + between.shape[1]))
    found[:, ::2], found[:, 1::2] = first, between
    return found


def _hides(bounds: Bounds, rows: Any, t: Any, values: Any, size: Any) -> Any:
    """A mask of the integrands that may have a peak between two nodes."""
    np = arrays.numpy_namespace()
    x, _ = _node(t)
    low, high = (np.tile(part, len(rows)) for part in (x[:-1], x[1:]))
    least, most = (part.reshape(len(rows), -1) for part in bounds(low, high, np.repeat(rows, len(x) - 1)))
    # A maximum may be half-way between two nodes: their neighbours show how the integrand changes there.
    near = np.pad(values, ((0, 0), (1, 1)), mode="edge")
    around = np.stack([near[:, k : k + len(x) - 1] for k in range(4)])
    lowest, highest = around.min(axis=0), around.max(axis=0)
    return (hidden(least, most, lowest, highest, x[1:] - x[:-1], size[:, None])).any(axis=1)


# A panel next to a singularity is this number of times smaller than its neighbour.
_RATIO = 2.0
# The number of panels beside a singularity at 0, to which floats come arbitrarily close, and the negative binary
# logarithm of the distance from other ones, relative to the place, up to which distances have a few digits.
_MOST_GRADES, _CLOSEST = 60, 22
_FEWEST_GRADES = 6
# Magnitudes of panels beside a singularity that do not shrink by more than this for as many panels: it diverges.
_SHRINKING, _LAST = 1 - 1e-6, 8
# The number of times that means of partial sums are taken, and the part to which their terms shrink within the half-waves.
_MOST_MEANS, _MEANS_SHRINK = 8, 0.25
# Means of half-waves that are rounding errors, in units of the largest of these.
_NOISE = 2.0**-44
# The largest error of the limit of these means, in units of the largest half-wave, of a tail that does not diverge.
_OF_WAVES = 1e-6
# The limit of the ratios of these magnitudes up to which they shrink at last.
_AT_LAST = 0.99
# The number of half-waves of an oscillating tail that are summed, that of lengths, each twice the one before, in which they
# are looked for, that of places at which each length is examined, and that of places at which all are examined first.
_HALF_WAVES, _DOUBLINGS, _EXAMINED, _EXAMINED_FIRST = 48, 40, 4_000, 400
# The number of places from which the size of a tail far away is taken, and the share of its size before that is much less.
_OF_A_WAVE, _MUCH_SMALLER = 64, 1e-3
# The number of powers of 2 of the distances at which tails are examined for overflows, the number of distances for each,
# and the magnitude below which an integrand has vanished before it overflows.
_MOST_DOUBLINGS, _IN_A_DOUBLING, _VANISHED = 60, 8, 1e-60
# Integrals by two samples of an integrand agree if they differ by at most this share of the integral of the magnitude.
_SEEN_ALIKE = 1e-7
# Up to this number of integrals, each is first sampled in FIRST_PANELS panels; beyond, in two.
_FEW_INTEGRALS = 32


class Integral(NamedTuple):
    """An integral with its error estimate, and where the integrand is at fault, if it is: the place and the reason."""

    value: float
    error: float
    size: float
    fault: str | None = None


class _Segment(NamedTuple):
    """A part of the line on which one integral is computed, u from `low` to `high`, or several, with arrays [n].

    The place is u itself if `direction` is 0, else `origin` + `direction` * (1/u - 1): a tail, which ends at u = 0.
    """

    row: Any
    low: Any
    high: Any
    sign: Any
    direction: Any
    origin: Any

    def place(self, u: float) -> float:
        if not self.direction:
            return u
        return float(self.direction * math.inf if u == 0 else self.origin + self.direction * (1 / u - 1))


def integrals(
    function: Integrand,
    low: Sequence[float],
    high: Sequence[float],
    points: Sequence[float],
    tolerance: Tolerance,
    bounds: Bounds | None = None,
    switches: tuple[Any, Any] | None = None,
    *,
    is_derivative: bool = False,
) -> list[Integral]:
    """The integrals of `function` from each of `low` to that of `high`, split at `points`, and at the `switches`, the
    numbers of integrals and places, two arrays [n].

    Limits may be infinite, reversed and equal. With `bounds`, the panels are refined until the integrand cannot do much
    between its nodes. Tails of a derivative of an integrand may oscillate without shrinking. Raises LimitError past the
    budget of the run.
    """
    np = arrays.numpy_namespace()
    first = np.asarray(low, float)
    edges = _edges(np, len(first), points, switches)
    segments = _segments(np, first, np.asarray(high, float), edges)
    return _Integration(function, bounds, segments, len(low), tolerance, is_derivative=is_derivative).integrals()


def _edges(np: Any, count: int, points: Sequence[float], switches: tuple[Any, Any] | None) -> Any:
    """The places at which each of `count` integrals is split, in rising order, [places, count]; those that have fewer
    are filled up with infinities."""
    row, place = switches or (np.zeros(0, int), np.zeros(0))
    order = np.argsort(row, kind="stable")
    row, place = row[order], place[order]
    number = np.arange(len(row)) - np.searchsorted(row, row)
    edges = np.full((1 + number.max(initial=-1), count), np.inf)
    edges[number, row] = place
    return np.sort(np.concatenate([edges, np.repeat(np.array(points, float)[:, None], count, axis=1)]), axis=0)


def _segments(np: Any, low: Any, high: Any, edges: Any) -> _Segment:
    """The parts between the limits, from the lower to the upper one; tails end at infinity."""
    row, sign = np.arange(len(low)), np.where(low > high, -1.0, 1.0)
    first, last = np.minimum(low, high), np.maximum(low, high)
    parts = []
    for edge in [*edges, None]:
        if edge is None:
            middle = np.where((first == -np.inf) & (last == np.inf), 0.0, last)
            parts += [(row, sign, first, middle), (row, sign, middle, last)]
        else:
            cut = np.where(np.isfinite(edge), np.clip(edge, first, last), first)
            parts.append((row, sign, first, cut))
            first = cut
    row, sign, first, last = (np.concatenate(part) for part in zip(*parts))
    kept = first < last
    row, sign, first, last = row[kept], sign[kept], first[kept], last[kept]
    up, down = last == np.inf, first == -np.inf
    direction = np.where(up, 1.0, np.where(down, -1.0, 0.0))
    origin = np.where(up, first, np.where(down, last, 0.0))
    tail = up | down
    return _Segment(row, np.where(tail, 0.0, first), np.where(tail, 1.0, last), sign, direction, origin)


class _Lines(NamedTuple):
    """Integrals over the whole line: the numbers of the rows, the signs, and the parts of `Integral`, arrays [n]."""

    row: Any
    sign: Any
    value: Any
    error: Any
    size: Any


class _Integration:
    def __init__(
        self,
        function: Integrand,
        bounds: Bounds | None,
        segments: _Segment,
        rows: int,
        tolerance: Tolerance,
        *,
        is_derivative: bool,
    ) -> None:
        self.is_derivative = is_derivative
        self.np = arrays.numpy_namespace()
        self.function, self.bounds = function, bounds
        self.segments, self.rows, self.tolerance = segments, rows, tolerance

    @cached_property
    def ends(self) -> Any:
        """For each tail the distance from its origin beyond which its integrand is 0 although it cannot be computed,
        such as exp(x)/(exp(2*x) + 1); infinite for others."""
        np, segments = self.np, self.segments
        ends = np.full(len(segments.row), np.inf)
        tails = np.flatnonzero(segments.direction)
        if not len(tails):
            return ends
        distances = 2.0 ** (np.arange(_MOST_DOUBLINGS * _IN_A_DOUBLING) / _IN_A_DOUBLING)
        places = segments.origin[tails, None] + segments.direction[tails, None] * distances
        with np.errstate(all="ignore"):
            values = self.function(places.ravel(), np.repeat(segments.row[tails], len(distances))).reshape(places.shape)
        for tail, row in zip(tails, values):
            known = int(np.argmin(np.isfinite(row)))
            if known and not np.isfinite(row[known:]).any() and abs(row[known - 1]) * distances[known - 1] < _VANISHED:
                ends[tail] = distances[known - 1]
        return ends

    def integrals(self) -> list[Integral]:
        np, segments, count = self.np, self.segments, len(self.segments.row)
        if not count:
            return [Integral(0.0, 0.0, 0.0)] * self.rows
        faults: dict[int, str] = {}
        with np.errstate(all="ignore"):
            lines = self._whole_lines()
            left = ~np.isin(segments.row, lines.row)
            tails = self._growing_tails(np.flatnonzero(left & (segments.direction != 0)))
            left &= ~np.isin(np.arange(count), [*tails])
            first = self._first_panels(np.flatnonzero(left), FIRST_PANELS if count <= _FEW_INTEGRALS else 2)
            if self.bounds is not None and left.any():
                first = resolving_panels(self._along, self._bounds_along, *first)
            found = refined(evaluated(self._along, *first), self._along, count, self.tolerance)
            for segment in sorted({*found.left.row.tolist()}):
                known = Integral(found.value[segment], found.error[segment], found.size[segment])
                part = self._with_singularities(segment, known, found.left)
                found.value[segment], found.error[segment], found.size[segment], fault = part
                if fault is not None:
                    faults.setdefault(int(segments.row[segment]), fault)
            for segment, tail in tails.items():
                found.value[segment], found.error[segment], found.size[segment], _ = tail
            value = np.bincount(segments.row, segments.sign * found.value, self.rows)
            error, size = (np.bincount(segments.row, part, self.rows) for part in (found.error, found.size))
            value[lines.row], error[lines.row], size[lines.row] = lines.sign * lines.value, lines.error, lines.size
        return [
            Integral(*numbers, faults.get(row))
            for row, numbers in enumerate(zip(value.tolist(), error.tolist(), size.tolist()))
        ]

    def _first_panels(self, numbers: Any, panels: int) -> tuple[Any, Any, Any]:
        """The equal panels in which the segments with these numbers are first sampled."""
        np, segments = self.np, self.segments
        low, high = segments.low[numbers, None], segments.high[numbers, None]
        edges = low + (high - low) * np.linspace(0.0, 1.0, panels + 1)
        edges[:, -1:] = high
        return np.repeat(numbers, panels), edges[:, :-1].ravel(), edges[:, 1:].ravel()

    def _whole_lines(self) -> _Lines:
        """The integrals over the whole line of smooth integrands.

        Where no bounds are known, the first panels, which sample the line elsewhere, must agree with the result.
        """
        np, segments = self.np, self.segments
        tails = [np.bincount(segments.row[segments.direction == d], minlength=self.rows) for d in (-1.0, 1.0)]
        finite = np.bincount(segments.row[(segments.direction == 0) | (segments.origin != 0)], minlength=self.rows)
        rows = np.flatnonzero((tails[0] == 1) & (tails[1] == 1) & (finite == 0))
        if not len(rows):
            return _Lines(rows, *[np.zeros(0)] * 4)
        found = whole_lines(self.function, rows, self.tolerance, self.bounds)
        settled = found.settled
        if self.bounds is None and settled.any():
            numbers = np.flatnonzero(np.isin(segments.row, rows[settled]))
            panels = evaluated(self._along, *self._first_panels(numbers, 4 if len(rows) <= _FEW_INTEGRALS else 2))
            seen = np.bincount(segments.row[panels.row], panels.value, self.rows)[rows]
            settled = settled & (np.abs(seen - found.value) <= _SEEN_ALIKE * found.size)
        sign = np.zeros(self.rows)
        sign[segments.row] = segments.sign
        rows = rows[settled]
        return _Lines(rows, sign[rows], *(part[settled] for part in found[:3]))

    def _segment(self, number: int) -> _Segment:
        return _Segment(*(part[number].item() for part in self.segments))

    def _along(self, u: Any, segment: Any) -> Any:
        """The integrand in the variable of the segments."""
        np = self.np
        row, direction, origin = (part[segment] for part in (self.segments.row, *self.segments[4:]))
        tail = direction != 0
        if not tail.any():
            return self.function(u, row)
        v = np.where(tail, u, 1.0)
        distance = (1.0 - v) / v
        values = self.function(np.where(tail, origin + direction * distance, u), row)
        wild = ~np.isfinite(values)
        if wild.any():
            values = np.where(wild & (distance > self.ends[segment]), 0.0, values)
        return np.where(tail & (values != 0), values / v / v, values)

    def _bounds_along(self, low: Any, high: Any, segment: Any) -> tuple[Any, Any]:
        """The bounds of the integrand in the variable of the segments."""
        np = self.np
        assert self.bounds is not None
        row, direction, origin = (part[segment] for part in (self.segments.row, *self.segments[4:]))
        tail = direction != 0
        ends = [np.where(tail, origin + direction * ((1.0 - u) / np.where(tail, u, 1.0)), u) for u in (low, high)]
        least, most = self.bounds(np.minimum(*ends), np.maximum(*ends), row)
        nearest, farthest = np.where(tail, high, 1.0) ** -2, np.where(tail, low, 1.0) ** -2
        least = least * np.where(least < 0, farthest, nearest)
        most = most * np.where(most > 0, farthest, nearest)
        return np.where(np.isnan(least), 0.0, least), np.where(np.isnan(most), 0.0, most)

    def _with_singularities(self, segment: int, found: Integral, left: Panels) -> Integral:
        """The integral over a segment: `found` over most of it, and what is around the panels that were left."""
        np = self.np
        own = left.chosen(left.row == segment)
        own = own.chosen(np.argsort(own.low))
        clusters = np.split(np.arange(len(own.low)), np.flatnonzero(own.low[1:] > own.high[:-1]) + 1)
        if self._segment(segment).direction and (len(clusters) > 1 or own.low[0] == 0.0):
            tail = self._tail(segment)
            if tail is not None:
                return tail
        if len(clusters) > _MOST_CLUSTERS:
            clusters = [np.arange(len(own.low))]
        for cluster in clusters:
            panels = own.chosen(cluster)
            if len(cluster) > _MOST_AT_A_POINT:
                part = self._unresolved(segment, panels)
            else:
                part = self._steep(segment, panels, found) or self._around(
                    segment, float(panels.low[0]), float(panels.high[-1])
                )
            found = Integral(found.value + part.value, found.error + part.error, found.size + part.size, part.fault)
            if part.fault is not None:
                break
        return found

    def _unresolved(self, segment: int, panels: Panels) -> Integral:
        """The integral over panels that are too many for a singularity, with its error."""
        np = self.np
        infinite = ~np.isfinite(panels.value)
        fault = self._fault(segment, float(panels.low[np.argmax(infinite)])) if infinite.any() else None
        value, error, size = (float(np.sum(part)) for part in (panels.value, panels.error, panels.size))
        return Integral(value, error, size, fault)

    def _steep(self, segment: int, panels: Panels, rest: Integral) -> Integral | None:
        """The integral over panels that more halvings resolve, as those with a steep step do; None where they do not.

        `rest` is the integral beside them. Panels at a limit are left to `_beside`, which comes closer, where they are
        part of a tail, or end at 0, or the integrand grows there.
        """
        np, whole = self.np, self._segment(segment)

        def along(u: Any, _row: Any) -> Any:
            return self._along(u, np.full(len(u), segment))

        low, high = float(panels.low[0]), float(panels.high[-1])
        for end, beside in ((low, whole.low), (high, whole.high)):
            if end == beside:
                if whole.direction or end == 0.0:
                    return None
                closest, near = np.abs(along(end + 0.5 * (low + high - 2.0 * end) * np.array([_CLOSE, 1.0]), 0))
                if not closest <= 2.0 * near:
                    return None
        negligible = float(self.tolerance.of(rest.value, rest.size)) / _MOST_CLUSTERS
        tolerance = Tolerance(_OF_A_GRADE, _ABSOLUTE, negligible)
        found = refined(panels._replace(row=panels.row * 0), along, 1, tolerance, _MORE_HALVINGS, _MOST_OF_A_STEP)
        if len(found.left.row):
            return None
        value, error, size = (float(part[0]) for part in found[:3])
        return Integral(value, error, size)

    def _around(self, segment: int, low: float, high: float) -> Integral:
        """The integral from `low` to `high`, between which there is a singularity."""
        whole = self._segment(segment)
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
        if not distance:
            # The singularity was located at the end of its panels.
            return Integral(0.0, 0.0, 0.0)
        grades = _MOST_GRADES
        if point:
            grades = max(_FEWEST_GRADES, min(grades, _CLOSEST + int(math.log2(distance / abs(point)))))
        edges = point + (far - point) * _RATIO ** -np.arange(grades + 1.0)
        near, away = np.minimum(edges[1:], edges[:-1]), np.maximum(edges[1:], edges[:-1])
        # Closer to the point, the distance to it has fewer digits.
        digits = 4 * 2.0**-52 * abs(point) / np.abs(edges[1:] - point)

        def along(u: Any, _row: Any) -> Any:
            return self._along(u, np.full(len(u), segment))

        panels = evaluated(along, np.arange(grades), near, away)
        negligible = _NEGLIGIBLE * float(panels.size[np.isfinite(panels.size)].sum())
        tolerance = Tolerance(np.maximum(_OF_A_GRADE, digits), _ABSOLUTE, negligible)
        found = refined(panels, along, grades, tolerance)
        value, error, size = found.whole()
        if not np.isfinite(value).all():
            fault = self._fault(segment, float(edges[1 + int(np.argmin(np.isfinite(value)))]))
            return Integral(math.nan, math.inf, math.nan, fault)
        place = self._segment(segment).place(point)
        if _diverges(np.abs(value)):
            return Integral(math.nan, math.inf, math.inf, f"the integral diverges at {place:.6g}")
        limit = limit_of_sums(value.tolist())
        return Integral(limit.value, limit.error + float(np.sum(error)), float(np.sum(size)))

    def _fault(self, segment: int, u: float) -> str:
        """Why the integrand has no finite integral near a place."""
        np = self.np
        whole = self._segment(segment)
        (value,) = self._along(np.array([u]), np.array([segment]))
        if whole.direction and np.isinf(value):
            return f"the integral diverges at {'-' if whole.direction < 0 else ''}inf"
        return f"the integrand is no number at {whole.place(u):.6g}"

    def _growing_tails(self, numbers: Any) -> dict[int, Integral]:
        """The integrals over those of the segments with these numbers that are tails of derivatives which oscillate and do
        not shrink."""
        np, segments = self.np, self.segments
        if not self.is_derivative or not len(numbers):
            return {}
        row, origin, direction = (part[numbers, None] for part in (segments.row, segments.origin, segments.direction))
        places = origin + direction * 2.0 ** np.arange(0, _DOUBLINGS, 2)
        values = np.abs(self.function(places.ravel(), np.broadcast_to(row, places.shape).ravel())).reshape(places.shape)
        lasts = values[:, -_LAST:].max(axis=1) > _MUCH_SMALLER * values.max(axis=1)
        found = {segment: self._growing_tail(segment) for segment in numbers[lasts].tolist()}
        return {segment: tail for segment, tail in found.items() if tail is not None}

    def _growing_tail(self, segment: int) -> Integral | None:
        np, waves = self.np, self._half_waves(segment)
        if waves is None or waves.first.fault is not None or not np.isfinite(waves.value).all() or waves.shrink():
            return None
        if not (waves.value[1:] * waves.value[:-1] < 0).all() or waves.vanish_far():
            return None
        limit = _limit_of_means(waves.terms())
        if limit is None or not limit.error <= _OF_WAVES * np.abs(waves.value).max():
            return None
        # The integral of the magnitude is infinite; the error has the rounding of the half-waves.
        return waves.summed(limit)._replace(size=waves.first.size + abs(limit.value))

    def _tail(self, segment: int) -> Integral | None:
        """The integral over a tail that oscillates; None for any other.

        An alternating series of its half-waves, which is extrapolated (I. M. Longman, Proc. Camb. Phil. Soc. 52 (1956),
        764).
        """
        waves = self._half_waves(segment)
        if waves is None:
            return None
        if waves.first.fault is not None:
            return waves.first
        if self.np.isfinite(waves.value).all() and waves.shrink():
            return waves.summed(limit_of_sums(waves.terms()))
        if waves.vanish_far():
            return None
        place = "-inf" if waves.direction < 0 else "inf"
        return Integral(math.nan, math.inf, math.inf, f"the integral diverges at {place}")

    def _half_waves(self, segment: int) -> _HalfWaves | None:
        """The half-waves of a tail, between its zeros; None where there are too few of these."""
        np = self.np
        whole = self._segment(segment)
        row = np.array([whole.row])

        def along(t: Any, _: Any = None) -> Any:
            return self.function(t, np.repeat(row, len(t)))

        # The origin may be a singularity.
        start = whole.origin + whole.direction
        zeros = _zeros(np, along, start, whole.direction)
        if zeros is None:
            return None
        first = integrals(along, [whole.origin], [zeros[0]], (), self.tolerance)[0]
        near, away = np.minimum(zeros[1:], zeros[:-1]), np.maximum(zeros[1:], zeros[:-1])
        count = 0 if first.fault is not None else len(near)
        panels = evaluated(along, np.arange(count), near[:count], away[:count])
        value, error, size = refined(panels, along, count, Tolerance(_OF_A_GRADE, _ABSOLUTE)).whole()
        return _HalfWaves(along, whole.origin, whole.direction, float(zeros[-1]), first, value, error, size)


class _HalfWaves(NamedTuple):
    """The half-waves of a tail, which goes from its `origin` in a `direction` and is known up to `last`: the integral up to
    the `first` of them, and theirs, with the errors and magnitudes, [waves]."""

    along: Callable[..., Any]
    origin: float
    direction: float
    last: float
    first: Integral
    value: Any
    error: Any
    size: Any

    def terms(self) -> list[float]:
        """The terms of the series that the integral is."""
        return [self.direction * self.first.value, *self.value.tolist()]

    def shrink(self) -> bool:
        """Return whether they shrink, if only a little."""
        sizes = abs(self.value)
        return bool(sizes[-_LAST:].min() <= _SHRINKING * sizes[:_LAST].max())

    def vanish_far(self) -> bool:
        """Return whether a tail that has not begun to shrink is much smaller far away."""
        return _vanishes_far(arrays.numpy_namespace(), self.along, self.origin, self.last)

    def summed(self, limit: Limit) -> Integral:
        """The integral, which is the limit of the series."""
        return Integral(limit.value, limit.error + self.first.error + float(self.error.sum()), float(self.size.sum()))


# The tolerance of each panel beside a singularity, and of each half-wave; and the part of all panels beside a singularity
# that is below all digits, also after extrapolation.
_OF_A_GRADE, _ABSOLUTE, _NEGLIGIBLE = 1e-14, 1e-15, 1e-20
# Panels are halved as often, into no more than as many, before what is in them counts as a singularity: a step of 1e-12 of
# the interval is none.
_MORE_HALVINGS, _MOST_OF_A_STEP = 40, 500
# The distance from a limit, relative to that of half of these panels, at which an integrand that grows there has doubled.
_CLOSE = 2.0**-30
# Bounds on the number of singularities of an integral, and of the panels that are left around one.
_MOST_CLUSTERS = _MOST_AT_A_POINT = 64


def _diverges(magnitudes: Any) -> bool:
    """Return whether panels that shrink geometrically have integrals whose magnitudes do not shrink."""
    last = magnitudes[-_LAST:]
    if not (last > 0).all() or not (last[1:] >= _SHRINKING * last[:-1]).all():
        return False
    # Those of x**a*log(x)**m are a geometric sequence times a polynomial, whose ratios are q + c/n: they may grow for long.
    first, then = float(last[1] / last[0]), float(last[-1] / last[-2])
    count = len(magnitudes)
    return then + (count - _LAST) / (_LAST - 2) * (then - first) > _AT_LAST


def _limit_of_means(terms: Sequence[float]) -> Limit | None:
    """The limit of means of neighbouring partial sums, taken again and again until these change less and less; None where
    they do not.

    Where terms do not shrink since an integrand was differentiated, the limit is the derivative of the integral: with a
    factor exp(-e*x) both exist, and the limit is that for e to 0, by Abel's theorem (G. H. Hardy, Divergent Series, 1949).
    """
    np = arrays.numpy_namespace()
    sums = np.cumsum(terms)
    for _ in range(_MOST_MEANS):
        sums = 0.5 * (sums[1:] + sums[:-1])
        found = np.diff(sums)
        sizes = np.abs(found)
        if sizes.max() <= _NOISE * np.abs(terms).max():
            return Limit(float(sums.mean()), float(np.ptp(sums)))
        if sizes[-_LAST:].max() <= _MEANS_SHRINK * sizes[:_LAST].max():
            return limit_of_sums([float(sums[0]), *found.tolist()])
    return None


def _vanishes_far(np: Any, along: Callable[..., Any], origin: float, place: float) -> bool:
    """Return whether an oscillating tail that has not begun to shrink at a place is much smaller far beyond it."""
    distances = 2.0 ** np.arange(_DOUBLINGS)[:, None] + np.linspace(0.0, 1.0, _OF_A_WAVE)
    sizes = np.abs(along((origin + (place - origin) * distances).ravel())).reshape(distances.shape).max(axis=1)
    return bool(np.isfinite(sizes).all() and sizes[-1] < _MUCH_SMALLER * sizes[0])


def _zeros(np: Any, along: Callable[..., Any], start: float, direction: float) -> Any:
    """The next zeros of an oscillating tail after `start`; None where there are too few of them."""
    length, signs, places = 4.0, np.zeros(0), np.zeros(0)
    signs = np.sign(along(start + direction * np.geomspace(1.0, length * 2.0**_DOUBLINGS, _EXAMINED_FIRST)))
    if not (signs[1:] * signs[:-1] < 0).any():
        return None
    for _ in range(_DOUBLINGS):
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
