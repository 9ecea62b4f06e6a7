"""An estimate of the radius of convergence of a power series from its first coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# The number of coefficients that an estimate needs, and the least number of nonzero ones after the first third is
# dropped.
ENOUGH, _FEWEST = 40, 6
# The extrapolations have settled where their range is at most `_TOLERANCE` of the last one. The limit is 0 where they
# are at most `_VANISHING` of the ratios in the middle and the ratios fall at least as n**-`_FALL`.
_TOLERANCE = 0.01
_VANISHING = 0.2
_FALL = 0.9
# Upper bound of the significant digits of a radius, which has as many as the extrapolations agree on.
_MOST_DIGITS = 4


class Radius(NamedTuple):
    """A radius and the method that found it; both None where the coefficients do not determine one."""

    value: float | None
    method: str | None


def suggested_radius(coefficients: Sequence[float]) -> Radius:
    """An estimate of the radius of convergence of a series with these first coefficients.

    The ratios of successive coefficients are extrapolated in 1/n to n = ∞ (C. Domb and M. F. Sykes, Proc. R. Soc. A 240
    (1957) 214). They settle where the nearest singularity is one on the real axis, or where a power of x maps several
    to one. Otherwise the quotients of B. Mercer and A. J. Roberts, SIAM J. Appl. Math. 50 (1990) 1547, for a conjugate
    pair of singularities, are extrapolated. The radius is infinite where the ratios tend to 0, or where the
    coefficients end.
    """
    places = [n for n, c in enumerate(coefficients) if c]
    if not all(map(math.isfinite, coefficients)) or len(coefficients) < ENOUGH:
        return Radius(None, None)
    if not places or places[-1] < len(coefficients) // 2:
        return Radius(math.inf, "the coefficients end")
    step = math.gcd(*(b - a for a, b in pairwise(places)))
    found = [coefficients[n] for n in range(places[0], len(coefficients), step)]
    # Drop the first third, where the ratios may not yet follow the trend.
    found = found[-(len(found) * 2 // 3) :]
    last = (len(coefficients) - 1 - places[0]) // step + places[0] // step
    if len(found) < _FEWEST:
        return Radius(None, None)
    for method, values, order in (("Domb-Sykes", _ratios(found), 2), ("Mercer-Roberts", _pairs(found), 1)):
        found_limit = _limit(values, last, order)
        if found_limit is not None:
            limit, digits = found_limit
            return Radius(math.inf if limit == 0.0 else float(f"{abs(limit) ** (-1.0 / step):.{digits}g}"), method)
    return Radius(None, None)


def _ratios(found: Sequence[float]) -> list[float]:
    return [b / a if a else math.nan for a, b in pairwise(found)]


def _pairs(found: Sequence[float]) -> list[float]:
    """The reciprocals of radii of convergence for conjugate pairs of singularities, each from four successive
    coefficients."""
    values = []
    for a, b, c, d in zip(found, found[1:], found[2:], found[3:]):
        above, below = d * b - c * c, c * a - b * b
        values.append(math.sqrt(above / below) if below and above / below > 0.0 else math.nan)
    return values


def _limit(values: Sequence[float], last: int, order: int) -> tuple[float, int] | None:
    """The limit for n → ∞ of values, the last of which belongs to n = `last`, by polynomial extrapolation of this order
    in 1/n, and the number of digits on which the extrapolations agree; None where they do not settle."""
    first = last - len(values) + 1
    if not all(map(math.isfinite, values)):
        return None
    found = [*values]
    for k in range(1, order + 1):
        found = [((n + k) * b - n * a) / k for n, (a, b) in enumerate(pairwise(found), first)]
    found = found[len(found) // 2 :]
    if _vanishes(values, first) and max(map(abs, found)) <= _VANISHING * abs(values[len(values) // 2]):
        return 0.0, _MOST_DIGITS
    apart = max(found) - min(found)
    if apart > _TOLERANCE * abs(found[-1]):
        return None
    return found[-1], min(_MOST_DIGITS, math.floor(math.log10(abs(found[-1]) / apart))) if apart else _MOST_DIGITS


def _vanishes(values: Sequence[float], first: int) -> bool:
    """Whether values fall at least about as fast as 1/n."""
    middle = len(values) // 2
    shares = [abs(values[i]) * (first + i) ** _FALL for i in (middle, -1 % len(values))]
    return bool(0.0 < shares[1] <= shares[0])
