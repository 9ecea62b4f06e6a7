"""All roots of one equation in one unknown without a start or a range: those near 0, and those where the sign changes
between points of all orders of magnitude."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gradcli import arrays
from gradcli.models.equations.sign_changes import AllCrossings, Crossing, ScalarEquation, all_crossings, change_of_sign

# Roots of at most this absolute value are looked for as in a range.
NEAR = 10.0
# Beyond it, the equation is sampled at `_POINTS` points per power of 2, up to 2**`_LAST`.
_POINTS, _LAST = 32, 1023
# If there are more sign changes beyond `NEAR`, the function oscillates, and they are only counted.
_MOST_BEYOND = 50


class Everywhere(NamedTuple):
    """The crossings near 0 and beyond `NEAR`, the number of sign changes beyond `NEAR` that were only counted
    (`left_out`), and the number of sample points."""

    near: AllCrossings
    beyond: list[Crossing]
    left_out: int
    points: int


def crossings_everywhere(curve: ScalarEquation, is_noisy: Callable[[float], bool]) -> Everywhere:
    """The sign changes and double roots of an equation anywhere among the floats; double roots only up to `NEAR`."""
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
            # Adjacent zeros belong to an interval of zeros, or to values that round to 0.
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
