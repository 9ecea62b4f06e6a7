"""Where values of one variable are exactly 0: at a point, throughout a stretch, or because they are too small for floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# The most halvings between two floats, of which there are some 2**64.
_MOST_HALVINGS = 200
# A stretch that is no wider beside where it was looked for is a point: around a root of a high order floats are 0.
_NARROW = 1e-6
# How far from its edge it is looked whether values grow, in shares of the same, and as how many neighbouring floats.
_BESIDE, _ULPS = 1e-9, 8.0
# Values below the first that are less than `_GROWTH` times as large at a distance that is `_FURTHER` times as great grow as
# exponentials do, and not as they do from a root.
_TINY, _FURTHER, _GROWTH = 1e-280, 100.0, 10.0


class Zeros(NamedTuple):
    """From where to where values are 0, and whether they `underflow` there, so that they need not be."""

    low: float
    high: float
    underflow: bool

    @property
    def is_point(self) -> bool:
        return self.low == self.high and not self.underflow


def zeros_around(
    value: Callable[[float], float], first: float, last: float, low: float | None, high: float | None
) -> Zeros:
    """What is 0 around two points, which may be one, between which values are: as far as `low` and `high`, where they are
    not, or as the points where these are None."""
    left, left_underflows = (first, False) if low is None else _edge(value, first, low)
    right, right_underflows = (last, False) if high is None else _edge(value, last, high)
    reach = max(0.0 if low is None else first - low, 0.0 if high is None else high - last)
    underflow = left_underflows or right_underflows
    if right - left <= _NARROW * reach and not (underflow and (low is None or high is None)):
        return Zeros(first, first, False)
    return Zeros(left, right, underflow)


def _edge(value: Callable[[float], float], zero: float, other: float) -> tuple[float, bool]:
    """The last point towards another at which a value is 0, and whether it underflows beyond it."""
    inside, outside = zero, other
    for _ in range(_MOST_HALVINGS):
        tried = middle(min(inside, outside), max(inside, outside))
        if tried in (inside, outside):
            break
        if value(tried) == 0.0:
            inside = tried
        else:
            outside = tried
    step = max(_BESIDE * abs(other - zero), _ULPS * math.ulp(inside))
    step = math.copysign(step, other - zero)
    beside = abs(value(inside + step))
    return inside, beside < _TINY and abs(value(inside + _FURTHER * step)) < _GROWTH * beside


def middle(low: float, high: float) -> float:
    """A number between two others, about as many floats from each."""
    if low < 0.0 < high:
        return 0.0
    if abs(low) > 2.0 * abs(high) > 0.0 or abs(high) > 2.0 * abs(low) > 0.0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low)
    return low + (high - low) / 2.0
