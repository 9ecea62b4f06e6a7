"""Descent to minima at which an objective is not smooth: BFGS whose steps meet the weak conditions of Wolfe, after A. S.
Lewis and M. L. Overton, "Nonsmooth optimization via quasi-Newton methods", Math. Program. 141 (2013) 135. From a kink at
which that ends it leads down against the shortest mean of gradients nearby, as in `kinks`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.optima.kinks import shortest_mean
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.objectives import Objective
from gradcli.models.results import Iteration, Watcher

# The shares of the first slope by which a step lowers the objective at least, and that are left of it at most.
_LOWERS, _LEFT = 1e-4, 0.9
# Halvings and doublings of a step; how often it is left from a kink, as long as that gains this share of the objective.
_MOST_TRIALS, _MOST_STARTS, _GAIN = 60, 40, 1e-14
# How far from a kink gradients are taken, beside the sizes of its variables, for how many variables, and how many for
# each of them and beside.
_NEARBY, _MOST_VARIABLES, _FOR_EACH, _BESIDE = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), 50, 2, 4


class _Place(NamedTuple):
    point: Any
    value: float
    gradient: Any


def descend(
    objective: Objective, found: SearchEnd, start: Any, low: Any, high: Any, most: int, watch: Watcher
) -> SearchEnd:
    """The lowest point from where a search from `start` is stuck, `low` and `high` being what it stays between, in at most
    `most` iterations together; `found` itself where nothing is lower."""
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
    # The approximate inverse of the Hessian.
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
    """The lowest point that gradients nearby lead to from a kink, where variables are of sizes that are at `least` these;
    None where none is found."""
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
        # Squares of large numbers are no floats.
        longest = float(np.linalg.norm(gradients / largest, axis=1).max())
        direction = -shortest_mean(gradients / largest / longest * sizes) * sizes
        steepest = float(np.linalg.norm(direction / sizes))
        # A step that only need be down by what the mean promises.
        slope = -longest * steepest**2 * largest
        for halvings in range(_MOST_TRIALS if steepest else 0):
            size = 0.5**halvings
            point = np.clip(at.point + size * direction, *bounds)
            value, gradient = objective.value_and_gradient(point)
            if value < at.value + _LOWERS * size * slope:
                # Gradients from too far away or from one side alone lead down by next to nothing.
                lowest = _Place(point, value, gradient) if lowest is None or value < lowest.value else lowest
                break
    return lowest


def _step(objective: Objective, at: _Place, direction: Any, bounds: tuple[Any, Any]) -> _Place | None:
    """Where a step leads that lowers the objective and leaves less of its slope; None where no such step is found, or
    that which lowers it most."""
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
