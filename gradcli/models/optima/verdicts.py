"""Decides whether the point at which a search ended is a minimum, and why or why not, by exact derivatives and, at a
kink, by gradients sampled nearby."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.models import dense_matrices
from gradcli.models.optima import optimality
from gradcli.models.optima.constrained import lagrangian_hessian
from gradcli.models.optima.newton import (
    BY_BOUNDS,
    FALLS_FROM_FLAT,
    FALLS_FROM_KINK,
    KINK,
    SADDLE,
    SLOW_DESCENT,
    STUCK,
    UNBOUNDED,
    VANISHES,
    NewtonEnd,
    extremum,
    worded,
)
from gradcli.models.optima.objectives import Objective
from gradcli.models.optima.optimality import Active
from gradcli.models.optima.optimization_problems import OptimizationProblem
from gradcli.named_tuples import NamedTuple

# A search is unbounded where a variable is beyond `_FAR` or the objective below -`_FAR`.
_FAR = 1e20
# A search still makes progress where the next step is longer than this, relative to the point or to 1.
_SMALL = 1e-3

# Upper bound of the weakly active constraints that are tested together: each needs a linear program.
_MOST_TOUCHED = 100
# The residuals of constraints times their multipliers, as a share of the value or the first one, above which
# multipliers count as unbounded.
_OFF = 1e-7
# Distances from a point without curvature, relative to its size, at which lower values are looked for: `_NEARBY`, or
# `_FAR_AWAY` on a plateau. A value is lower where it falls by more than `_SHARE` of the largest rise nearby, and by
# more than `_ROUNDING` of the values.
_NEARBY, _FAR_AWAY = (1e-3, 1e-2), (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
_SHARE, _ROUNDING = 0.1, 1e-12
# The distance from a point at which gradients are sampled, relative to the variables, and the factor of the nearer
# points.
_SAMPLED, _NEARER = 1e-6, 1e-3
# A smooth gradient changes as the Hessian predicts up to the share `_SIMILAR`; a jump changes by at least the share
# `_JUMP` at the nearer points as well. Changes below the share `_GRADIENT_ROUNDING` of the gradient nearby, or `_TERMS_ROUNDING` of its
# terms, are rounding.
_SIMILAR, _JUMP, _GRADIENT_ROUNDING, _TERMS_ROUNDING = 0.1, 0.5, 1e-6, 1e-8
# The upper bound of the variables for which subgradients are sampled, and their number: `_FOR_EACH` per variable and
# `_BESIDE` more.
_MOST, _FOR_EACH, _BESIDE = 50, 4, 8
# The shortest convex combination counts as 0 below the share `_ZERO` of the longest gradient; the objective falls where
# a sampled value is lower by more than the share `_FALL` of the change that this gradient predicts.
_ZERO, _FALL = 1e-3, 1e-2


class Verdict(NamedTuple):
    """The classification of a point.

    `active` are its active constraints and bounds. `hessian` is None where it is not known or there is a kink. `kind`
    is the kind of point, None where the gradient does not vanish. `converged` says whether it is a minimum, and
    `message` why or why not. `is_flat` says that the Hessian does not determine the point along the free directions,
    since it is singular there or changes along the weakest one; it does not depend on whether bounds hold the point.
    """

    active: Active
    hessian: Any
    kind: str | None
    converged: bool
    message: str
    is_flat: bool = False


def verdict_of(posed: OptimizationProblem, found: NewtonEnd) -> Verdict:
    """The verdict of the exact derivatives on the point of a search, independently of what the search itself
    reports."""
    objective, constraints, x = posed.objective, posed.constraints, found.point
    there = optimality.active(found.gradient, constraints, x, posed.low, posed.high)
    hessian = lagrangian_hessian(objective, constraints, x, there)
    verdict = (
        _of_broken_constraints(posed, found, there, hessian)
        or _of_unqualified_constraints(posed, found, there, hessian)
        or _of_kink(posed, found, there, hessian)
        or _of_derivatives(posed, found, there, hessian)
    )
    return verdict._replace(message=worded(verdict.message, objective.sign))


def _of_broken_constraints(posed: OptimizationProblem, found: NewtonEnd, there: Active, hessian: Any) -> Verdict | None:
    if not len(posed.constraints):
        return None
    broken = optimality.infeasible(posed.constraints, found.point)
    if not broken.any():
        return None
    violated = posed.constraints.violation(posed.constraints.residuals(found.point))
    worst = int((violated * broken).argmax())
    reason = f"the constraint '{posed.constraints.labels[worst]}' does not hold"
    return Verdict(
        there, hessian, None, False, f"{reason}: it is off by {float(violated[worst]):.3g} at the best point"
    )


def _of_unqualified_constraints(
    posed: OptimizationProblem, found: NewtonEnd, there: Active, hessian: Any
) -> Verdict | None:
    """The verdict where multipliers grow without bound, as where gradients of constraints vanish or are dependent:
    residuals of constraints times their multipliers bound how far the value may be off."""
    if not len(there.numbers):
        return None
    off = float(abs(there.multipliers * posed.constraints.residuals(found.point)[there.numbers]).sum())
    if not off > _OFF * max(abs(found.value), posed.objective.first):
        return None
    largest = float(abs(there.multipliers).max())
    return Verdict(
        there,
        hessian,
        None,
        False,
        "gradients of constraints vanish or are dependent there (no constraint qualification holds): multipliers are as "
        f"large as {largest:.3g}, and the value may be off by {off:.3g} and more",
    )


def _of_kink(posed: OptimizationProblem, found: NewtonEnd, there: Active, hessian: Any) -> Verdict | None:
    """The verdict where the objective is not smooth; None where it is, and where constraints hold the point."""
    np = arrays.numpy_namespace()
    if there.holding.any() or there.fixed.all() or not math.isfinite(found.value):
        return None
    begin = np.where(posed.start != 0.0, abs(posed.start), 1.0)
    sizes = np.maximum(abs(found.point), np.minimum(begin, 1.0))
    nearby = GradientSampler(posed.objective, found.point, sizes, ~there.fixed, posed.low, posed.high)
    kink = nearby.kink(found.value, hessian)
    if kink is None:
        return None
    if kink.falls:
        return Verdict(there, None, None, False, FALLS_FROM_KINK)
    return (
        Verdict(there, None, "kink", True, KINK) if kink.has_subgradient_0 else Verdict(there, None, None, False, STUCK)
    )


def _of_derivatives(posed: OptimizationProblem, found: NewtonEnd, there: Active, hessian: Any) -> Verdict:
    np = arrays.numpy_namespace()
    objective, constraints, x = posed.objective, posed.constraints, found.point
    if not optimality.is_stationary(objective, found, there.slope, hessian):
        is_far = found.value < -_FAR or float(abs(x).max(initial=0.0)) > _FAR
        message = "the gradient does not vanish" if found.converged else found.message
        return Verdict(there, hessian, None, False, UNBOUNDED if is_far else message)
    kind = "bound" if there.fixed.any() else extremum(objective.sign)
    if hessian is None:
        bends = _free_bends(objective, found, there)
        if bends == "down":
            return Verdict(there, None, "saddle", False, SADDLE)
        by_bounds = bends == "up"
        return Verdict(there, None, "bound" if by_bounds else None, True, BY_BOUNDS if by_bounds else VANISHES)
    is_dense = isinstance(hessian, np.ndarray)
    normals = there.normals[there.holding]
    # Bounds alone leave at least one direction of each variable feasible, so that they are tested only together with
    # constraints.
    touched = (
        optimality.weakly_active_normals(there, x, posed.low, posed.high)
        if is_dense and len(constraints)
        else normals[:0]
    )
    if len(touched) > _MOST_TOUCHED:
        touched = touched[:0]
    if len(touched):
        basis = optimality.free_directions(~there.fixed, normals, np.ones(len(x)))
        normals = np.concatenate([normals, touched[optimality.blocked(touched, basis)]])
    bends = optimality.curvature(found.value, x, hessian, ~there.fixed, normals)
    if bends == "down":
        return Verdict(there, hessian, "saddle", False, SADDLE)
    is_flat = bends == "none"
    basis = optimality.free_directions(~there.fixed, normals, np.ones(len(x))) if is_dense else None
    if basis is not None and len(touched) and is_flat:
        is_flat = optimality.has_feasible_direction(touched, optimality.flat_directions(hessian, basis))
        basis = basis if is_flat else None
    if basis is not None and basis.shape[1]:
        step, is_similar = optimality.newton_step_of_least_curvature(
            lambda point: lagrangian_hessian(objective, constraints, point, there), x, there.slope, hessian, basis
        )
        is_flat = is_flat or not is_similar
        if is_flat and not len(constraints) and _falls(posed, found, hessian, basis):
            return Verdict(there, hessian, "flat", False, FALLS_FROM_FLAT, is_flat)
        if not is_similar and not len(constraints) and _SMALL * max(1.0, float(abs(x).max())) < step < math.inf:
            return Verdict(there, hessian, None, False, SLOW_DESCENT)
    if there.fixed.any():
        return Verdict(there, hessian, kind, True, BY_BOUNDS, is_flat)
    if is_flat:
        flat = f"{VANISHES}, and along a direction the curvature too"
        return Verdict(there, hessian, "flat", True, flat, is_flat)
    return Verdict(there, hessian, kind, True, f"a {kind}")


def _free_bends(objective: Objective, found: NewtonEnd, there: Active) -> str | None:
    """The `optimality.curvature` of the free variables at a point without a Hessian at which bounds hold some
    variables, as at an infinite slope; None where it is not known."""
    free = ~there.fixed
    if free.all() or there.holding.any():
        return None
    part = objective.hessian_of(found.point, free) if free.any() else None
    if part is None:
        return None if free.any() else "up"
    return optimality.curvature(found.value, found.point, part, free, there.normals)


def _falls(posed: OptimizationProblem, found: NewtonEnd, hessian: Any, basis: Any) -> bool:
    """Return whether the objective falls along a direction without curvature: near the point, as at an inflection, or
    far from it where all derivatives are 0, as on a step of the objective or where they underflow."""
    np = arrays.numpy_namespace()
    direction = basis @ dense_matrices.symmetric_eigenvectors(basis.T @ hessian @ basis)[1][:, 0]
    size = float(np.linalg.norm(np.where(direction != 0.0, np.maximum(abs(found.point), abs(posed.start)), 0.0))) or 1.0
    is_plateau = not found.gradient.any() and not hessian.any()
    for share in _FAR_AWAY if is_plateau else _NEARBY:
        ends = [np.clip(found.point + sign * share * size * direction, posed.low, posed.high) for sign in (-1.0, 1.0)]
        changes = [posed.objective.value_and_gradient(end)[0] - found.value for end in ends]
        lowest, largest = min(changes), max((c for c in changes if math.isfinite(c)), default=0.0)
        nothing = _ROUNDING * max(abs(found.value), 0.0 if is_plateau else share * size * posed.objective.steepest)
        if lowest < -_SHARE * largest and lowest < -nothing:
            return True
    return False


class Kink(NamedTuple):
    """A point at which an objective is not smooth: whether 0 is a subgradient, None where there are too many variables
    to tell, and whether the objective `falls` from it."""

    has_subgradient_0: bool | None
    falls: bool


class GradientSampler:
    """Samples an objective near a point `x` `[n]` between `low` and `high`, varying only the `free` variables."""

    def __init__(self, objective: Objective, x: Any, sizes: Any, free: Any, low: Any, high: Any) -> None:
        np = arrays.numpy_namespace()
        self._objective, self._x, self._low, self._high = objective, x, low, high
        self._free, self._units = free, np.where(free, sizes, 0.0)
        self._generator = np.random.default_rng(0)

    def kink(self, value: float, hessian: Any) -> Kink | None:
        """The kink at the point, at which the objective has this value and Hessian (None where unknown); None where the
        objective is smooth, or has no finite values nearby."""
        np = arrays.numpy_namespace()
        direction = self._direction()
        wide = self._change(direction, _SAMPLED)
        if wide is None or not wide.any():
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            expected = (
                0.0 if hessian is None else hessian @ (self._at(direction, _SAMPLED) - self._at(direction, -_SAMPLED))
            )
            off = np.linalg.norm((wide - expected)[self._free])
        near = self._change(direction, _SAMPLED * _NEARER)
        if near is None or off <= _SIMILAR * np.linalg.norm(wide) or not self._jumps(near, wide, hessian):
            return None
        return self._subgradients(value)

    def _jumps(self, near: Any, wide: Any, hessian: Any) -> bool:
        np = arrays.numpy_namespace()
        steepest = float(abs(self._objective.value_and_gradient(self._at(self._direction(), _SAMPLED))[1]).max())
        rounding = 0.0 if hessian is None else _TERMS_ROUNDING * float(np.linalg.norm(abs(hessian) @ abs(self._x)))
        return bool(np.linalg.norm(near) >= max(_JUMP * np.linalg.norm(wide), _GRADIENT_ROUNDING * steepest, rounding))

    def _subgradients(self, value: float) -> Kink:
        np = arrays.numpy_namespace()
        count = int(self._free.sum())
        if count > _MOST:
            return Kink(None, False)
        points = [self._at(self._direction(), _SAMPLED) for _ in range(_FOR_EACH * count + _BESIDE)]
        found = [self._objective.value_and_gradient(point) for point in points]
        # Gradients by the scaled variables.
        rows = np.stack([gradient * self._units for _, gradient in found])
        if not np.isfinite(rows).all():
            return Kink(None, False)
        longest = float(np.linalg.norm(rows, axis=1).max())
        falls = min(v for v, _ in found) < value - _FALL * _SAMPLED * longest
        return Kink(
            float(np.linalg.norm(shortest_convex_combination(rows / longest))) <= _ZERO if longest else True, falls
        )

    def _direction(self) -> Any:
        # Every component is large enough that a kink across it is seen.
        signs = self._generator.choice([-1.0, 1.0], len(self._x))
        return signs * self._generator.uniform(0.3, 1.0, len(self._x)) * self._units

    def _at(self, direction: Any, step: float) -> Any:
        np = arrays.numpy_namespace()
        return np.clip(self._x + step * direction, self._low, self._high)

    def _change(self, direction: Any, step: float) -> Any:
        """The change of the gradient across the point; None where the gradient is not finite."""
        np = arrays.numpy_namespace()
        ends = [self._objective.value_and_gradient(self._at(direction, s))[1] for s in (step, -step)]
        change = np.where(self._free, ends[0] - ends[1], 0.0)
        return change if np.isfinite(change).all() else None


def shortest_convex_combination(rows: Any) -> Any:
    """The shortest vector `[n]` in the convex hull of the rows `[k, n]`."""
    from scipy.optimize import nnls

    np = arrays.numpy_namespace()
    # An additional equation with a large weight enforces that the weights add up to 1.
    matrix = np.concatenate([rows.T, np.full((1, len(rows)), 1e3)])
    weights = nnls(matrix, np.append(np.zeros(rows.shape[1]), 1e3))[0]
    return weights @ rows / max(weights.sum(), 1e-300)
