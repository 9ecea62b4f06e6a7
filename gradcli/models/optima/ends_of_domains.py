"""Minima at bounds at which an objective ends with an infinite slope, as `sqrt(x)` at 0."""

from __future__ import annotations

import math

from gradcli import arrays
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.posing import PosedObjective

# How near to its bound a variable is, beside both and how far it began from there, that may end on it.
_NEAR = 1e-6


def at_infinite_slopes(posed: PosedObjective, found: SearchEnd) -> SearchEnd:
    """The point with the variables that are next to bounds on these, where the objective is lower there and falls towards
    them infinitely steeply, so that no search comes to an end; else the point as it is."""
    np = arrays.numpy_namespace()
    x = found.point
    point, moved = x.copy(), np.zeros(len(x), bool)
    for bound in (posed.low, posed.high):
        with np.errstate(invalid="ignore"):
            reach = np.maximum(np.maximum(abs(x), abs(bound)), np.minimum(abs(posed.start - bound), 1.0))
            near = np.isfinite(bound) & (abs(x - bound) <= _NEAR * reach) & (x != bound)
        point, moved = np.where(near, bound, point), moved | near
    if not moved.any():
        return found
    gradient = posed.objective.sign * posed.objective.value_and_gradient(point)[1]
    outward = np.where(point >= posed.high, -math.inf, math.inf)
    steep = moved & (gradient == outward)
    if not steep.any() or not np.isfinite(gradient[~steep]).all():
        return found
    point = np.where(steep, point, x)
    value = posed.objective.value(point)
    if not -math.inf < value <= found.value:
        return found
    return found._replace(point=point, value=value, gradient=np.where(steep, outward, gradient))
