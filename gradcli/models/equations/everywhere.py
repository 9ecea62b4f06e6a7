"""Roots of one equation in one unknown of which nothing else is said: those near 0, and those where signs change between points
of all sizes that floats have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gradcli import arrays
from gradcli.models.equations.sign_changes import AllCrossings, Crossing, ScalarEquation, all_crossings, change_of_sign

# Within this every root is looked for, as in a range.
NEAR = 10.0
# Beyond it there are so many points between a power of 2 and the next, of which this is the last one.
_POINTS, _LAST = 32, 1023
# More changes of sign beyond are those of what oscillates, and counted alone.
_MOST_BEYOND = 50


class Everywhere(NamedTuple):
    """What was found, how many changes of sign beyond `NEAR` were counted alone, and at how many points it was looked."""

    near: AllCrossings
    beyond: list[Crossing]
    left_out: int
    points: int


def crossings_everywhere(curve: ScalarEquation, is_noisy: Callable[[float], bool]) -> Everywhere:
    """Changes of sign, and touches of 0, of an equation anywhere among the floats."""
    xp = arrays.numpy_namespace()
    near = all_crossings(curve, -NEAR, NEAR, is_noisy)
    exponents = xp.arange(xp.log2(NEAR), _LAST, 1.0 / _POINTS)
    beyond: list[Crossing] = []
    left_out = 0
    with arrays.quiet():
        for side in (-1.0, 1.0):
            points = xp.sort(side * 2.0**exponents)
            values = curve.sampled(points)[0]
            signs = xp.sign(values)
            changes = xp.flatnonzero(signs[:-1] * signs[1:] < 0)
            # Zeros beside others are those of a stretch, or what values are rounded to.
            padded = xp.concatenate([[True], values == 0.0, [True]])
            zeros = xp.flatnonzero(padded[1:-1] & ~padded[:-2] & ~padded[2:])
            if len(changes) + len(zeros) > _MOST_BEYOND:
                left_out += len(changes) + len(zeros)
                continue
            beyond += [Crossing(float(points[n]), "root") for n in zeros]
            for n in changes:
                ends = [float(each[k]) for each in (points, values) for k in (n, n + 1)]
                beyond.append(change_of_sign(curve, *ends))
    return Everywhere(near, sorted(beyond), left_out, 2 * len(exponents) + len(near.found))
