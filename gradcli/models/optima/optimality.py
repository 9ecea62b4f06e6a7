"""Optimality conditions at a point: multipliers of the active constraints, and curvature along the free directions.

J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition (Springer 2006), chapter 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima.constraints import Constraints
from gradcli.models.optima.newton import NewtonEnd, held_by_bounds, is_definite
from gradcli.models.optima.objectives import Objective, is_sparse
from gradcli.named_tuples import NamedTuple

# Relative tolerances within which a gradient, and the residual of a constraint, count as 0.
GRADIENT_TOLERANCE, RESIDUAL_TOLERANCE = 1e-6, 1e-8
# The tolerance within which an inequality counts as met with equality.
_NEAR = 1e-6
# A gradient also counts as 0 at the share `_FALLEN` of that at the start, and a sum of gradients at the share
# `_CANCELLED` of its terms.
_FALLEN, _CANCELLED = 1e-10, 1e-9
# A point is stationary where a Newton step would lower the objective by at most this share.
_GAIN = 1e-9
# The curvature, per row of a symmetric matrix scaled to a unit diagonal, that counts as 0.
_FLAT = 1e-13
# The quadratic model holds where the curvature changes by at most this share along a step.
_SIMILAR = 0.1
# The relative tolerance of an eigenvalue by Lanczos's method, and its upper bound of restarts: close eigenvalues
# converge slowly.
_EXACT, _RESTARTS = 1e-10, 20
# Upper bound of the variables for which eigenvalues are computed from a dense matrix.
_MOST = 1_000


class Active(NamedTuple):
    """The constraints and bounds that are active at a point.

    `numbers` are the indices of the a active constraints, with `multipliers` λ `[a]` and gradients `normals` `[a, n]`.
    `fixed` `[n]` marks the variables held by a bound, with multipliers `of_bounds` `[n]`. `slope` `[n]` is the gradient
    of the Lagrangian, 0 for fixed variables, and at a minimum for all. `holding` `[a]` marks the equations and the
    inequalities with nonzero multipliers; the others are weakly active.
    """

    numbers: Any
    multipliers: Any
    normals: Any
    fixed: Any
    of_bounds: Any
    slope: Any
    holding: Any


def active(gradient: Any, constraints: Constraints, x: Any, low: Any, high: Any) -> Active:
    """The constraints that are active at a point with this gradient of the objective. The multipliers, nonnegative for
    inequalities, minimise the norm of the slope."""
    np = arrays.numpy_namespace()
    if not len(constraints):
        fixed = held_by_bounds(x, gradient, low, high)
        none = np.zeros(0)
        of_bounds, slope = _of_fixed(fixed, gradient, low == high), np.where(fixed, 0.0, gradient)
        return Active(none.astype(int), none, np.zeros((0, len(x))), fixed, of_bounds, slope, none.astype(bool))
    from scipy.optimize import lsq_linear

    jacobian = _jacobian(constraints, x)
    near = constraints.is_equation | (abs(constraints.residuals(x)) <= _tolerances(jacobian, x, _NEAR))
    numbers = np.flatnonzero(near)
    at = np.flatnonzero((x <= low) | (x >= high))
    sides = np.zeros((len(at), len(x)))
    sides[np.arange(len(at)), at] = np.where(x[at] >= high[at], 1.0, -1.0)
    rows = np.concatenate([jacobian[numbers], sides])
    found = np.zeros(len(rows))
    if len(rows):
        # With rows of equal length, the choice among dependent rows does not depend on their scales.
        lengths = np.linalg.norm(rows, axis=1)
        lengths = np.where(lengths > 0, lengths, 1.0)
        any_sign = np.concatenate([constraints.is_equation[numbers], low[at] == high[at]])
        least = np.where(any_sign, -np.inf, 0.0)
        found = lsq_linear((rows / lengths[:, None]).T, -gradient, (least, np.inf), method="bvls").x / lengths
    of_bounds = np.zeros(len(x))
    of_bounds[at] = found[len(numbers) :] + 0.0
    slope = gradient + rows.T @ found
    fixed = (of_bounds != 0.0) | (low == high)
    # Adding 0.0 turns -0.0 into 0.0.
    multipliers = found[: len(numbers)] + 0.0
    holding = (multipliers != 0.0) | constraints.is_equation[numbers]
    return Active(numbers, multipliers, jacobian[numbers], fixed, of_bounds, np.where(fixed, 0.0, slope), holding)


def _of_fixed(fixed: Any, gradient: Any, is_equation: Any) -> Any:
    np = arrays.numpy_namespace()
    return np.where(fixed, np.where(is_equation, -gradient, abs(gradient)), 0.0) + 0.0


def _jacobian(constraints: Constraints, x: Any) -> Any:
    """The Jacobian of the constraints, with zeros in rows that are not finite: such constraints hold nothing."""
    np = arrays.numpy_namespace()
    found = constraints.jacobian(x)
    return np.where(np.isfinite(found).all(axis=1)[:, None], found, 0.0)


def _tolerances(jacobian: Any, x: Any, share: float) -> Any:
    """The tolerance `[m]` of each residual: its terms have rounding errors proportional to the variables."""
    return share * (1.0 + abs(jacobian) @ abs(x))


def infeasible(constraints: Constraints, x: Any) -> Any:
    """A mask `[m]` of the constraints that are violated at a point."""
    residuals = constraints.residuals(x)
    return ~(constraints.violation(residuals) <= _tolerances(_jacobian(constraints, x), x, RESIDUAL_TOLERANCE))


def is_stationary(objective: Objective, found: NewtonEnd, slope: Any, hessian: Any) -> bool:
    """Return whether a slope is 0 in floats: relative to the gradients it is the sum of and to that at the start, to
    the rounding errors of the variables, or because a Newton step would gain nothing."""
    np = arrays.numpy_namespace()
    if not math.isfinite(found.value):
        return False
    value, x, steepest = found.value, found.point, float(abs(slope).max(initial=0.0))
    small = max(GRADIENT_TOLERANCE * min(1.0, abs(value)), _FALLEN * min(1.0, objective.steepest))
    if steepest <= small or steepest <= _CANCELLED * float(abs(found.gradient).max(initial=0.0)):
        return True
    if hessian is None:
        return steepest <= GRADIENT_TOLERANCE * max(1.0, abs(value))
    if (abs(slope) <= 1e-14 * (abs(hessian) @ abs(x))).all():
        return True
    if is_sparse(hessian):
        return steepest <= GRADIENT_TOLERANCE * max(1.0, abs(value))
    units = _units(hessian.diagonal())
    bends, vectors = dense_matrices.symmetric_eigenvectors(hessian / units[:, None] / units)
    along = vectors.T @ (slope / units)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = float(np.sum(np.where(along == 0, 0.0, along**2 / np.maximum(bends, 0.0)))) / 2
    return gain <= _GAIN * abs(value) + 1e-20


def _units(diagonal: Any) -> Any:
    np = arrays.numpy_namespace()
    sizes = np.sqrt(abs(diagonal))
    return np.where(sizes > 0, sizes, 1.0)


def weakly_active_normals(there: Active, x: Any, low: Any, high: Any) -> Any:
    """The unit normals `[t, n]` of weakly active constraints and bounds, which the point may leave to one side."""
    np = arrays.numpy_namespace()
    at_bound = ((x <= low) | (x >= high)) & ~there.fixed
    sides = np.diag(np.where(x >= high, 1.0, -1.0))[at_bound]
    rows = np.concatenate([there.normals[~there.holding], sides])
    lengths = np.linalg.norm(rows, axis=1)
    return rows[lengths > 0] / lengths[lengths > 0][:, None]


def blocked(normals: Any, basis: Any) -> Any:
    """A mask `[t]` of the `normals` `[t, n]` from which no feasible direction leads away. Feasible directions are
    combinations of the columns of `basis` `[n, d]` along which no constraint increases."""
    np = arrays.numpy_namespace()
    if not len(normals) or not basis.shape[1]:
        return np.zeros(len(normals), bool)
    from scipy.optimize import linprog

    rows = normals @ basis
    zeros, ends = np.zeros(len(rows)), [(-1.0, 1.0)] * basis.shape[1]
    farthest = [linprog(row, A_ub=rows, b_ub=zeros, bounds=ends).fun for row in rows]
    return np.array([least is not None and least > -GRADIENT_TOLERANCE for least in farthest])


def has_feasible_direction(normals: Any, basis: Any) -> bool:
    """Return whether some combination of the columns of `basis` `[n, d]` is feasible: along it no constraint with one
    of the `normals` `[t, n]` increases."""
    np = arrays.numpy_namespace()
    rows = normals @ basis
    if not basis.shape[1] or np.linalg.matrix_rank(rows, tol=GRADIENT_TOLERANCE) < basis.shape[1]:
        return bool(basis.shape[1])
    # The rows have full rank, so that a direction that leads away from no constraint is 0.
    return not blocked(normals, basis).all()


def free_directions(free: Any, normals: Any, units: Any) -> Any:
    """A basis, as columns `[n, d]`, of the directions along which neither variables that are not `free` nor constraints
    with `normals` `[a, n]` change; orthogonal where variables are measured in `units` `[n]`."""
    np = arrays.numpy_namespace()
    basis = np.diag(1 / units)[:, free]
    if not len(normals) or not free.any():
        return basis
    rows = normals[:, free] / units[free]
    sizes, directions = dense_matrices.right_singular_vectors(rows)
    rank = int((sizes > 1e-10 * sizes[0]).sum()) if len(sizes) and sizes[0] else 0
    return basis @ directions[rank:].T


def newton_step_of_least_curvature(
    hessian_at: Callable[[Any], Any], x: Any, slope: Any, hessian: Any, basis: Any
) -> tuple[float, bool]:
    """The length of the Newton step along the direction of least curvature among the columns of `basis` `[n, d]`, and
    whether the curvature at its end is similar. Where it is not, the Hessian does not characterise the point, as at 0
    for `x**3` and far out for `exp(-x)`."""
    values, vectors = dense_matrices.symmetric_eigenvectors(basis.T @ hessian @ basis)
    least, direction = values[0], basis @ vectors[:, 0]
    length = float(direction @ slope) / float(least) if least > 0 else math.inf
    if not math.isfinite(length):
        return length, False
    there = hessian_at(x - length * direction)
    return abs(length), there is not None and bool(abs(direction @ there @ direction - least) <= _SIMILAR * least)


def curvature(value: float, x: Any, hessian: Any, free: Any, normals: Any) -> str:
    """The curvature of the objective along the free directions: "up" along all, "down" along one, or "none" along one.
    Directions are free where neither a variable that is not `free` nor a constraint with one of the `normals` `[a, n]`
    holds them."""
    np = arrays.numpy_namespace()
    if not free.any():
        return "up"
    reach = float(np.max(abs(x), initial=1.0))
    # Dividing twice avoids the overflow of reach**2.
    nothing = 1e-20 * max(abs(value), 1.0) / reach / reach
    if is_sparse(hessian):
        from scipy.sparse import diags_array, eye_array

        part = hessian[free][:, free]
        units = _units(part.diagonal())
        scaled = (diags_array(1 / units) @ part @ diags_array(1 / units)).tocsc()
        slack = _FLAT * 10 * eye_array(part.shape[0], format="csc")
        if is_definite((scaled - slack).tocsc()):
            return "up"
        return "none" if is_definite((scaled + slack).tocsc()) else "down"
    basis = free_directions(free, normals, _units(hessian.diagonal()))
    if not basis.shape[1]:
        return "up"
    bends = dense_matrices.symmetric_eigenvalues(basis.T @ hessian @ basis)
    size = max(abs(bends[0]), abs(bends[-1]))
    slack = max(_FLAT * len(bends) * max(size, 1.0) if size else 0.0, nothing)
    if bends[0] > slack and float(abs(hessian[np.ix_(free, free)]).max()) > nothing:
        return "up"
    return "down" if bends[0] < -slack else "none"


def flat_directions(hessian: Any, basis: Any) -> Any:
    """The directions `[n, d]`, combinations of an orthogonal `basis`, with no curvature or the least."""
    np = arrays.numpy_namespace()
    bends, vectors = dense_matrices.symmetric_eigenvectors(basis.T @ hessian @ basis)
    size = float(abs(bends).max(initial=0.0))
    return basis @ vectors[:, bends <= max(_FLAT * len(bends) * max(size, 1.0), float(np.min(bends, initial=0.0)))]


def eigenvalues(hessian: Any, objective: Objective | None, x: Any) -> dict[str, float | None]:
    """The smallest and the largest eigenvalue of the Hessian, from Hessian-vector products where there is no matrix;
    None for one that is not found."""
    np = arrays.numpy_namespace()
    if hessian is not None and len(x) <= _MOST:
        bends = dense_matrices.symmetric_eigenvalues(hessian.toarray() if is_sparse(hessian) else hessian)
        return {"min": float(bends[0]), "max": float(bends[-1])}
    from scipy.sparse.linalg import LinearOperator

    if hessian is None:
        if len(x) <= _MOST or objective is None or not objective.has_products(x):
            return {"min": None, "max": None}
        size = len(x)
        hessian = LinearOperator((size, size), matvec=lambda v: objective.hessian_product(x, np.ravel(v)), dtype=float)
        return {"min": _extreme(hessian, "SA"), "max": _extreme(hessian, "LA")}
    # Where all eigenvalues are positive, the smallest is the one nearest to 0.
    least = _extreme(hessian, "LM", sigma=0.0) if is_definite(hessian) else _extreme(hessian, "SA")
    return {"min": least, "max": _extreme(hessian, "LA")}


def _extreme(hessian: Any, which: str, **options: Any) -> float | None:
    """An extreme eigenvalue by Lanczos's method; None where it does not converge."""
    np = arrays.numpy_namespace()
    from scipy.sparse.linalg import ArpackError, eigsh

    try:
        start = np.random.default_rng(0).standard_normal(hessian.shape[0])
        limits = {"maxiter": _RESTARTS, "tol": _EXACT}
        found = eigsh(hessian, 1, which=which, v0=start, return_eigenvectors=False, **limits, **options)
    except (ArpackError, RuntimeError):
        return None
    return float(found[0])
