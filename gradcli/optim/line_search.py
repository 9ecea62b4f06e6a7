"""Line search for a step length that satisfies the strong Wolfe conditions.

J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition (Springer 2006), algorithms 3.5 and 3.6, with the
constants of PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.named_tuples import NamedTuple

# The constants c1 (sufficient decrease) and c2 (curvature) of the conditions.
_FALL, _SLOPE = 1e-4, 0.9


class TrialStep(NamedTuple):
    """A step length, the loss and the gradient after the step, and the slope of the loss along the direction."""

    length: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    at: Callable[[float], TrialStep], start: TrialStep, length: float, size: float, tolerance: float, most: int
) -> tuple[TrialStep, int]:
    """A point that satisfies the conditions, or the lowest one found, and the number of evaluations: at most `most` or
    one more. `size` is the largest component of the direction; a bracket in which no parameter changes by more than
    `tolerance` is not divided further."""

    def too_high(point: TrialStep) -> bool:
        return point.loss > start.loss + _FALL * point.length * start.slope

    def is_flat(point: TrialStep) -> bool:
        return abs(point.slope) <= -_SLOPE * start.slope

    before, now = start, at(length)
    tried, done = 0, False
    bracket = [start, now]
    while tried < most:
        bracket = [before, now]
        if too_high(now) or (tried > 1 and now.loss >= before.loss):
            break
        if is_flat(now):
            return now, tried + 1
        if now.slope >= 0:
            break
        low, high = now.length + 0.01 * (now.length - before.length), now.length * 10
        before, now = now, at(_cubic_minimum(before, now, low, high))
        tried += 1
    if tried == most:
        bracket = [start, now]
    stalled = False
    low_place = 0 if bracket[0].loss <= bracket[-1].loss else 1
    while not done and tried < most:
        first, last = sorted(point.length for point in bracket)
        if (last - first) * size < tolerance:
            break
        length = _cubic_minimum(bracket[0], bracket[1], first, last)
        length, stalled = _away_from_ends(length, first, last, stalled)
        now = at(length)
        tried += 1
        if too_high(now) or now.loss >= bracket[low_place].loss:
            bracket[1 - low_place] = now
            low_place = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if is_flat(now):
            done = True
        elif now.slope * (bracket[1 - low_place].length - bracket[low_place].length) >= 0:
            bracket[1 - low_place] = bracket[low_place]
        bracket[low_place] = now
    return bracket[low_place], tried + 1


def _away_from_ends(length: float, first: float, last: float, stalled: bool) -> tuple[float, bool]:
    """A length inside the bracket, moved away from its ends the second time in a row that it is close to them; and
    whether it is close."""
    margin = 0.1 * (last - first)
    if min(last - length, length - first) >= margin:
        return length, False
    if stalled or length >= last or length <= first:
        return (last - margin if abs(length - last) < abs(length - first) else first + margin), False
    return length, True


def _cubic_minimum(one: TrialStep, other: TrialStep, low: float, high: float) -> float:
    """The minimum of the cubic through two points with their slopes, clipped to [low, high]."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    apart = right.length - left.length
    if not apart:
        return min(max(left.length, low), high)
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / -apart
    square = mean**2 - left.slope * right.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = right.slope - left.slope + 2 * root
    if not below:
        return (low + high) / 2
    return min(max(right.length - apart * ((right.slope + root - mean) / below), low), high)
