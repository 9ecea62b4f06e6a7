"""Where values of one variable are exactly 0: at a point, throughout a stretch, or because they are rounded to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# The most halvings between two floats, of which there are some 2**64.
_MOST_HALVINGS = 200
# A stretch between numbers that are not 0 that is no wider, beside the range it is in, is a point: floats are 0 around
# roots where a function is flat.
_NARROW = 1e-3
# How far from its edge it is looked whether values grow, beside how far others are, and as how many neighbouring floats.
_BESIDE, _ULPS = 1e-9, 8.0
# Values below these, beside others and beside 1, may be rounded to 0. Those that are less than `_GROWTH` times as large
# at a distance that is `_FURTHER` times as great do not grow as from a root, but as `exp(-x)` and `1 - tanh(x)` do.
_ROUNDED, _TINY = 1e-13, 1e-280
_FURTHER, _GROWTH = 100.0, 10.0
# How much greater values are at 10 times the width of a stretch than at one, if they grow from a root in it.
_ROOT_GROWTH = 5.0

Curve = Callable[[float], float]


class Zeros(NamedTuple):
    """From where to where values are 0, and whether they are `rounded` to it, so that they need not be."""

    low: float
    high: float
    rounded: bool

    @property
    def is_point(self) -> bool:
        return self.low == self.high and not self.rounded


class Range(NamedTuple):
    """The width of a range in which zeros are looked for, and the size of values there."""

    width: float
    scale: float


def zeros_around(value: Curve, first: float, last: float, low: float | None, high: float | None, among: Range) -> Zeros:
    """What is 0 around two points, which may be one, between which values are: as far as `low` and `high`, where they are
    not, or as the points where these are None."""
    left, right = (
        None if other is None else last_point(lambda x: value(x) == 0.0, zero, other)
        for zero, other in ((first, low), (last, high))
    )
    begin, end = (first if left is None else left), (last if right is None else right)
    is_narrow = end - begin <= _NARROW * among.width
    if is_narrow and left is not None and right is not None:
        return Zeros(first, first, False)
    edges = [(e, o) for e, o in ((left, low), (right, high)) if e is not None and o is not None]
    rounded = any(_is_rounded(value, edge, other, among.scale) for edge, other in edges)
    if is_narrow and (not rounded or any(_grows(value, edge, other, end - begin) for edge, other in edges)):
        return Zeros(first, first, False)
    return Zeros(begin, end, rounded)


def last_point(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point on the way from one where something holds to one where it does not, at which it does."""
    for _ in range(_MOST_HALVINGS):
        tried = middle(min(inside, outside), max(inside, outside))
        if tried in (inside, outside):
            break
        if holds(tried):
            inside = tried
        else:
            outside = tried
    return inside


def _is_rounded(value: Curve, edge: float, other: float, scale: float) -> bool:
    """Whether values beyond an edge become so slowly what is not 0 that they were rounded to it before."""
    step = math.copysign(max(_BESIDE * abs(other - edge), _ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside < max(_TINY, _ROUNDED * scale) and abs(value(edge + _FURTHER * step)) < _GROWTH * beside


def _grows(value: Curve, edge: float, other: float, width: float) -> bool:
    """Whether values beyond the edge of a narrow stretch grow as from a root in it."""
    step = math.copysign(max(width, _ULPS * math.ulp(edge)), other - edge)
    beside = abs(value(edge + step))
    return beside >= _TINY and abs(value(edge + 10.0 * step)) >= _ROOT_GROWTH * beside


def middle(low: float, high: float) -> float:
    """A number between two others, about as many floats from each."""
    if low < 0.0 < high:
        return 0.0
    if abs(low) > 2.0 * abs(high) > 0.0 or abs(high) > 2.0 * abs(low) > 0.0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low)
    return low + (high - low) / 2.0
