"""Changes of sign anywhere among the floats: roots of an equation in one unknown that are far from its start, in powers
of 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradcli import arrays
from gradcli.models.equations.sign_changes import ScalarEquation, change_of_sign

# Exponents of the powers of 2 that are floats.
_LEAST, _MOST = -1074, 1023


class FarZero(NamedTuple):
    """A point at which an equation may hold, and whether signs change there."""

    point: float
    changes_sign: bool


def far_zeros(curve: ScalarEquation, start: float) -> Iterator[FarZero]:
    """Points at which an equation may hold, those with the fewest powers of 2 between them and a start first: what alone has
    the value 0, and where signs change between neighbouring powers of 2 but at a pole."""
    xp = arrays.numpy_namespace()
    powers = 2.0 ** xp.arange(_LEAST, _MOST + 1)
    points = xp.unique(xp.concatenate([-powers, powers, [0.0, start]]))
    values = curve.sampled(points)[0]
    place = int(xp.searchsorted(points, start))
    # Zeros that are next to each other are those of a stretch, or what values are rounded to.
    padded = xp.concatenate([[True], values == 0.0, [True]])
    zeros = xp.flatnonzero(padded[1:-1] & ~padded[:-2] & ~padded[2:])
    changes = xp.flatnonzero(((values[:-1] < 0.0) & (values[1:] > 0.0)) | ((values[:-1] > 0.0) & (values[1:] < 0.0)))
    found = [(abs(int(n) - place), int(n), True) for n in zeros] + [
        # A change on the way to a start is as far as its nearer end.
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
