"""Minima at bounds at which the slope of the objective is infinite, as of `sqrt(x)` at 0."""

from __future__ import annotations

import math

from gradcli import arrays
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.optimization_problems import PosedObjective

# The distance from its bound, relative to the variable, the bound and the distance at the start, at which a variable
# may end on it.
_NEAR = 1e-6


def at_infinite_slopes(posed: PosedObjective, found: SearchEnd) -> SearchEnd:
    """The point with variables next to a bound moved onto it, where the objective is lower there and its slope towards
    the bound is infinite, so that no search reaches the bound; else the point unchanged."""
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
