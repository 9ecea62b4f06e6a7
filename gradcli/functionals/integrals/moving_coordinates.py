"""Derivatives of integrals whose integrands move much more than the integrals do, as where a narrow peak moves, or a
frequency grows: the integrals of their derivatives are small differences of large parts.

The place x is made a function of a new variable u that moves with the parameters t, x = u + v(u)*t + w(u)*t**2 + …. The
integral over u of f(x, t)*dx/du is the same whatever v and w are, as long as these are 0 at the limits. Here they are
piecewise linear, bend at peaks, and are chosen such that the integrand changes as little as possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.functionals.body import Body
from gradcli.functionals.integrals.integration import Integral
from gradcli.functionals.integrals.quadrature import Panels, Tolerance, evaluated, nodes_between, refined
from gradcli.functionals.switches import is_smooth
from gradcli.named_tuples import NamedTuple

# The number of equal panels in which an integrand is sampled first, bounds on the halvings and on the number of panels, and
# the error, relative to the integral of the magnitude, up to which they are not halved.
_FIRST, _MOST_HALVINGS, _MOST_PANELS, _ERROR = 16, 40, 4_096, 1e-6
# Bound on the number of peaks at which the coordinates bend, and the height of the lowest one, relative to the highest.
_MOST_PEAKS, _LOWEST = 6, 1e-3
# The first distance from a peak at which they do, in its half-widths at half maximum, the factor between that and the next
# one, and a distance up to which they do where the limits are infinite.
_WIDTHS, _RATIO, _FARTHEST = 2.0, 8.0, 1e6
# Part of its largest values that the place times the integrand has at infinity at most, where coordinates may stretch.
_VANISHED = 1e-12
# The bits of a motion.
_BITS = 20
# The number of fits of a motion, and the part of the largest change below which changes are not told apart.
_FITS, _LEAST = 5, 1e-10
# Taylor coefficients up to this order are computed so.
_MOST_ORDER = 4
# The tolerances, relative to the value and to the integral of the magnitude.
_TOLERANCE = 1e-13, 1e-15


class Derivative(NamedTuple):
    """A derivative of a body: `factor` times the Taylor coefficient along a curve of its reads, [coefficients][reads], or with
    `other`, the number of a read, the derivative by that of the coefficient of order 1."""

    body: Body
    reads: Sequence[Sequence[float]]
    factor: float = 1.0
    other: int | None = None

    @property
    def scale(self) -> float:
        """The number with which a derivative is one by the logarithms of what moves; 0 where only zeros move, which have no
        logarithms."""
        reads, direction = self.reads[:2]
        rates = [abs(d / r) for r, d in zip(reads, direction) if r and d]
        if not rates:
            return 0.0
        if self.other is not None:
            return abs(reads[self.other]) / max(rates)
        return 1.0 / (self.factor * max(rates) ** (len(self.reads) - 1))


def derivative_of(body: Body, reads: Sequence[float]) -> Derivative | None:
    """The derivative that a body is; None for one of a kind that is not known."""
    origin = body.origin
    if origin is None:
        return None
    before = origin.body.origin
    if origin.kind == "coefficient" and before is None:
        n = origin.body.reads
        return Derivative(origin.body, [reads[k * n : (k + 1) * n] for k in range(origin.number + 1)])
    number = origin.number - body.bound
    if origin.kind != "partial" or number < 0:
        return None
    if before is None:
        return Derivative(origin.body, [reads, _unit(reads, number)])
    first = before.number - body.bound
    if before.kind != "partial" or first < 0 or before.body.origin is not None:
        return None
    if first == number:
        return Derivative(before.body, [reads, _unit(reads, first), [0.0] * len(reads)], 2.0)
    return Derivative(before.body, [reads, _unit(reads, first)], other=number)


def _unit(reads: Sequence[float], number: int) -> list[float]:
    return [1.0 if k == number else 0.0 for k in range(len(reads))]


def integral_in_moving_coordinates(
    derivative: Derivative, low: float, high: float, negligible: float
) -> Integral | None:
    """The integral of a derivative between two limits in ascending order, up to an error that is negligible; None where the
    body may not be smooth."""
    body, reads = derivative.body, derivative.reads
    if len(reads) > 1 + _MOST_ORDER or not is_smooth(body, low, high, reads[0]):
        return None
    found = _Coordinates(derivative, low, high).integral(negligible / derivative.factor)
    if found is None:
        return None
    factor = derivative.factor
    return Integral(factor * found.value, factor * found.error, factor * found.size)


class _Coordinates:
    """Coordinates for a derivative of an integral, without its factor.

    Places are given by numbers v, which are 0 at infinite limits.
    """

    def __init__(self, derivative: Derivative, low: float, high: float) -> None:
        self.np = arrays.numpy_namespace()
        self.body, self.movable, self.reads = derivative.body, derivative.body.movable, derivative.reads
        self.other = derivative.other
        # The number of the first of the two reads that move the bound variable, among the inputs.
        self.moves = derivative.body.bound + derivative.body.reads + 1
        self.low, self.high = low, high
        self.panels = self._panels()
        nodes = nodes_between(*self.panels)
        self.u, slope = self._place(nodes.ravel())
        weights = self.np.repeat(self.panels[1] - self.panels[0], nodes.shape[1]) * slope
        order = self.np.argsort(self.u)
        self.u, self.weights = self.u[order], weights[order]
        self.values = self._unmoved(self.u)
        # The ends of the pieces, between which the coordinates bend; the first and the last may be infinite.
        self.edges = self.np.array([low, *self._bends(), high])
        ends = self.np.unique(self.np.concatenate([*self.panels, self._number(self.edges[1:-1])]))
        self.panels = ends[:-1], ends[1:]
        # The place in each piece from which it stretches: one at which the motion is known.
        self.fixed = self.edges[:-1].copy()
        if math.isinf(low):
            self.fixed[0] = self.edges[1] if len(self.edges) > 2 or math.isfinite(high) else 0.0
        # The motions of order 1, 2, …, or along the curve, by the other read, and by both: the shift and the stretch in each
        # piece, [pieces].
        self.motions: list[tuple[Any, Any]] = []

    def integral(self, negligible: float) -> Integral | None:
        np = self.np
        if not np.isfinite(self.values).all():
            return None
        for _ in range(len(self.reads) - 1 if self.other is None else 3):
            motion = self._motion()
            if motion is None:
                return None
            self.motions.append(motion)

        def along(v: Any, _row: Any) -> Any:
            place, slope = self._place(v)
            return slope * self._change(place, self._motions_at(place))

        low, high = self.panels
        first = evaluated(along, np.zeros(len(low), int), low, high)
        found = refined(first, along, 1, Tolerance(*_TOLERANCE, negligible), _MOST_HALVINGS).whole()
        value, error, size = (float(part[0]) for part in found)
        return Integral(value, error, size) if math.isfinite(value) else None

    def _change(self, u: Any, motions: Sequence[tuple[Any, Any]]) -> Any:
        """The change of the integrand that the next motion is for, if some are known, or that with all of them."""
        if self.other is None:
            order = min(len(motions) + 1, len(self.reads) - 1)
            return self._moved(u, self.reads[: order + 1], motions)
        beside = [0.0] * len(self.reads[0])
        beside[self.other] = 1.0
        if len(motions) == 1:
            return self._moved(u, [self.reads[0], beside], [])
        if not motions:
            return self._moved(u, self.reads, [])
        along, by_other, *both = motions
        first = self.movable.coefficient(1)
        inputs = [u, *self.reads[0], self._fixed_at(u), 0.0, 0.0, *self.reads[1], 0.0, *along]
        (value,) = first.partial(self.other + self.movable.bound)(*inputs)
        for k in range(2):
            value = value + by_other[k] * first.partial(self.moves + k)(*inputs)[0]
            for motion in both:
                value = value + motion[k] * self._by_move(u, k)
        return self.np.broadcast_to(value, u.shape)

    def _moved(self, u: Any, reads: Sequence[Sequence[float]], motions: Sequence[tuple[Any, Any]]) -> Any:
        """The Taylor coefficient of the integrand along a curve of the reads, for the motions of order 1, 2, … at each
        place."""
        zero, order = (0.0, 0.0), len(reads) - 1
        moved = [zero, *motions, *[zero] * (order - len(motions))]
        operands = [x for k in range(order + 1) for x in (*reads[k], 0.0 if k else self._fixed_at(u), *moved[k])]
        (value,) = (self.movable.coefficient(order) if order else self.movable)(u, *operands)
        return self.np.broadcast_to(value, u.shape)

    def _unmoved(self, u: Any) -> Any:
        """The integrand that is differentiated."""
        (value,) = self.body(u, *self.reads[0])
        return self.np.broadcast_to(value, u.shape)

    def _by_move(self, u: Any, number: int) -> Any:
        """The derivative of the integrand by a shift or a stretch."""
        (value,) = self.movable.partial(self.moves + number)(u, *self.reads[0], self._fixed_at(u), 0.0, 0.0)
        return self.np.broadcast_to(value, u.shape)

    # --- samples

    def _place(self, v: Any) -> tuple[Any, Any]:
        """The place of a number, and the magnitude of its derivative. The numbers are those from 0 to 1, on the whole line
        from -1 to 1."""
        np = self.np
        if math.isfinite(self.low) and math.isfinite(self.high):
            return self.low + (self.high - self.low) * v, np.full(len(v), self.high - self.low)
        if math.isfinite(self.low):
            return self.low + (1 - v) / v, v**-2
        if math.isfinite(self.high):
            return self.high - (1 - v) / v, v**-2
        return np.sign(v) * (1 - np.abs(v)) / np.abs(v), v**-2

    def _number(self, place: Any) -> Any:
        """The number of a place."""
        np = self.np
        if math.isfinite(self.low) and math.isfinite(self.high):
            return (place - self.low) / (self.high - self.low)
        if math.isfinite(self.low):
            return 1.0 / (1.0 + (place - self.low))
        if math.isfinite(self.high):
            return 1.0 / (1.0 + (self.high - place))
        return np.copysign(1.0 / (1.0 + np.abs(place)), place)

    def _panels(self) -> tuple[Any, Any]:
        """Panels that show the integrand: both ends as numbers, in ascending order."""
        np = self.np

        def along(v: Any, _row: Any) -> Any:
            place, slope = self._place(v)
            found = self._unmoved(place) * slope
            return np.where(np.isfinite(found), found, 0.0)

        is_line = math.isinf(self.low) and math.isinf(self.high)
        edges = np.linspace(-1.0 if is_line else 0.0, 1.0, _FIRST + 1)
        new = evaluated(along, np.zeros(_FIRST, int), edges[:-1], edges[1:])
        kept: list[Panels] = []
        for _ in range(_MOST_HALVINGS):
            size = sum(float(p.size.sum()) for p in [*kept, new])
            rough = new.error > _ERROR * size
            kept.append(new.chosen(~rough))
            new = new.chosen(rough)
            if not len(new.row) or sum(len(p.row) for p in kept) + 2 * len(new.row) > _MOST_PANELS:
                break
            middle = 0.5 * (new.low + new.high)
            low, high = np.concatenate([new.low, middle]), np.concatenate([middle, new.high])
            new = evaluated(along, np.zeros(len(low), int), low, high)
        low, high = (np.sort(np.concatenate([getattr(p, end) for p in (*kept, new)])) for end in ("low", "high"))
        return low, high

    def _bends(self) -> list[float]:
        """Places around the highest peaks of the magnitude, at distances that grow by a factor; none where there are many
        peaks, as in an oscillation."""
        np, u = self.np, self.u
        size = np.abs(self.values)
        peaks = np.flatnonzero((size[1:-1] > size[:-2]) & (size[1:-1] >= size[2:])) + 1
        peaks = peaks[size[peaks] > _LOWEST * size.max()]
        if len(peaks) > _MOST_PEAKS:
            return []
        found: list[float] = []
        for k in peaks:
            distances = np.abs(u - u[k])
            width = distances[size < 0.5 * size[k]].min(initial=math.inf)
            farthest = max(
                (abs(x - u[k]) for x in (self.low, self.high) if math.isfinite(x)), default=_FARTHEST * width
            )
            number = max(0, math.ceil(math.log(farthest / width, _RATIO))) if 0 < width < math.inf else 0
            reach = _WIDTHS * width * _RATIO ** np.arange(number)
            found += [*(u[k] - reach), *(u[k] + reach)]
        return sorted({float(x) for x in found if self.low < x < self.high})

    def _piece(self, u: Any) -> Any:
        np = self.np
        return np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, len(self.edges) - 2)

    def _fixed_at(self, u: Any) -> Any:
        return self.fixed[self._piece(u)]

    def _motions_at(self, u: Any) -> list[tuple[Any, Any]]:
        piece = self._piece(u)
        return [(shift[piece], stretch[piece]) for shift, stretch in self.motions]

    # --- motions

    def _motion(self) -> tuple[Any, Any] | None:
        """The next motion, which makes the change of the integrand small: the shift and the stretch in each piece."""
        np = self.np
        change = self._change(self.u, self._motions_at(self.u))
        if not change.any():
            return self._linear(np.zeros(len(self.edges)))
        by_shift, by_stretch = (self._by_move(self.u, k) for k in range(2))
        piece, count = self._piece(self.u), len(self.edges)
        columns = [
            shift[piece] * by_shift + stretch[piece] * by_stretch
            for number in range(count)
            for shift, stretch in [self._linear(np.eye(count)[number])]
        ]
        matrix = np.stack([change, *columns], axis=-1)
        if not np.isfinite(matrix).all():
            return None
        scales = np.abs(matrix).max(axis=0)
        matrix = matrix / np.where(scales > 0, scales, 1.0)
        # The sum of magnitudes is made small by squares that are divided by the magnitudes before.
        rest, found = matrix[:, 0], np.zeros(count)
        for _ in range(_FITS):
            size = np.abs(rest)
            weights = np.sqrt(self.weights / (size + _LEAST * size.max()))[:, None]
            found = -np.linalg.lstsq(weights * matrix[:, 1:], weights[:, 0] * matrix[:, 0], rcond=None)[0]
            rest = matrix[:, 0] + matrix[:, 1:] @ found
            if not rest.any():
                break
        found = found * scales[0] / np.where(scales[1:] > 0, scales[1:], 1.0)
        # With few bits, what moves together cancels without rounding.
        unit = 2.0 ** (np.ceil(np.log2(np.maximum(np.abs(found[1:-1]).max(initial=0.0), 1e-300))) - _BITS)
        found[1:-1] = np.round(found[1:-1] / unit) * unit
        return self._linear(found)

    def _linear(self, numbers: Any) -> tuple[Any, Any]:
        """The motion with these values at the edges between pieces; of the first and the last number, at a finite limit it is
        0, and an infinite piece stretches by it, if the integrand vanishes fast enough."""
        np, edges = self.np, self.edges
        at = np.concatenate([[0.0], numbers[1:-1], [0.0]])
        width = edges[1:] - edges[:-1]
        stretch = np.where(np.isfinite(width), (at[1:] - at[:-1]) / width, 0.0)
        product = np.abs(self.u * self.values)
        for end in (0, -1):
            if math.isinf(edges[end]) and product[end] <= _VANISHED * product.max():
                stretch[end] += numbers[end]
        return np.where(np.isfinite(edges[:-1]), at[:-1], at[1:]), stretch
