"""Descent to minima at which the objective is not smooth.

BFGS with a line search by the weak Wolfe conditions, after A. S. Lewis and M. L. Overton, "Nonsmooth optimization via
quasi-Newton methods", Math. Program. 141 (2013) 135. From a kink where it is stuck, the search continues along the
negative of the shortest convex combination of gradients nearby, as in `kinks`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.optima.gradient_sampling import shortest_mean
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.objectives import Objective
from gradcli.models.results import Iteration, Watcher

# Weak Wolfe conditions: the share of the initial slope by which a step must lower the objective, and the largest share
# of it that may be left.
_LOWERS, _LEFT = 1e-4, 0.9
# Upper bounds of the halvings and doublings of a step, and of the restarts from a kink, which go on as long as each
# lowers the objective by more than the share `_GAIN`.
_MOST_TRIALS, _MOST_STARTS, _GAIN = 60, 40, 1e-14
# Distances from a kink at which gradients are sampled, relative to the variables; the upper bound of the variables; and
# the number of gradients, `_FOR_EACH` per variable and `_BESIDE` more.
_NEARBY, _MOST_VARIABLES, _FOR_EACH, _BESIDE = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), 50, 2, 4


class _Place(NamedTuple):
    point: Any
    value: float
    gradient: Any


def descend(
    objective: Objective, found: SearchEnd, start: Any, low: Any, high: Any, most: int, watch: Watcher
) -> SearchEnd:
    """The lowest point reached from where a search from `start` is stuck, between `low` and `high` and in at most
    `most` iterations in total; `found` itself where nothing is lower."""
    at = _Place(found.point, found.value, found.gradient)
    number = found.iterations
    np = arrays.numpy_namespace()
    generator, least = np.random.default_rng(0), np.where(start != 0.0, np.minimum(abs(start), 1.0), 1.0)
    for _ in range(_MOST_STARTS):
        at, number = _from(objective, at, (low, high), number, most, watch)
        left = _left(objective, at, least, (low, high), generator)
        if number >= most or left is None or not at.value - left.value > _GAIN * abs(at.value):
            break
        at = left
    if not at.value < found.value:
        return found
    return found._replace(point=at.point, value=at.value, gradient=at.gradient, iterations=number)


def _from(
    objective: Objective, at: _Place, bounds: tuple[Any, Any], number: int, most: int, watch: Watcher
) -> tuple[_Place, int]:
    np = arrays.numpy_namespace()
    # The approximate inverse Hessian of BFGS.
    inverse = np.eye(len(at.point))
    is_first = True
    while number < most:
        direction = -inverse @ at.gradient
        after = _step(objective, at, direction, bounds)
        if after is None:
            break
        number += 1
        watch(Iteration(number, objective.sign * after.value, float(np.linalg.norm(after.gradient)), after.point))
        moved, turned = after.point - at.point, after.gradient - at.gradient
        at, along = after, float(moved @ turned)
        if not along > 0.0:
            break
        if is_first:
            inverse, is_first = along / float(turned @ turned) * np.eye(len(moved)), False
        left = np.eye(len(moved)) - np.outer(moved, turned) / along
        inverse = left @ inverse @ left.T + np.outer(moved, moved) / along
        if not np.isfinite(inverse).all():
            break
    return at, number


def _left(objective: Objective, at: _Place, least: Any, bounds: tuple[Any, Any], generator: Any) -> _Place | None:
    """The lowest point to which sampled gradients lead from a kink, with variables scaled by their sizes or at least by
    `least`; None where none is found."""
    np = arrays.numpy_namespace()
    count = len(at.point)
    if count > _MOST_VARIABLES:
        return None
    sizes = np.maximum(abs(at.point), least)
    lowest: _Place | None = None
    for share in _NEARBY:
        moves = share * sizes * generator.uniform(-1.0, 1.0, (_FOR_EACH * count + _BESIDE, count))
        rows = [at.gradient, *(objective.value_and_gradient(np.clip(at.point + m, *bounds))[1] for m in moves)]
        finite = [row for row in rows if np.isfinite(row).all()]
        if not finite:
            return lowest
        gradients = np.stack(finite)
        largest = float(abs(gradients).max())
        if not largest:
            return lowest
        # Dividing by the largest element avoids overflow of squares.
        longest = float(np.linalg.norm(gradients / largest, axis=1).max())
        direction = -shortest_mean(gradients / largest / longest * sizes) * sizes
        steepest = float(np.linalg.norm(direction / sizes))
        # The slope along the direction that the shortest combination predicts; a step must lower the objective by a
        # share of it.
        slope = -longest * steepest**2 * largest
        for halvings in range(_MOST_TRIALS if steepest else 0):
            size = 0.5**halvings
            point = np.clip(at.point + size * direction, *bounds)
            value, gradient = objective.value_and_gradient(point)
            if value < at.value + _LOWERS * size * slope:
                # The lowest result over all distances is kept, since gradients from too far away or from one side only
                # give little descent.
                lowest = _Place(point, value, gradient) if lowest is None or value < lowest.value else lowest
                break
    return lowest


def _step(objective: Objective, at: _Place, direction: Any, bounds: tuple[Any, Any]) -> _Place | None:
    """The end of a step that meets the weak Wolfe conditions; where none is found, that of the last step that lowers
    the objective enough, or None."""
    slope = float(at.gradient @ direction)
    if not slope < 0.0:
        return None
    low, high = bounds
    shortest, longest, size = 0.0, math.inf, 1.0
    lowered: _Place | None = None
    for _ in range(_MOST_TRIALS):
        point = at.point + size * direction
        inside = bool((low <= point).all() and (point <= high).all())
        value, gradient = objective.value_and_gradient(point) if inside else (math.inf, at.gradient)
        if not value < at.value + _LOWERS * size * slope:
            longest = size
        else:
            lowered = _Place(point, value, gradient)
            if float(gradient @ direction) >= _LEFT * slope:
                return lowered
            shortest = size
        size = (shortest + longest) / 2.0 if longest < math.inf else 2.0 * shortest
    return lowered
