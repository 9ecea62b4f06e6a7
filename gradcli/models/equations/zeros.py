"""Why values of a function of one variable are exactly 0: at a root, throughout an interval, or because they round to
0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# Upper bound of bisection steps: there are about 2**64 floats, and `middle` halves an interval by their number.
MAX_HALVINGS = 200
# An interval of zeros that is at most this share of the range counts as a point: around a root at which a function is
# flat, floats are 0.
_NARROW = 1e-3
# The distance from the edge of an interval of zeros at which values are tested for growth: at least `_BESIDE` times the
# distance to the next value that is not 0, and at least `_ULPS` units in the last place.
_BESIDE, _ULPS = 1e-9, 8.0
# Values below `_ROUNDED` times the scale of the others, or below `_TINY`, may be rounded to 0 further on. They are,
# where a distance `_FURTHER` times as great makes them grow by less than `_GROWTH`: values grow faster near a root, but
# not in a tail such as those of `exp(-x)` and `1 - tanh(x)`.
_ROUNDED, _TINY = 1e-13, 1e-280
_FURTHER, _GROWTH = 100.0, 10.0
# The least growth of values from 1 to 10 widths beyond a narrow interval of zeros that shows a root in it.
_ROOT_GROWTH = 5.0

Curve = Callable[[float], float]


class ZeroInterval(NamedTuple):
    """The interval in which values are 0, and whether they are `rounded` to 0, so that the function need not be 0
    there."""

    low: float
    high: float
    rounded: bool

    @property
    def is_point(self) -> bool:
        return self.low == self.high and not self.rounded


class SearchScale(NamedTuple):
    """The width of the range in which zeros are looked for, and the scale of the values there."""

    width: float
    scale: float


def zeros_around(
    value: Curve, first: float, last: float, low: float | None, high: float | None, among: SearchScale
) -> ZeroInterval:
    """The zeros that contain the interval from `first` to `last`, which may be one point. `low` and `high` are points
    on both sides at which values are not 0; where one is None, the interval ends on that side at `first` or `last`."""
    left, right = (
        None if other is None else last_point(lambda x: value(x) == 0.0, zero, other)
        for zero, other in ((first, low), (last, high))
    )
    begin, end = (first if left is None else left), (last if right is None else right)
    is_narrow = end - begin <= _NARROW * among.width
    if is_narrow and left is not None and right is not None:
        return ZeroInterval(first, first, False)
    edges = [(e, o) for e, o in ((left, low), (right, high)) if e is not None and o is not None]
    rounded = any(_is_rounded(value, edge, other, among.scale) for edge, other in edges)
    if is_narrow and (not rounded or any(_grows(value, edge, other, end - begin) for edge, other in edges)):
        return ZeroInterval(first, first, False)
    return ZeroInterval(begin, end, rounded)


def last_point(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point between `inside`, where a predicate holds, and `outside`, where it does not, at which it holds, by
    bisection."""
    for _ in range(MAX_HALVINGS):
        tried = middle(min(inside, outside), max(inside, outside))
        if tried in (inside, outside):
            break
        if holds(tried):
            inside = tried
        else:
            outside = tried
    return inside


def _is_rounded(value: Curve, edge: float, other: float, scale: float) -> bool:
    """Whether values beyond an edge grow from 0 so slowly that they were rounded to 0 before it."""
    step = math.copysign(max(_BESIDE * abs(other - edge), _ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside < max(_TINY, _ROUNDED * scale) and abs(value(edge + _FURTHER * step)) < _GROWTH * beside


def _grows(value: Curve, edge: float, other: float, width: float) -> bool:
    """Whether values beyond the edge of a narrow interval of zeros grow as they do from a root."""
    step = math.copysign(max(width, _ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside >= _TINY and abs(value(edge + 10.0 * step)) >= _ROOT_GROWTH * beside


def middle(low: float, high: float) -> float:
    """A number between two others with about as many floats on either side: geometric where their sizes differ."""
    if low < 0.0 < high:
        return 0.0
    if abs(low) > 2.0 * abs(high) > 0.0 or abs(high) > 2.0 * abs(low) > 0.0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low)
    return low + (high - low) / 2.0
