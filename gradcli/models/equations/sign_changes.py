"""Roots of one equation in one unknown: in a bracket for certain, and all of them where signs change in a range."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import EvaluationError, GradcliError, LimitError
from gradcli.models.equations.systems import System

# Points at which signs are looked at.
_SAMPLES = 2_001
# The most halvings of a bracket of floats, which are some 2**64.
_MOST_HALVINGS = 200
_EPSILON = 2.0**-52
# By so many units in the last place may a root be off, and by so much has a residual fallen that came from a side of it.
_ULPS, _FALL = 64.0, 1e-12
# A value where a function turns that is 0 as far as floats tell, beside what it changes over the range.
_TOUCHING = 16.0


class Crossing(NamedTuple):
    """Where a sign changes: at a root, or at a pole or a jump, as `kind` says: `root`, `double root`, `pole`, `jump`."""

    point: float
    kind: str


class ScalarEquation:
    """One equation of one unknown: the difference of its sides, and its derivative."""

    def __init__(self, system: System) -> None:
        self.system = system
        (self.name,) = system.packing.shapes

    def value(self, x: float) -> float:
        xp = arrays.numpy_namespace()
        return float(self.system.residual(xp.asarray([x]))[0])

    def slope(self, x: float) -> float:
        xp = arrays.numpy_namespace()
        return float(self.system.jacobian(xp.asarray([x]))[0, 0])

    def sampled(self, low: float, high: float) -> tuple[Any, Any, Any]:
        """Points, and the values and slopes there."""
        xp = arrays.numpy_namespace()
        points = xp.linspace(low, high, _SAMPLES)
        try:
            values, found = self.system.program.value_and_grad(
                {**self.system.constants, self.name: points}, [self.name], rows=[self.name]
            )
            slopes = xp.zeros(len(points)) if found[self.name] is None else xp.ravel(found[self.name])
            return points, xp.ravel(values), slopes
        except LimitError:
            raise
        except GradcliError:
            # Somewhere there is no value.
            return points, xp.asarray([*map(self.value, points)]), xp.asarray([*map(self.slope, points)])


def root_between(curve: ScalarEquation, low: float, high: float) -> Crossing:
    """Where the sign changes between two numbers. Raises EvaluationError where it does not."""
    with arrays.quiet():
        ends = curve.value(low), curve.value(high)
        if math.isnan(ends[0]) or math.isnan(ends[1]) or _are_opposite(ends[0], -ends[1]):
            raise EvaluationError(
                f"there is no change of sign between {curve.name}={low:g} and {curve.name}={high:g}: "
                f"left - right is {ends[0]:.6g} and {ends[1]:.6g}",
                hint="--all finds all changes of sign inside of a range",
                span=curve.system.equations.places[0],
                source=curve.system.equations.program.source,
            )
        return _between(curve, low, high, *ends)


def all_crossings(curve: ScalarEquation, low: float, high: float) -> list[Crossing]:
    """Every change of sign that points of a range show, and every touch of 0 between them."""
    with arrays.quiet():
        points, values, slopes = curve.sampled(low, high)
        found = [Crossing(float(x), "root") for x, v in zip(points, values) if v == 0.0]
        for (a, fa, da), (b, fb, db) in pairwise(zip(points.tolist(), values.tolist(), slopes.tolist())):
            if _are_opposite(fa, fb):
                found.append(_between(curve, a, b, fa, fb))
            elif _are_opposite(fa, -fb) and _are_opposite(fa, da) and _are_opposite(fb, -db):
                found += _turning(curve, (a, fa), (b, fb))
        return sorted(set(found))


def _are_opposite(a: float, b: float) -> bool:
    """Whether one is above 0 and the other below: their product could be too small for a float."""
    return a < 0.0 < b or b < 0.0 < a


def _turning(curve: ScalarEquation, left: tuple[float, float], right: tuple[float, float]) -> Iterator[Crossing]:
    """The roots between two points of one sign, between which the function turns back from 0."""
    (a, fa), (b, fb) = left, right
    inner, outer = a, b
    for _ in range(_MOST_HALVINGS):
        middle = _middle(inner, outer)
        if middle in (inner, outer):
            break
        if _are_opposite(fa, curve.slope(middle)):
            inner = middle
        else:
            outer = middle
    turn = min(inner, outer, key=lambda x: abs(curve.value(x)))
    value = curve.value(turn)
    if _are_opposite(value, fa):
        yield _between(curve, a, turn, fa, value)
        yield _between(curve, turn, b, value, fb)
    elif abs(value) <= _TOUCHING * _EPSILON * max(abs(fa), abs(fb)):
        yield Crossing(turn, "double root")


def _between(curve: ScalarEquation, low: float, high: float, at_low: float, at_high: float) -> Crossing:
    """Where the sign changes, by Newton steps where these stay in the bracket and make it smaller by half, else by
    halving it, down to neighbouring floats."""
    largest = max(abs(at_low), abs(at_high))
    for end, value in ((low, at_low), (high, at_high)):
        if value == 0.0:
            return Crossing(end, "root")
    x = low if abs(at_low) < abs(at_high) else high
    value, before = curve.value(x), high - low
    for _ in range(_MOST_HALVINGS):
        slope = curve.slope(x)
        tried = x - value / slope if slope else math.nan
        step = abs(tried - x)
        if not low < tried < high or not step < before / 2.0:
            tried = _middle(low, high)
            if tried in (low, high):
                break
            step = high - low
        elif step <= _EPSILON * abs(tried):
            # The root is next to it: the other side of it makes the bracket small.
            tried = math.nextafter(tried, high if (value < 0.0) == (at_low < 0.0) else low)
        before, x, value = step, tried, curve.value(tried)
        if value == 0.0:
            return Crossing(x, "root")
        if math.isnan(value):
            return Crossing(x, "jump")
        if (value < 0.0) == (at_low < 0.0):
            low, at_low = x, value
        else:
            high, at_high = x, value
    return _kind(curve, min((low, at_low), (high, at_high), key=lambda end: abs(end[1])), largest)


def _kind(curve: ScalarEquation, nearest: tuple[float, float], largest: float) -> Crossing:
    x, value = nearest
    slope = curve.slope(x)
    if abs(value) <= max(_FALL * largest, _ULPS * _EPSILON * abs(x * slope)) and not abs(value) > largest:
        return Crossing(x, "root")
    return Crossing(x, "pole" if not abs(value) <= largest else "jump")


def _middle(low: float, high: float) -> float:
    """A number between two others, about as many floats from each."""
    if low < 0.0 < high:
        return 0.0
    if abs(low) > 2.0 * abs(high) > 0.0 or abs(high) > 2.0 * abs(low) > 0.0:
        return math.copysign(math.sqrt(abs(low)) * math.sqrt(abs(high)), low)
    return low + (high - low) / 2.0
