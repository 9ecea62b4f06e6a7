"""Functions evaluated near a point by their Taylor series, such as those with a removable singularity there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import ratio
from gradcli.primitives.entries.arithmetic import multiply
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive

# Within the radius, the nth term after the first nonzero one is at most this ratio to the power n of it.
_RATIO = 0.25
# Terms below this fraction of the largest are dropped: 2**-60 is below double rounding.
_NEGLIGIBLE = 2.0**-60
# The number of coefficients from which the radius is determined.
_LOOKED_AT = 31
# The radius of a series that has no other nonzero terms.
_LARGEST_RADIUS = 1.0


class PointSeries:
    """The Taylor series at `point` of a function that is not identically 0.

    `coefficients(n)` returns the first n coefficients, of powers of (x - point)/unit, where `unit` is a power of 2. The
    series is used up to the distance `radius` from the point.
    """

    def __init__(self, point: float, coefficients: Callable[[int], Sequence[float]], unit: float = 1.0) -> None:
        self.point = point
        self.unit = unit
        self._coefficients = coefficients
        self.terms = lru_cache(32)(self._terms)

    def __repr__(self) -> str:
        return f"<series at {self.point:g}>"

    @property
    def radius(self) -> float:
        return self._units * self.unit

    @cached_property
    def _units(self) -> float:
        """The radius divided by `unit`."""
        return min([_RATIO * r for r in ratios(self._coefficients(_LOOKED_AT))], default=_LARGEST_RADIUS)

    def _terms(self, n: int) -> Sequence[float]:
        """The coefficients of the nth derivative, without those that are negligible within the radius."""
        count = 1
        while math.comb(n + count, n) * _RATIO**count > _NEGLIGIBLE:
            count += 1
        known = self._coefficients(n + count)[n:]
        above, below = self.unit.as_integer_ratio()
        terms = [_times(c, math.perm(n + j, n) * below**n, above**n) for j, c in enumerate(known)]
        most = max(abs(c) * self._units**j for j, c in enumerate(terms))
        while len(terms) > 1 and abs(terms[-1]) * self._units ** (len(terms) - 1) <= _NEGLIGIBLE * most:
            terms.pop()
        return tuple(terms)

    def value(self, xp: Any, x: Any, n: int) -> Any:
        """The nth derivative at x, which must be within the radius."""
        t = xp.subtract(x, self.point)
        if self.unit != 1.0:
            t = xp.divide(t, self.unit)
        *others, value = self.terms(n)
        value = xp.add(xp.multiply(0.0, t), value)
        for coefficient in reversed(others):
            value = xp.add(xp.multiply(value, t), coefficient)
        return value


class ExactSeries:
    """A Taylor series evaluated at its point only, with exact coefficients; `coefficients(n)` returns the first n."""

    radius = 0.0
    unit = 1.0

    def __init__(self, point: Any, coefficients: Callable[[int], Sequence[Any]]) -> None:
        self.point = point
        self._coefficients = coefficients

    def __repr__(self) -> str:
        return f"<limit at {float(self.point):g}>"

    def terms(self, n: int) -> Sequence[Any]:
        """The value of the nth derivative at the point, as a single term."""
        return (multiply(self._coefficients(n + 1)[n], ratio(math.factorial(n))),)

    def value(self, xp: Any, x: Any, n: int) -> Any:
        """The nth derivative at x, which must be the point."""
        return xp.add(xp.multiply(0.0, xp.subtract(x, self.point)), self.terms(n)[0])


class SeriesOverBalls:
    """The Taylor series of a function at every point of balls near a removable singularity.

    `derivative(x, n)` returns balls that enclose the nth derivative.
    """

    def __init__(self, point: Any, derivative: Callable[[Any, int], Any]) -> None:
        self.point = point
        self._derivative = derivative

    def __repr__(self) -> str:
        return f"<series around {float(self.point):g}>"

    def terms(self, _n: int) -> Sequence[Any]:
        """An empty sequence, as no terms are summed."""
        return ()

    def value(self, _xp: Any, x: Any, n: int) -> Any:
        """An enclosure of the nth derivative at x."""
        return self._derivative(x, n)


def ratios(coefficients: Sequence[float]) -> list[float]:
    """The distances at which each nonzero term of a series equals the first nonzero one in magnitude."""
    lead = next((k for k, c in enumerate(coefficients) if c), 0)
    found = (abs(coefficients[lead] / c) ** (1.0 / (k - lead)) for k, c in enumerate(coefficients) if c and k > lead)
    return [r for r in found if r > 0.0]


def _times(coefficient: float, factor: int, divisor: int) -> float:
    if not math.isfinite(coefficient):
        return coefficient
    numerator, denominator = coefficient.as_integer_ratio()
    try:
        return numerator * factor / (denominator * divisor)
    except OverflowError:
        return math.copysign(math.inf, coefficient)


def _forward(xp: Any, x: Any, *, series: PointSeries | ExactSeries | SeriesOverBalls, n: int) -> Any:
    return series.value(xp, x, n)


# (exp(x) - 1)/x.
_EXAMPLE = PointSeries(0.0, lambda n: [1.0 / math.factorial(k + 1) for k in range(n)])

taylor_series: Primitive = elementwise(
    "taylor_series", "x, series, n=0", "the nth derivative of a function, by its Taylor series",
    time=30, surcharge=lambda x, *, series, n: (len(series.terms(n)) // 2) * arrays.size(x),
    internal="Taylor series", numbers="analytic",
    forward=_forward,
    vjp=(lambda g, _y, x, *, series, n: g * taylor_series(x, series, n + 1),),
    prepare=lambda x, series, n=0: ((x,), {"series": series, "n": n}),
    derivative="g*(its derivative)",
    domain="x within the radius of the series",
    samples=((0.7, _EXAMPLE), ([-0.3, 0.2], _EXAMPLE)),
)  # fmt: skip
