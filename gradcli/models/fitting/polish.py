"""Refines a minimum to full precision by Newton's method with the exact Hessian, in coordinates in which the
Gauss-Newton matrix is the unit matrix, so that only the square root of its condition number is lost."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.fitting.convergence import relative_offset
from gradcli.models.fitting.information import NOTHING
from gradcli.models.fitting.linearisations import Linearised, linearised, weights
from gradcli.models.fitting.packed_hessians import unpacked
from gradcli.models.fitting.problems import Problem

# Relative rise of the cost that may be a rounding error.
_HIDDEN = 1e-9
# Relative offset at which Newton's method ends: the distance from the minimum in standard errors.
_DONE = 1e-10
# Rows whose second derivatives are in memory at once.
_ROWS = 2**16
# Largest number of halvings of a step that does not lower the cost.
_HALVINGS = 30


class Polished(NamedTuple):
    """A point `[p]` near a minimum with its cost and relative `offset`; which parameters `[p]` are `free` (not held by
    a bound); the Newton `step` `[p]` that remains; the `least_eigenvalue` of the Hessian of the free parameters
    relative to the Gauss-Newton matrix; whether that has full rank (`determined`); and the numbers of iterations and
    evaluations."""

    point: Any
    cost: float
    offset: float
    free: Any
    step: Any
    least_eigenvalue: float
    determined: bool
    iterations: int
    evaluations: int


class _Newton(NamedTuple):
    """The Newton step at a point, and the other quantities of `Polished` there."""

    step: Any
    offset: float
    free: Any
    least_eigenvalue: float
    determined: bool


def polished(problem: Problem, point: Any, dof: int, most: int = 50) -> Polished:
    """The minimum near a point `[p]` at which the cost is finite."""
    here = linearised(problem, point[None])
    newton = _newton(problem, point, here, dof)
    iterations, evaluations = 0, 2
    while iterations < most and not _is_done(newton):
        iterations += 1
        moved, there, tried = _lower(problem, point, here, newton.step)
        evaluations += tried
        if there is None:
            break
        further = _newton(problem, moved, there, dof)
        evaluations += 1
        # Where rounding errors hide whether the cost falls, the offset shows the progress.
        if there.cost[0] >= here.cost[0] and further.offset >= newton.offset / 2:
            break
        point, here, newton = moved, there, further
    return Polished(
        point,
        float(here.cost[0]),
        newton.offset,
        newton.free,
        newton.step,
        newton.least_eigenvalue,
        newton.determined,
        iterations,
        evaluations,
    )


def _is_done(newton: _Newton) -> bool:
    return not newton.step.any() or (newton.offset <= _DONE and newton.least_eigenvalue > 0)


def _lower(problem: Problem, point: Any, here: Linearised, step: Any) -> tuple[Any, Linearised | None, int]:
    """A point along a step, or a fraction of it, at which the cost is not higher; with the linearisation there, None
    where there is no such point, and the number of evaluations."""
    np = arrays.numpy_namespace()
    for halved in range(_HALVINGS):
        moved = np.clip(point + step * 0.5**halved, problem.low, problem.high)
        if (moved == point).all():
            return point, None, halved
        there = linearised(problem, moved[None])
        if there.cost[0] <= here.cost[0] * (1 + _HIDDEN):
            return moved, there, halved + 1
    return point, None, _HALVINGS


def _newton(problem: Problem, point: Any, here: Linearised, dof: int) -> _Newton:
    """The Newton step; where the Hessian is not positive definite, eigenvalues count by their absolute values, so that
    the step leads away from a saddle point."""
    np = arrays.numpy_namespace()
    factor, q, rest = here.factor[0, :-1, :-1], here.factor[0, :-1, -1], here.factor[0, -1, -1]
    gradient = factor.T @ q
    free = ~(((point <= problem.low) & (gradient > 0)) | ((point >= problem.high) & (gradient < 0)))
    own = factor[:, free]
    scales = np.sqrt((own * own).sum(0))
    scales = np.where(scales > 0, scales, 1)
    u, s, vt = np.linalg.svd(own / scales, full_matrices=False)
    kept = s > NOTHING * s.max(initial=0)
    inside = u[:, kept].T @ q
    outside = q - u[:, kept] @ inside
    offset = relative_offset(np.sqrt(inside @ inside), np.hypot(rest, np.sqrt(outside @ outside)), int(kept.sum()), dof)
    # The columns are directions of the parameters along which the Gauss-Newton matrix is the unit matrix.
    basis = (vt[kept] / s[kept, None]).T / scales[:, None]
    with np.errstate(all="ignore"):
        hessian = np.eye(int(kept.sum())) + basis.T @ _beyond(problem, point)[np.ix_(free, free)] @ basis
    if not np.isfinite(hessian).all():
        # Second derivatives may overflow where the first do not.
        return _Newton(np.zeros(len(point)), float(offset), free, float("nan"), bool(kept.all()))
    values, vectors = np.linalg.eigh(hessian)
    step = np.zeros(len(point))
    step[free] = -basis @ (vectors @ ((vectors.T @ inside) / np.maximum(np.abs(values), 1e-3)))
    return _Newton(step, float(offset), free, float(values.min(initial=np.inf)), bool(kept.all()))


def _beyond(problem: Problem, point: Any) -> Any:
    """The Hessian of the cost `[p, p]` less the Gauss-Newton matrix."""
    np = arrays.numpy_namespace()
    p = len(point)
    total, packed = np.zeros((p, p)), np.zeros(p * (p + 1) // 2)
    for start in range(0, problem.count, _ROWS):
        some = problem.with_rows(slice(start, start + _ROWS))
        value, first, second = some.second(point)
        cost = some.cost(value)
        packed += cost.first @ second
        if not problem.known.is_least_squares:
            further = cost.second - weights(some, value, cost)
            total += (first * further[:, None]).T @ first
    return total + unpacked(packed, p)
