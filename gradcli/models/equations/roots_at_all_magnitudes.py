"""Sign changes and zeros of one equation in one unknown anywhere among the floats, sampled at all powers of 2: roots
that are many orders of magnitude away from the start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradcli import arrays
from gradcli.models.equations.sign_changes import ScalarEquation, change_of_sign

# The least and the greatest exponent of the powers of 2 that are floats.
_LEAST, _MOST = -1074, 1023


class FarZero(NamedTuple):
    """A point that may be a root, and whether the sign changes there."""

    point: float
    changes_sign: bool


def far_zeros(curve: ScalarEquation, start: float) -> Iterator[FarZero]:
    """The points that may be roots, those with the fewest powers of 2 between them and a start first: isolated zeros,
    and sign changes between neighbouring powers of 2 that are not at a pole."""
    xp = arrays.numpy_namespace()
    powers = 2.0 ** xp.arange(_LEAST, _MOST + 1)
    points = xp.unique(xp.concatenate([-powers, powers, [0.0, start]]))
    values = curve.sampled(points)[0]
    place = int(xp.searchsorted(points, start))
    # Adjacent zeros belong to an interval of zeros, or to values that round to 0.
    padded = xp.concatenate([[True], values == 0.0, [True]])
    zeros = xp.flatnonzero(padded[1:-1] & ~padded[:-2] & ~padded[2:])
    changes = xp.flatnonzero(((values[:-1] < 0.0) & (values[1:] > 0.0)) | ((values[:-1] > 0.0) & (values[1:] < 0.0)))
    found = [(abs(int(n) - place), int(n), True) for n in zeros] + [
        # The distance of a sign change is that of its end nearer to the start.
        (abs(int(n) + (n < place) - place), int(n), False)
        for n in changes
    ]
    for _, n, is_zero in sorted(found):
        if is_zero:
            yield FarZero(float(points[n]), False)
            continue
        crossing = change_of_sign(curve, float(points[n]), float(points[n + 1]), float(values[n]), float(values[n + 1]))
        if crossing.kind == "root":
            yield FarZero(crossing.point, True)
