"""Least costs near many points at once: Levenberg and Marquardt's method, with linear parameters projected out.

The trust region is that of J. J. Moré ("The Levenberg-Marquardt algorithm: implementation and theory", Lecture Notes in
Mathematics 630 (1978) 105), scaled by the columns of the Jacobian. Parameters that enter linearly are always the best
ones for the others: G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10 (1973) 413, with the Jacobian of L. Kaufman,
BIT 15 (1975) 49, which is what is left of it when the columns of the linear ones are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.fitting.convergence import relative_offset
from gradcli.models.fitting.information import NOTHING
from gradcli.models.fitting.linearisations import Linearised, best_step, inverse_triangle, linear_first
from gradcli.models.results import Iteration, Watcher

# From points [k, p], and which of the problems they belong to [k], to these linearised.
Linearise = Callable[[Any, Any], Linearised]

_EPSILON = 2.0**-52
# A step is taken where the cost falls by so much of what was predicted.
_ENOUGH = 1e-4
_HEBDEN_STEPS = 12
# A step may be so many times as long as the radius.
_LONGER = 1.05
# The product of the lengths of a matrix and its inverse up to which its singular values are not asked for.
_SPREAD = 1e8


class Descended(NamedTuple):
    """For each of g problems the point `[p]` of the least cost that was found, the cost, how often a step was tried and
    the problem linearised, and the relative offset there (see `relative_offset`)."""

    points: Any
    costs: Any
    iterations: Any
    evaluations: Any
    offsets: Any


def descend(
    linearise: Linearise,
    points: Any,
    dof: Any,
    *,
    low: Any,
    high: Any,
    reach: float,
    watch: Watcher | None,
    linear: Sequence[int] = (),
    most: int = 200,
    enough: float = 1e-9,
) -> Descended:
    """Descend from points `[g, p]`, each in a problem with `dof` degrees of freedom, one number or `[g]`.

    `linear` are the parameters to project out, which have no bounds; the first steps are at most `reach` times as long as
    the point. It ends where the relative offset is at most `enough`, where steps bring nothing more, or after `most`; `watch` is told of each of
    them, with the lowest cost.
    """
    with arrays.numpy_namespace().errstate(all="ignore"):
        search = _Search(linearise, points, dof, linear, low, high, reach)
        for number in range(most):
            if not search.step(enough):
                break
            if watch is not None:
                watch(search.iteration(number + 1))
        return search.found()


class _Search:
    def __init__(
        self, linearise: Linearise, points: Any, dof: Any, linear: Sequence[int], low: Any, high: Any, reach: float
    ) -> None:
        np = arrays.numpy_namespace()
        g, p = points.shape
        self._linearise, self._dof, self._reach = linearise, np.broadcast_to(dof, g), reach
        self.linear = np.asarray([*linear], int)
        self.others = np.asarray([i for i in range(p) if i not in linear], int)
        self._low = np.full(p, -np.inf) if low is None else low
        self._high = np.full(p, np.inf) if high is None else high
        self.points = np.clip(np.array(points, "float64"), self._low, self._high)
        self.iterations, self.evaluations = np.zeros(g, int), np.zeros(g, int)
        self.costs, self.offsets = np.full(g, np.inf), np.full(g, np.inf)
        self._factors = np.zeros((g, p + 1, p + 1))
        self._scale = np.zeros((g, len(self.others)))
        self._radius = np.full(g, np.nan)
        everyone = np.arange(g)
        costs, factors = self._at(self.points, everyone)
        self._keep(everyone, self.points, costs, factors)
        self._active = np.isfinite(self.costs)

    def found(self) -> Descended:
        return Descended(self.points, self.costs, self.iterations, self.evaluations, self.offsets)

    def iteration(self, number: int) -> Iteration:
        """How far it is, where the cost is lowest."""
        np = arrays.numpy_namespace()
        factor = self._factors[np.argmin(self.costs)]
        gradient = factor[:, :-1].T @ factor[:, -1]
        return Iteration(number, float(self.costs.min()), float(np.sqrt(gradient @ gradient)))

    def _at(self, points: Any, which: Any) -> Linearised:
        """With the linear parameters first."""
        found = self._linearise(points, which)
        self.evaluations[which] += 1
        if not len(self.linear):
            return found
        return found._replace(factor=linear_first(found.factor, self.linear))

    def _keep(self, which: Any, points: Any, costs: Any, factors: Any) -> None:
        """Go to points, with the best linear parameters there."""
        np = arrays.numpy_namespace()
        if len(self.linear):
            moved = points.copy()
            moved[:, self.linear] += self._to_best(factors)
            again, factors_again = self._at(moved, which)
            # Rounding may make it worse by a little, and where the columns depend on each other by much.
            better = again <= costs * (1 + 1e-12)
            points = np.where(better[:, None], moved, points)
            costs = np.where(better, again, costs)
            factors = np.where(better[:, None, None], factors_again, factors)
        self.points[which], self.costs[which], self._factors[which] = points, costs, factors

    def _to_best(self, factors: Any, shift: Any = 0.0) -> Any:
        """The step of the linear parameters to their least squares, where the residuals change by `shift` `[k, l]`."""
        count = len(self.linear)
        return best_step(factors[:, :count, :count], factors[:, :count, -1] + shift)

    def step(self, enough: float) -> bool:
        """Try a step of every problem that is not done; False where all are."""
        np = arrays.numpy_namespace()
        count = len(self.linear)
        k = np.flatnonzero(self._active)
        if not len(k):
            return False
        factors, point = self._factors[k], self.points[k]
        matrix, q, rest = factors[:, count:-1, count:-1], factors[:, count:-1, -1], factors[:, -1, -1]
        gradient = _times(matrix.mT, q)
        held = (point <= self._low)[:, self.others] & (gradient > 0)
        held |= (point >= self._high)[:, self.others] & (gradient < 0)
        lengths = _lengths(matrix)
        # What is left of a column when those of linear parameters are eliminated, on which it depends, is rounding.
        held |= lengths <= NOTHING * (_lengths(factors[:, :-1, count:-1]) if count else lengths)
        matrix = np.where(held[:, None, :], 0, matrix)
        self._scale[k] = np.maximum(self._scale[k], np.where(held, 0, lengths))
        scale = np.where(self._scale[k] > 0, self._scale[k], 1)
        long = np.sqrt(((scale * point[:, self.others]) ** 2).sum(-1))
        first = np.isnan(self._radius[k])
        self._radius[k] = np.where(first, self._reach * np.where(long > 0, long, 1), self._radius[k])
        steps, inside, beyond = _steps(matrix / scale[:, None, :], q, self._radius[k])
        linear_part = factors[:, :count, -1]
        inside = np.sqrt(inside + (linear_part * linear_part).sum(-1))
        self.offsets[k] = relative_offset(inside, np.sqrt(rest**2 + beyond), len(point[0]), self._dof[k])
        done = (self.offsets[k] <= enough) | (inside <= _EPSILON * np.sqrt(2 * self.costs[k]))
        done |= self._radius[k] <= 4 * _EPSILON * long
        self._active[k[done]] = False
        if done.all():
            return bool(self._active.any())
        go = ~done
        self._try(k[go], point[go], scale[go], matrix[go], q[go], steps[go], factors[go])
        return bool(self._active.any())

    def _try(self, k: Any, point: Any, scale: Any, matrix: Any, q: Any, steps: Any, factors: Any) -> None:
        np = arrays.numpy_namespace()
        count = len(self.linear)
        step = steps / scale
        trial = point.copy()
        trial[:, self.others] += step
        trial = np.clip(trial, self._low, self._high)
        step = (trial - point)[:, self.others]
        if count:
            trial[:, self.linear] += self._to_best(factors, _times(factors[:, :count, count:-1], step))
        left = _times(matrix, step) + q
        predicted = ((q * q).sum(-1) - (left * left).sum(-1)) / 2
        costs, trial_factors = self._at(trial, k)
        self.iterations[k] += 1
        inside = trial_factors[:, :count, -1]
        with np.errstate(all="ignore"):
            # What the cost is with the best linear parameters.
            actual = self.costs[k] - (costs - (inside * inside).sum(-1) / 2)
            ratio = np.where(predicted > 0, actual / predicted, -1)
        ratio = np.where(np.isfinite(ratio), ratio, -1)
        length = np.sqrt(((scale * step) ** 2).sum(-1))
        radius = self._radius[k]
        radius = np.where(ratio < 0.25, np.minimum(radius, length) * np.where(np.isfinite(costs), 0.25, 0.1), radius)
        self._radius[k] = np.where(ratio > 0.75, np.maximum(radius, 2 * length), radius)
        taken = ratio >= _ENOUGH
        # What rounding hides is done.
        hidden = (predicted <= 4 * _EPSILON * self.costs[k]) & (np.abs(actual) <= 16 * _EPSILON * self.costs[k])
        if taken.any():
            self._keep(k[taken], trial[taken], costs[taken], trial_factors[taken])
        self._active[k[hidden]] = False


def _times(matrix: Any, vector: Any) -> Any:
    """Products of matrices `[g, m, n]` and vectors `[g, n]`."""
    return (matrix @ vector[..., None])[..., 0]


def _lengths(matrix: Any) -> Any:
    """The lengths of columns."""
    np = arrays.numpy_namespace()
    return np.sqrt(np.einsum(matrix, matrix, subscripts="gij,gij->gj"))


def _steps(matrix: Any, q: Any, radius: Any) -> tuple[Any, Any, Any]:
    """The steps `[g, p]` to the least sum of squares of residuals `q` `[g, p]`, which change by triangular matrices
    `[g, p, p]`, that are not longer than `radius`; the squares `[g]` of the residuals' parts that such steps change, and
    of the others."""
    np = arrays.numpy_namespace()
    inverse = inverse_triangle(matrix)
    steps = -_times(inverse, q)
    inside, beyond = (q * q).sum(-1), np.zeros(len(q))
    spread = (matrix * matrix).sum((-1, -2)) * (inverse * inverse).sum((-1, -2))
    # Where the whole step is short enough, and rounding is not enlarged by much, singular values would tell no more.
    left = np.flatnonzero(~((spread < _SPREAD**2) & (np.sqrt((steps * steps).sum(-1)) <= _LONGER * radius)))
    if len(left):
        u, s, vt = np.linalg.svd(matrix[left])
        w = _times(u.mT, q[left])
        kept = s > s[:, :1] * _EPSILON * 8
        outside, w = np.where(kept, 0, w), np.where(kept, w, 0)
        steps[left] = _within(s, vt, w, radius[left])
        inside[left], beyond[left] = (w * w).sum(-1), (outside * outside).sum(-1)
    return steps, inside, beyond


def _within(s: Any, vt: Any, w: Any, radius: Any) -> Any:
    """The steps to the least sum of squares that are not longer than `radius`, from singular values and the residuals in
    the basis of the left singular vectors; Hebden's iteration for the damping."""
    np = arrays.numpy_namespace()
    tiny = s[:, :1] * _EPSILON * 8
    safe = np.where(s > tiny, s, np.inf)
    z = w / safe
    damping = np.zeros(len(s))
    upper = np.sqrt(((s * w) ** 2).sum(-1)) / radius
    lower = np.zeros(len(s))
    with np.errstate(all="ignore"):
        for _ in range(_HEBDEN_STEPS):
            z = np.where(s > tiny, s * w / (s * s + damping[:, None]), 0)
            norm = np.sqrt((z * z).sum(-1))
            long = norm > _LONGER * radius
            short = (norm < 0.95 * radius) & (damping > 0)
            if not (long | short).any():
                break
            lower = np.where(long, np.maximum(lower, damping), lower)
            upper = np.where(short, np.minimum(upper, damping), upper)
            slope = -(z * z / (s * s + damping[:, None])).sum(-1) / norm
            newton = damping - (norm / radius) * (norm - radius) / slope
            between = np.maximum(np.sqrt(lower * upper), 1e-3 * upper)
            newton = np.where((newton > lower) & (newton < upper), newton, between)
            damping = np.where(long | short, newton, damping)
    return -_times(vt.mT, z)
