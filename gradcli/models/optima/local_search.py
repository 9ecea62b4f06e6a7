"""The choice of the method of a local search, where the user does not make it."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.errors import LimitError, UsageError
from gradcli.models.optima import scipy_methods
from gradcli.models.optima.constrained import constrained, polished
from gradcli.models.optima.end_messages import STUCK
from gradcli.models.optima.infinite_slopes import at_infinite_slopes
from gradcli.models.optima.newton import NoHessianError, SearchEnd, newton
from gradcli.models.optima.nonsmooth import descend
from gradcli.models.optima.objectives import MOST_DENSE
from gradcli.models.optima.optimization_problems import PosedObjective
from gradcli.models.results import Watcher


def search(posed: PosedObjective, start: Any, method: str, most: int, watch: Watcher) -> SearchEnd:
    """Minimise from `start` by the given method, or by a suitable one: Newton's method where the Hessian is small
    enough to solve with or is sparse; else one of Hessian-vector products, or of gradients alone."""
    found = _searched(posed, start, method, most, watch)
    return found if len(posed.constraints) else at_infinite_slopes(posed, found)


def _searched(posed: PosedObjective, start: Any, method: str, most: int, watch: Watcher) -> SearchEnd:
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
