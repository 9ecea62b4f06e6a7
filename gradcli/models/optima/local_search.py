"""The choice of the method of a local search, where the user does not make it."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.errors import LimitError, UsageError
from gradcli.models.optima import scipy_methods
from gradcli.models.optima.constrained import constrained, polished
from gradcli.models.optima.newton import STUCK, NewtonEnd, NoHessianError, newton
from gradcli.models.optima.objectives import MOST_DENSE, Objective
from gradcli.models.optima.optimization_problems import OptimizationProblem
from gradcli.models.optima.verdicts import shortest_convex_combination
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple


def search(posed: OptimizationProblem, start: Any, method: str, most: int, watch: ProgressCallback) -> NewtonEnd:
    """Minimise from `start` by the given method, or by a suitable one: Newton's method where the Hessian is small
    enough to solve with or is sparse; else one of Hessian-vector products, or of gradients alone."""
    found = _searched(posed, start, method, most, watch)
    return found if len(posed.constraints) else at_infinite_slopes(posed, found)


def _searched(posed: OptimizationProblem, start: Any, method: str, most: int, watch: ProgressCallback) -> NewtonEnd:
    given = (posed.objective, posed.constraints, start, posed.low, posed.high)
    if len(posed.constraints) and len(start) > MOST_DENSE:
        raise LimitError(
            f"there are constraints on {len(start):,} variables, and at most {MOST_DENSE:,} are solved for together",
            hint="--bounds may be on any number of them",
        )
    if method == "newton" and len(posed.constraints):
        raise UsageError("the method newton takes no constraints", hint="--method auto does")
    if method in scipy_methods.METHODS:
        found = scipy_methods.search(method, *given, most, watch)
        if method in scipy_methods.WITH_CONSTRAINTS:
            return polished(posed.objective, posed.constraints, found, posed.low, posed.high)
        return found
    if len(posed.constraints):
        return constrained(*given, most, watch)
    try:
        found = newton(posed.objective, start, posed.low, posed.high, most, watch)
        is_stuck = method == "auto" and found.message == STUCK and not found.converged
        return descend(posed.objective, found, start, posed.low, posed.high, most, watch) if is_stuck else found
    except NoHessianError as error:
        if method == "newton":
            raise UsageError(
                "there is no Hessian, or it is too large a matrix", hint="--method trust-krylov or l-bfgs takes none"
            ) from None
        at = error.point
    np = arrays.numpy_namespace()
    bounded = bool(np.isfinite(posed.low).any() or np.isfinite(posed.high).any())
    by_products = not bounded and posed.objective.has_products(at)
    chosen = "trust-krylov" if by_products else "l-bfgs"
    found = scipy_methods.search(chosen, posed.objective, posed.constraints, at, posed.low, posed.high, most, watch)
    if not math.isfinite(found.value) and chosen != "l-bfgs":
        found = scipy_methods.search(
            "l-bfgs", posed.objective, posed.constraints, at, posed.low, posed.high, most, watch
        )
    # With few variables there is no Hessian only at a kink, where the search may have started.
    is_stuck = method == "auto" and not found.converged and len(start) <= MOST_DENSE
    return descend(posed.objective, found, start, posed.low, posed.high, most, watch) if is_stuck else found


# --- minima at bounds with an infinite slope, such as that of `sqrt(x)` at 0

# The distance from its bound, relative to the variable, the bound and the distance at the start, at which a variable
# may end on it.
_NEAR = 1e-6


def at_infinite_slopes(posed: OptimizationProblem, found: NewtonEnd) -> NewtonEnd:
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


# --- descent to minima at which the objective is not smooth

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
    objective: Objective, found: NewtonEnd, start: Any, low: Any, high: Any, most: int, watch: ProgressCallback
) -> NewtonEnd:
    """The lowest point reached from where a search from `start` is stuck, between `low` and `high` and in at most
    `most` iterations in total; `found` itself where nothing is lower."""
    at = _Place(found.point, found.value, found.gradient)
    number = found.iterations
    np = arrays.numpy_namespace()
    generator, least = np.random.default_rng(0), np.where(start != 0.0, np.minimum(abs(start), 1.0), 1.0)
    for _ in range(_MOST_STARTS):
        at, number = _bfgs_from(objective, at, (low, high), number, most, watch)
        left = _escape_from_kink(objective, at, least, (low, high), generator)
        if number >= most or left is None or not at.value - left.value > _GAIN * abs(at.value):
            break
        at = left
    if not at.value < found.value:
        return found
    return found._replace(point=at.point, value=at.value, gradient=at.gradient, iterations=number)


def _bfgs_from(
    objective: Objective, at: _Place, bounds: tuple[Any, Any], number: int, most: int, watch: ProgressCallback
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


def _escape_from_kink(
    objective: Objective, at: _Place, least: Any, bounds: tuple[Any, Any], generator: Any
) -> _Place | None:
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
        direction = -shortest_convex_combination(gradients / largest / longest * sizes) * sizes
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
