"""SciPy's methods of minimisation with the exact derivatives that each of them takes."""

from __future__ import annotations

import math
import warnings
from collections import deque
from typing import Any

from gradcli import arrays
from gradcli.errors import UsageError
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.newton import NewtonEnd
from gradcli.models.optima.objectives import Objective, is_sparse
from gradcli.models.results import Iteration, ProgressCallback

# By user-visible name: SciPy's name, and tolerances with which the method continues to the last digits.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "bfgs": ("BFGS", {"gtol": 1e-10}),
    "l-bfgs": ("L-BFGS-B", {"ftol": 1e-17, "gtol": 1e-10, "maxcor": 20, "maxfun": 10**9}),
    "trust-exact": ("trust-exact", {"gtol": 1e-10}),
    "trust-krylov": ("trust-krylov", {"gtol": 1e-10}),
    "slsqp": ("SLSQP", {"ftol": 1e-9}),
    # With a barrier, SciPy's gtol is met before the point has reached its active constraints, so that it is disabled.
    "trust-constr": ("trust-constr", {"gtol": 0.0, "xtol": 1e-12}),
}
WITH_BOUNDS = ("l-bfgs", "slsqp", "trust-constr")
WITH_CONSTRAINTS = ("slsqp", "trust-constr")
# Replaces infinite values of the objective, because line searches interpolate.
_HUGE = 1e150


def search(
    method: str,
    objective: Objective,
    constraints: Constraints,
    start: Any,
    low: Any,
    high: Any,
    most: int,
    watch: ProgressCallback,
) -> NewtonEnd:
    """Minimise by one of METHODS. Raises UsageError for bounds or constraints that the method does not support, and
    where the method needs a Hessian and there is none."""
    from scipy.optimize import Bounds, minimize

    np = arrays.numpy_namespace()
    name, options = METHODS[method]
    bounded = bool(np.isfinite(low).any() or np.isfinite(high).any())
    if bounded and method not in WITH_BOUNDS:
        raise UsageError(f"the method {method} takes no bounds", hint=f"--method {' or '.join(WITH_BOUNDS)} does")
    if len(constraints) and method not in WITH_CONSTRAINTS:
        raise UsageError(
            f"the method {method} takes no constraints", hint=f"--method {' or '.join(WITH_CONSTRAINTS)} does"
        )
    followed = _Monitored(objective, watch, start)
    further: dict[str, Any] = {}
    if method == "trust-krylov":
        further["hessp"] = objective.hessian_product
    elif method in ("trust-exact", "trust-constr"):
        further["hess"] = _hessian_of(objective, start, is_needed=method == "trust-exact")
    if bounded:
        further["bounds"] = Bounds(low, high, keep_feasible=True) if method == "trust-constr" else Bounds(low, high)
    if len(constraints):
        further["constraints"] = _for_scipy(method, constraints)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # SciPy's warnings are dropped, as the exact derivatives judge the point.
        warnings.simplefilter("ignore")
        found = minimize(
            followed.value_and_gradient,
            start,
            jac=True,
            method=name,
            options={**options, "maxiter": most},
            callback=followed.callback,
            **further,
        )
    x = np.clip(found.x, low, high) if np.isfinite(found.x).all() else followed.best
    value, gradient = objective.value_and_gradient(x)
    return NewtonEnd(x, value, gradient, int(found.nit), bool(found.success), str(found.message).strip())


class _Monitored:
    """An objective that reports the iterations of its search and keeps the lowest point."""

    def __init__(self, objective: Objective, watch: ProgressCallback, start: Any) -> None:
        self._objective, self._watch = objective, watch
        self._recent: deque[tuple[Any, float, Any]] = deque(maxlen=30)
        self._number = 0
        self.best, self._least = start, math.inf

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        np = arrays.numpy_namespace()
        value, gradient = self._objective.value_and_gradient(x)
        if value < self._least:
            self.best, self._least = x.copy(), value
        self._recent.append((x.copy(), value, gradient))
        if not math.isfinite(value):
            return math.copysign(_HUGE, value), np.zeros(len(x))
        return value, gradient

    def callback(self, x: Any, *_: Any) -> None:
        np = arrays.numpy_namespace()
        self._number += 1
        for seen, value, gradient in reversed(self._recent):
            if np.array_equal(seen, x):
                sign, norm = self._objective.sign, float(np.linalg.norm(gradient))
                self._watch(Iteration(self._number, sign * value, norm, seen))
                return


def _hessian_of(objective: Objective, start: Any, is_needed: bool) -> Any:
    """The function that computes the Hessian, as a dense matrix where that is needed."""
    from scipy.optimize import BFGS

    if objective.hessian(start) is None:
        if is_needed:
            raise UsageError("there is no Hessian at the start", hint="--method bfgs or l-bfgs takes none")
        return BFGS()
    np = arrays.numpy_namespace()

    def hessian(x: Any) -> Any:
        found = objective.hessian(x)
        if found is None:
            return np.eye(len(x))
        return found.toarray() if is_sparse(found) and is_needed else found

    return hessian


def _for_scipy(method: str, constraints: Constraints) -> Any:
    np = arrays.numpy_namespace()

    # Where a constraint has no value, it is violated.
    def residuals(x: Any) -> Any:
        return np.nan_to_num(constraints.residuals(x), nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)

    def jacobian(x: Any) -> Any:
        return finite_derivatives(constraints.jacobian(x))

    if method == "trust-constr":
        from scipy.optimize import NonlinearConstraint

        low = np.where(constraints.is_equation, 0.0, -np.inf)
        return NonlinearConstraint(
            residuals, low, np.zeros(len(low)), jacobian, lambda x, v: finite_derivatives(constraints.hessian(x, v))
        )
    parts = []
    for kind, chosen in (("eq", constraints.is_equation), ("ineq", ~constraints.is_equation)):
        if chosen.any():
            parts.append(
                {
                    "type": kind,
                    "fun": lambda x, chosen=chosen: -residuals(x)[chosen],
                    "jac": lambda x, chosen=chosen: -jacobian(x)[chosen],
                }
            )
    return parts


def finite_derivatives(derivatives: Any) -> Any:
    """Derivatives, 0 where there are none."""
    return arrays.numpy_namespace().nan_to_num(derivatives, nan=0.0, posinf=0.0, neginf=0.0)
