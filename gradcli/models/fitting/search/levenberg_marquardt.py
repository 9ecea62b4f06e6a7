"""Minimises costs from many points at once by the Levenberg-Marquardt method, with linear parameters projected out.

The trust region is that of J. J. Moré ("The Levenberg-Marquardt algorithm: implementation and theory", Lecture Notes in
Mathematics 630 (1978) 105), scaled by the columns of the Jacobian. Parameters that enter linearly always have their
best values for the others (variable projection: G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973) 413), with
the Jacobian of L. Kaufman, BIT 15 (1975) 49: the remainder after the columns of the linear parameters are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.problem import batched_matrices
from gradcli.models.fitting.problem.linearisations import Linearised, least_squares_step, linear_first
from gradcli.models.fitting.search.convergence import relative_offset
from gradcli.models.fitting.statistics.information import RANK_TOLERANCE
from gradcli.models.results import Iteration, ProgressCallback
from gradcli.named_tuples import NamedTuple

# Linearises problems at points [k, p]; the second argument [k] are the indices of the problems.
Linearise = Callable[[Any, Any], Linearised]
# From dampings [g] to the steps [p, g], and half the rate at which the squares [g] of their lengths fall with damping.
_Damped = Callable[[Any], tuple[Any, Any]]

_EPSILON = 2.0**-52
# A step is accepted where the cost falls by at least this fraction of the predicted decrease.
_MIN_GAIN_RATIO = 1e-4
# Largest number of Hebden's iterations for a damping.
_HEBDEN_STEPS = 12
# Lower and upper limit of the length of a damped step, relative to the radius of the trust region.
_MIN_STEP_RATIO, _MAX_STEP_RATIO = 0.95, 1.05
# Limit of the product of the Frobenius norms of a matrix and its inverse up to which undamped steps are computed
# without singular values.
_MAX_CONDITION = 1e8
# The same limit for Cholesky factors of AᵀA, which square the condition number.
_MAX_CONDITION_CHOLESKY = 1e6


class Descended(NamedTuple):
    """The results of g problems: the `points` `[g, p]` of the lowest costs found, these costs, the numbers of steps
    tried and of linearisations, and the relative offsets there (see `relative_offset`), `[g]` each."""

    points: Any
    costs: Any
    iterations: Any
    evaluations: Any
    offsets: Any


def levenberg_marquardt(
    linearise: Linearise,
    points: Any,
    dof: Any,
    *,
    low: Any,
    high: Any,
    reach: float,
    watch: ProgressCallback | None,
    linear: Sequence[int] = (),
    most: int = 200,
    enough: float = 1e-9,
) -> Descended:
    """Minimise the cost from points `[g, p]`, each in a problem with `dof` degrees of freedom, one number or `[g]`.

    `linear` are the indices of the parameters to project out, which must have no bounds. First steps are at most
    `reach` times as long as the point. A search ends where the relative offset is at most `enough`, where steps no
    longer lower the cost, or after `most` steps. `watch` is called after each step of the searches with the lowest
    cost.
    """
    with np.errstate(all="ignore"):
        search = _Search(linearise, points, dof, linear, low, high, reach)
        for number in range(most):
            if not search.step(enough):
                break
            if watch is not None:
                watch(search.iteration(number + 1))
        return search.found()


class _Search:
    """The state of g searches. The problems are the last axis of all arrays, as in points `[p, g]`, so that each
    operation runs over all of them."""

    def __init__(
        self, linearise: Linearise, points: Any, dof: Any, linear: Sequence[int], low: Any, high: Any, reach: float
    ) -> None:
        g, p = points.shape
        self._linearise, self._dof, self._reach = linearise, np.broadcast_to(dof, g), reach
        self.linear = np.asarray([*linear], int)
        self.others = np.asarray([i for i in range(p) if i not in linear], int)
        self._low = np.full((p, 1), -np.inf) if low is None else low[:, None]
        self._high = np.full((p, 1), np.inf) if high is None else high[:, None]
        self._is_bounded = bool(np.isfinite([self._low, self._high]).any())
        self.points = self._clipped(np.array(points.T, "float64", order="C"))
        self.iterations, self.evaluations = np.zeros(g, int), np.zeros(g, int)
        self.costs, self.offsets = np.full(g, np.inf), np.full(g, np.inf)
        self._factors = np.zeros((p + 1, p + 1, g))
        self._scale = np.zeros((len(self.others), g))
        self._radius = np.full(g, np.nan)
        everyone = np.arange(g)
        self._keep(everyone, self.points, *self._at(self.points, everyone))
        self._active = np.isfinite(self.costs)

    def found(self) -> Descended:
        return Descended(self.points.T, self.costs, self.iterations, self.evaluations, self.offsets)

    def iteration(self, number: int) -> Iteration:
        """The progress of the searches: the lowest cost, and the length of the gradient there."""
        factor = self._factors[:, :, np.argmin(self.costs)]
        gradient = factor[:, :-1].T @ factor[:, -1]
        return Iteration(number, float(self.costs.min()), float(np.sqrt(gradient @ gradient)))

    def _clipped(self, points: Any) -> Any:
        return np.clip(points, self._low, self._high) if self._is_bounded else points

    def _at(self, points: Any, which: Any) -> tuple[Any, Any]:
        """The costs, and the triangular factors with the columns of the linear parameters first."""
        found = self._linearise(points.T, which)
        self.evaluations[which] += 1
        factor = linear_first(found.factor, self.linear.tolist()) if len(self.linear) else found.factor
        return found.cost, batched_matrices.batch_last(factor)

    def _keep(self, which: Any, points: Any, costs: Any, factors: Any) -> None:
        """Move to `points`, with the linear parameters at their best values there."""
        if len(self.linear):
            moved = points.copy()
            moved[self.linear] += self._linear_step(factors)
            again, factors_again = self._at(moved, which)
            # The result can be worse: slightly by rounding, and considerably where the columns are nearly dependent.
            better = again <= costs * (1 + 1e-12)
            points = np.where(better, moved, points)
            costs = np.where(better, again, costs)
            factors = np.where(better, factors_again, factors)
        self.points[:, which], self.costs[which], self._factors[:, :, which] = points, costs, factors

    def _linear_step(self, factors: Any, shift: Any = 0.0) -> Any:
        """The least-squares step of the linear parameters, where the residuals change by `shift` `[l, k]`."""
        count = len(self.linear)
        return least_squares_step(factors[:count, :count].transpose(2, 0, 1), (factors[:count, -1] + shift).T).T

    def step(self, enough: float) -> bool:
        """Try one step of every search that has not ended; False where all have."""
        count = len(self.linear)
        k = np.flatnonzero(self._active)
        if not len(k):
            return False
        factors, point = _taken(self._factors, k), _taken(self.points, k)
        matrix, q, rest = factors[count:-1, count:-1], factors[count:-1, -1], factors[-1, -1]
        lengths = batched_matrices.norms(matrix)
        # A column that depends on those of the linear parameters leaves only rounding errors when these are eliminated.
        held = lengths <= RANK_TOLERANCE * (batched_matrices.norms(factors[:-1, count:-1]) if count else lengths)
        if self._is_bounded:
            gradient = batched_matrices.product(matrix.swapaxes(0, 1), q)
            held |= (point <= self._low)[self.others] & (gradient > 0)
            held |= (point >= self._high)[self.others] & (gradient < 0)
        if held.any():
            matrix, lengths = np.where(held, 0, matrix), np.where(held, 0, lengths)
        scale = np.maximum(_taken(self._scale, k), lengths)
        self._scale[:, k] = scale
        scale[scale == 0] = 1
        long = batched_matrices.norms(scale * point[self.others])
        radius = _taken(self._radius, k)
        first = np.isnan(radius)
        if first.any():
            radius = np.where(first, self._reach * np.where(long > 0, long, 1), radius)
            self._radius[k] = radius
        steps, inside, beyond = _steps(matrix / scale, q, radius)
        inside = np.sqrt(inside + batched_matrices.squared_norms(factors[:count, -1]))
        self.offsets[k] = offsets = relative_offset(inside, np.sqrt(rest**2 + beyond), len(point), _taken(self._dof, k))
        done = (offsets <= enough) | (inside <= _EPSILON * np.sqrt(2 * _taken(self.costs, k)))
        done |= radius <= 4 * _EPSILON * long
        self._active[k[done]] = False
        if not done.all():
            go = np.flatnonzero(~done)
            self._try(k[go], *(_taken(part, go) for part in (point, scale, matrix, q, steps, factors)))
        return bool(self._active.any())

    def _try(self, k: Any, point: Any, scale: Any, matrix: Any, q: Any, steps: Any, factors: Any) -> None:
        count = len(self.linear)
        trial = point.copy()
        trial[self.others] += steps / scale
        trial = self._clipped(trial)
        step = (trial - point)[self.others]
        if count:
            trial[self.linear] += self._linear_step(factors, batched_matrices.product(factors[:count, count:-1], step))
        left = batched_matrices.product(matrix, step) + q
        predicted = (batched_matrices.squared_norms(q) - batched_matrices.squared_norms(left)) / 2
        costs, trial_factors = self._at(trial, k)
        self.iterations[k] += 1
        before = _taken(self.costs, k)
        # The decrease of the cost with the linear parameters at their best values.
        actual = before - (costs - batched_matrices.squared_norms(trial_factors[:count, -1]) / 2)
        ratio = np.where(predicted > 0, actual / predicted, -1)
        ratio[~np.isfinite(ratio)] = -1
        length = batched_matrices.norms(scale * step)
        radius = _taken(self._radius, k)
        shorter = np.minimum(radius, length) * np.where(np.isfinite(costs), 0.25, 0.1)
        radius = np.where(ratio < 0.25, shorter, radius)
        self._radius[k] = np.where(ratio > 0.75, np.maximum(radius, 2 * length), radius)
        # A search ends where rounding errors hide both the predicted and the actual change of the cost.
        hidden = (predicted <= 4 * _EPSILON * before) & (np.abs(actual) <= 16 * _EPSILON * before)
        taken = np.flatnonzero(ratio >= _MIN_GAIN_RATIO)
        if len(taken):
            self._keep(k[taken], *(_taken(part, taken) for part in (trial, costs, trial_factors)))
        self._active[k[hidden]] = False


def _taken(of_all: Any, places: Any) -> Any:
    """The elements at the sorted indices `places` of the last axis; without a copy where these are all of them."""
    return of_all if len(places) == of_all.shape[-1] else of_all.take(places, axis=-1)


def _steps(matrix: Any, q: Any, radius: Any) -> tuple[Any, Any, Any]:
    """The steps `[p, g]` that minimise the sums of squares of residuals `q` `[p, g]`, which change by triangular
    matrices `[p, p, g]`, with lengths of at most `radius` `[g]`.

    Returned with them are the squared lengths `[g]` of the residuals' components that such steps can change, and of the
    others.
    """
    inverse = batched_matrices.inverse(matrix)
    steps = -batched_matrices.product(inverse, q)
    inside, beyond = batched_matrices.squared_norms(q), np.zeros(len(radius))
    spread = batched_matrices.squared_norms(matrix).sum(0) * batched_matrices.squared_norms(inverse).sum(0)
    is_short = batched_matrices.norms(steps) <= _MAX_STEP_RATIO * radius
    # Singular values would add nothing where the undamped step is within the radius and the matrix is well conditioned.
    if (is_short & (spread < _MAX_CONDITION**2)).all():
        return steps, inside, beyond
    is_plain = spread < _MAX_CONDITION_CHOLESKY**2
    some = np.flatnonzero(is_plain & ~is_short)
    if len(some):
        own, rest = _taken(matrix, some), _taken(q, some)
        gradient = batched_matrices.product(own.swapaxes(0, 1), rest)
        at = _steps_by_cholesky(own, gradient, -_taken(steps, some), _taken(inverse, some))
        steps[:, some] = -_trust_region_steps(at, batched_matrices.norms(gradient), radius[some])
    left = np.flatnonzero(~is_plain & ~(is_short & (spread < _MAX_CONDITION**2)))
    if len(left):
        u, s, vt = np.linalg.svd(_taken(matrix, left).transpose(2, 0, 1))
        s, w = s.T, batched_matrices.product(u.transpose(2, 1, 0), _taken(q, left))
        kept = s > s[:1] * _EPSILON * 8
        outside, w = np.where(kept, 0, w), np.where(kept, w, 0)
        along = _trust_region_steps(
            _steps_by_svd(np.where(kept, s, np.inf), w), batched_matrices.norms(s * w), radius[left]
        )
        steps[:, left] = -batched_matrices.product(vt.transpose(2, 1, 0), along)
        inside[left], beyond[left] = batched_matrices.squared_norms(w), batched_matrices.squared_norms(outside)
    return steps, inside, beyond


def _steps_by_cholesky(matrix: Any, gradient: Any, whole: Any, inverse: Any) -> _Damped:
    """Damped steps by Cholesky factors of AᵀA plus the damping, for matrices A `[p, p, g]`, from the gradients
    `[p, g]`. Without damping they are the `whole` steps `[p, g]`, and their rates follow from the inverses of the
    matrices."""
    products = np.einsum("nig,njg->ijg", matrix, matrix)
    diagonal = range(len(products))

    def at(damping: Any) -> tuple[Any, Any]:
        if not damping.any():
            return whole, batched_matrices.squared_norms(batched_matrices.product(inverse.swapaxes(0, 1), whole))
        damped = products.copy()
        damped[diagonal, diagonal] += damping
        root = batched_matrices.inverse(batched_matrices.cholesky(damped))
        transposed = root.swapaxes(0, 1)
        z = batched_matrices.product(root, batched_matrices.product(transposed, gradient))
        return z, batched_matrices.squared_norms(batched_matrices.product(transposed, z))

    return at


def _steps_by_svd(s: Any, w: Any) -> _Damped:
    """Damped steps in the basis of the right singular vectors, from the singular values `s` `[p, g]`, infinite for
    those that are rounding errors, and the residuals `w` `[p, g]` in the basis of the left singular vectors."""

    def at(damping: Any) -> tuple[Any, Any]:
        z = w / (s + damping / s)
        return z, (z * z / (s * s + damping)).sum(0)

    return at


def _trust_region_steps(at: _Damped, slope: Any, radius: Any) -> Any:
    """The negatives `[p, g]` of the steps that minimise the sum of squares within `radius` `[g]`; `slope` `[g]` is half
    the length of its gradient. Hebden's iteration finds the damping."""
    damping, lower, upper = np.zeros(len(radius)), np.zeros(len(radius)), slope / radius
    for _ in range(_HEBDEN_STEPS):
        z, bent = at(damping)
        norm = batched_matrices.norms(z)
        long = norm > _MAX_STEP_RATIO * radius
        short = (norm < _MIN_STEP_RATIO * radius) & (damping > 0)
        changed = long | short
        if not changed.any():
            break
        lower = np.where(long, np.maximum(lower, damping), lower)
        upper = np.where(short, np.minimum(upper, damping), upper)
        newton = damping + norm * (norm / radius) * (norm - radius) / bent
        between = np.maximum(np.sqrt(lower * upper), 1e-3 * upper)
        newton = np.where((newton > lower) & (newton < upper), newton, between)
        damping = np.where(changed, newton, damping)
    return z
