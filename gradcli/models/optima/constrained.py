"""Minima under constraints: a search by SciPy, polished by Newton's method on the first-order optimality conditions.

J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition (Springer 2006), chapter 18.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima import scipy_methods
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.newton import VANISHES, NewtonEnd
from gradcli.models.optima.objectives import MOST_DENSE, Objective, is_sparse
from gradcli.models.optima.optimality import Active, active, curvature, infeasible, is_stationary
from gradcli.models.results import Iteration, ProgressCallback

_MOST_POLISHING = 30
# Above this number of variables SLSQP takes minutes: it takes many steps, each of cubic time in the variables.
_MANY = 100
# The relative distance from a bound within which a variable is moved onto it.
_NEAR = 1e-9
# The standard deviations of the random offsets, relative to the start, of the starts that are tried in turn.
_ASIDE = (0.0, 0.01, 0.3)
# Upper bound of the iterations of trust-constr, which is slow and robust.
_SLOW = 1_000


def constrained(
    objective: Objective, constraints: Constraints, start: Any, low: Any, high: Any, most: int, watch: ProgressCallback
) -> NewtonEnd:
    """Minimise under constraints from `start` and, where that fails, from points near it. Returns the best result, the
    first of equal ones; it need neither be a minimum nor satisfy the constraints."""
    np = arrays.numpy_namespace()
    generator = np.random.default_rng(0)
    best: NewtonEnd | None = None
    is_free = not (np.isfinite(low) | np.isfinite(high)).any()
    if len(start) > _MANY and is_free and constraints.is_equation.all():
        direct = by_lagrangian(objective, constraints, start, most, watch)
        if direct is not None:
            best, is_minimum = _better(objective, constraints, direct, best, low, high)
            if is_minimum:
                return direct
    for method, share in (*(("slsqp", share) for share in _ASIDE), ("trust-constr", 0.0)):
        moved = start + share * generator.standard_normal(len(start)) * np.maximum(1.0, abs(start))
        begin = np.clip(moved if share else start, low, high)
        if not math.isfinite(objective.value_and_gradient(begin)[0]):
            continue
        limit = most if method == "slsqp" else min(most, _SLOW)
        found = scipy_methods.search(method, objective, constraints, begin, low, high, limit, watch)
        found = polished(objective, constraints, found, low, high)
        better, is_minimum = _better(objective, constraints, found, best, low, high)
        best = better
        if is_minimum:
            break
    assert best is not None
    if infeasible(constraints, best.point).any():
        return _feasible(objective, constraints, best, low, high, most, watch)
    return best


def _better(
    objective: Objective, constraints: Constraints, found: NewtonEnd, best: NewtonEnd | None, low: Any, high: Any
) -> tuple[NewtonEnd, bool]:
    """The better of two results, and whether `found` is a feasible minimum."""
    violated = _violation(constraints, found.point)
    is_feasible = not infeasible(constraints, found.point).any()
    holds = is_feasible and math.isfinite(found.value) and _is_minimum(objective, constraints, found, low, high)
    if best is None or holds:
        return found, holds
    before = _violation(constraints, best.point)
    was_feasible = not infeasible(constraints, best.point).any()
    if is_feasible != was_feasible:
        return (found if is_feasible else best), False
    if is_feasible:
        return (found if found.value < best.value else best), False
    return (found if violated < before else best), False


def _violation(constraints: Constraints, x: Any) -> float:
    found = float(constraints.violation(constraints.residuals(x)).sum())
    return math.inf if math.isnan(found) else found


def _is_minimum(objective: Objective, constraints: Constraints, found: NewtonEnd, low: Any, high: Any) -> bool:
    there = active(found.gradient, constraints, found.point, low, high)
    hessian = lagrangian_hessian(objective, constraints, found.point, there)
    if not is_stationary(objective, found, there.slope, None):
        return False
    normals = there.normals[there.holding]
    return hessian is None or curvature(found.value, found.point, hessian, ~there.fixed, normals) != "down"


def lagrangian_hessian(objective: Objective, constraints: Constraints, x: Any, there: Active) -> Any:
    """The Hessian of the Lagrangian: that of the objective plus those of the constraints times their multipliers. None
    where there is none."""
    np = arrays.numpy_namespace()
    found = objective.hessian(x)
    if found is None or not len(there.numbers):
        return found
    weights = np.zeros(len(constraints))
    weights[there.numbers] = there.multipliers
    total = (found.toarray() if is_sparse(found) else found) + constraints.hessian(x, weights)
    return total if np.isfinite(total).all() else None


def polished(objective: Objective, constraints: Constraints, found: NewtonEnd, low: Any, high: Any) -> NewtonEnd:
    """The point improved to full accuracy: Newton's method on the optimality conditions with the active constraints
    held active, as long as their residual decreases."""
    np = arrays.numpy_namespace()
    if len(found.point) > MOST_DENSE or not math.isfinite(found.value):
        return found
    best, before = _snapped(objective, found, low, high), math.inf
    broken = int(infeasible(constraints, best.point).sum())
    for _ in range(_MOST_POLISHING):
        there = active(best.gradient, constraints, best.point, low, high)
        now = _distance(constraints, best, there)
        hessian = lagrangian_hessian(objective, constraints, best.point, there)
        if hessian is None or not now < before:
            break
        before = now
        step = _newton_step(constraints, best, there, hessian)
        trial = np.clip(best.point + step, low, high)
        value, gradient = objective.value_and_gradient(trial)
        further = best._replace(point=trial, value=value, gradient=gradient)
        if not math.isfinite(value) or int(infeasible(constraints, trial).sum()) > broken:
            break
        if not _distance(constraints, further, active(gradient, constraints, trial, low, high)) < now:
            break
        best = further
    return best


def _snapped(objective: Objective, found: NewtonEnd, low: Any, high: Any) -> NewtonEnd:
    """The result with variables that are on a bound up to rounding moved exactly onto it."""
    np = arrays.numpy_namespace()
    point = found.point
    for bound in (low, high):
        with np.errstate(invalid="ignore"):
            point = np.where(abs(point - bound) <= _NEAR * (1.0 + abs(point)), bound, point)
    value, gradient = objective.value_and_gradient(point)
    return found._replace(point=point, value=value, gradient=gradient) if math.isfinite(value) else found


def _distance(constraints: Constraints, found: NewtonEnd, there: Active) -> float:
    """The norm of the residual of the optimality conditions."""
    np = arrays.numpy_namespace()
    violated = constraints.violation(constraints.residuals(found.point))
    off = np.zeros(len(violated))
    off[there.numbers[there.holding]] = abs(constraints.residuals(found.point))[there.numbers[there.holding]]
    return float(np.linalg.norm(there.slope) + np.linalg.norm(np.maximum(violated, off)))


def _newton_step(constraints: Constraints, found: NewtonEnd, there: Active, hessian: Any) -> Any:
    np = arrays.numpy_namespace()
    free = ~there.fixed
    dense = hessian.toarray() if is_sparse(hessian) else hessian
    needed = there.holding
    rows = there.normals[needed][:, free]
    matrix = dense_matrices.with_constraints(dense[np.ix_(free, free)], rows)
    residuals = constraints.residuals(found.point)[there.numbers[needed]]
    step = np.zeros(len(found.point))
    right = -np.concatenate([there.slope[free], residuals])
    step[free] = dense_matrices.least_squares(matrix, right, rcond=1e-14)[: int(free.sum())]
    return step


def _feasible(
    objective: Objective,
    constraints: Constraints,
    best: NewtonEnd,
    low: Any,
    high: Any,
    most: int,
    watch: ProgressCallback,
) -> NewtonEnd:
    """A minimum searched for from a feasible point, which is found first by least squares; where there is none, the
    point of the least violation."""
    from scipy.optimize import least_squares

    np = arrays.numpy_namespace()

    def violation(x: Any) -> Any:
        return np.nan_to_num(constraints.violation(constraints.residuals(x)), nan=1e100)

    def slopes(x: Any) -> Any:
        residuals = constraints.residuals(x)
        signs = np.where(constraints.is_equation, np.nan_to_num(np.sign(residuals)), residuals > 0)
        return signs[:, None] * scipy_methods.finite_derivatives(constraints.jacobian(x))

    begin = best.point
    # Widen the bounds, equal ones too, by a small gap, since the method needs starts strictly inside of them.
    gap = 1e-10 * np.maximum(1.0, abs(begin))
    inner = (low - gap, high + gap)
    near = least_squares(violation, begin, slopes, inner, ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=1_000)
    point = np.clip(near.x, low, high)
    if _violation(constraints, point) >= _violation(constraints, best.point):
        return best
    value, gradient = objective.value_and_gradient(point)
    if infeasible(constraints, point).any() or not math.isfinite(value):
        return best._replace(point=point, value=value, gradient=gradient) if math.isfinite(value) else best
    found = scipy_methods.search("slsqp", objective, constraints, point, low, high, most, watch)
    found = polished(objective, constraints, found, low, high)
    return (
        best._replace(point=point, value=value, gradient=gradient)
        if infeasible(constraints, found.point).any()
        else found
    )


# --- equality constraints alone: Newton's method on the Lagrangian

_MOST_STEPS, _MOST_HALVINGS, _MOST_SHIFTS = 100, 40, 20
# The search ends where a step is at most this share of the variables (or of 1).
_SMALL = 1e-10
# A step must lower the merit function by at least this share of the predicted decrease (Armijo's condition); the
# penalty of the merit function is `_PENALTY` times the largest multiplier.
_LOWERS, _PENALTY = 1e-4, 2.0
# The first shift of the Hessian where its curvature along a step is negative, relative to its largest element, and the
# factor by which the shift grows.
_SHIFT, _GROWTH = 1e-6, 10.0


def by_lagrangian(
    objective: Objective, constraints: Constraints, start: Any, most: int, watch: ProgressCallback
) -> NewtonEnd | None:
    """A point at which all constraints, which are equations, hold and the gradient of the Lagrangian vanishes; None
    where the search is stuck or derivatives are not known."""
    np = arrays.numpy_namespace()
    x, multipliers = start, np.zeros(len(constraints))
    value, gradient = objective.value_and_gradient(x)
    residuals = constraints.residuals(x)
    for number in range(min(most, _MOST_STEPS)):
        jacobian, hessian = constraints.jacobian(x), objective.hessian(x)
        if hessian is None or not (
            math.isfinite(value) and np.isfinite(jacobian).all() and np.isfinite(residuals).all()
        ):
            return None
        dense = hessian.toarray() if is_sparse(hessian) else hessian
        found = _step(gradient, dense + constraints.hessian(x, multipliers), jacobian, residuals)
        if found is None:
            return None
        step, multipliers = found
        slope = gradient + jacobian.T @ multipliers
        watch(Iteration(number, objective.sign * value, float(np.linalg.norm(slope)), x))
        penalty = _PENALTY * float(abs(multipliers).max(initial=0.0))
        merit, promised = (
            _merit(value, residuals, penalty),
            float(gradient @ step) - penalty * float(abs(residuals).sum()),
        )
        is_last = bool((abs(step) <= _SMALL * (1.0 + abs(x))).all())
        share = 1.0
        for _ in range(_MOST_HALVINGS):
            trial = x + share * step
            at, its_gradient = objective.value_and_gradient(trial)
            off = constraints.residuals(trial)
            if is_last or _merit(at, off, penalty) <= merit + _LOWERS * share * promised:
                break
            share /= 2.0
        else:
            return None
        if is_last:
            return NewtonEnd(x, value, gradient, number, True, VANISHES)
        x, value, gradient, residuals = trial, at, its_gradient, off
    return None


def _merit(value: float, residuals: Any, penalty: float) -> float:
    found = value + penalty * float(abs(residuals).sum())
    return found if math.isfinite(found) else math.inf


def _step(gradient: Any, hessian: Any, jacobian: Any, residuals: Any) -> tuple[Any, Any] | None:
    """The Newton step to the minimum of the quadratic model under linearised constraints, and the multipliers there;
    None where no shift of the Hessian makes the curvature along the step nonnegative."""
    np = arrays.numpy_namespace()
    size = len(gradient)
    right = -np.concatenate([gradient, residuals])
    shift = 0.0
    for _ in range(_MOST_SHIFTS):
        upper = hessian + shift * np.eye(size)
        try:
            found = dense_matrices.solve(dense_matrices.with_constraints(upper, jacobian), right)
        except np.linalg.LinAlgError:
            found = np.full(len(right), np.nan)
        step = found[:size]
        if np.isfinite(found).all() and float(step @ upper @ step) >= 0.0:
            return step, found[size:]
        shift = max(_SHIFT * float(abs(hessian).max(initial=1.0)), _GROWTH * shift)
    return None
