"""Minima under equality constraints alone, by Newton's method on the Lagrangian with exact second derivatives.

It takes a few linear systems, where the time of sequential quadratic programming with approximate second derivatives
grows too fast with the number of variables. J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition
(Springer 2006), sections 18.1 and 18.3.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.end_messages import VANISHES
from gradcli.models.optima.newton import SearchEnd
from gradcli.models.optima.objectives import Objective, is_sparse
from gradcli.models.results import Iteration, Watcher

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
    objective: Objective, constraints: Constraints, start: Any, most: int, watch: Watcher
) -> SearchEnd | None:
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
            return SearchEnd(x, value, gradient, number, True, VANISHES)
        x, value, gradient, residuals = trial, at, its_gradient, off
    return None


def _merit(value: float, residuals: Any, penalty: float) -> float:
    found = value + penalty * float(abs(residuals).sum())
    return found if math.isfinite(found) else math.inf


def _step(gradient: Any, hessian: Any, jacobian: Any, residuals: Any) -> tuple[Any, Any] | None:
    """The Newton step to the minimum of the quadratic model under linearised constraints, and the multipliers there;
    None where no shift of the Hessian makes the curvature along the step nonnegative."""
    np = arrays.numpy_namespace()
    size, count = len(gradient), len(residuals)
    right = -np.concatenate([gradient, residuals])
    shift = 0.0
    for _ in range(_MOST_SHIFTS):
        upper = hessian + shift * np.eye(size)
        matrix = np.block([[upper, jacobian.T], [jacobian, np.zeros((count, count))]])
        try:
            found = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            found = np.full(len(right), np.nan)
        step = found[:size]
        if np.isfinite(found).all() and float(step @ upper @ step) >= 0.0:
            return step, found[size:]
        shift = max(_SHIFT * float(abs(hessian).max(initial=1.0)), _GROWTH * shift)
    return None
