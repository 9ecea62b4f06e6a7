"""Fits many groups of rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.models.fitting.problem import batched_matrices
from gradcli.models.fitting.problem.batched_matrices import pairs
from gradcli.models.fitting.problem.linear_parameters import linear_parameters, projected_parameters
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.problem.stacked_problems import Stacked
from gradcli.models.fitting.search.convergence import (
    largest_offset,
    of_one_minimum,
    relative_offset,
    root_mean_squares,
    terms,
    without_effect,
)
from gradcli.models.fitting.search.estimation import (
    DESCENT_VARIANTS,
    INITIAL_STEP,
    POOR_FRACTION,
    SearchOptions,
    representative,
)
from gradcli.models.fitting.search.levenberg_marquardt import levenberg_marquardt
from gradcli.models.fitting.search.start_values import fewer_rows, hypercube
from gradcli.models.fitting.statistics.inference import FitRows, Statistics, statistics
from gradcli.models.results import ProgressCallback
from gradcli.named_tuples import NamedTuple

# The descent of groups ends at the relative offset _NEAR, from which at most _STEPS steps of Newton's method, each of
# which squares the error, reach _DONE, where they end.
_DESCENT_OFFSET, _STEPS, _NEWTON_OFFSET = 1e-4, 2, 1e-10
# Share of a diagonal element of the Hessian that remains in its Cholesky factor below which it is a rounding error.
_SINGULAR = 1e-15
# Ranks, by cost, of the candidate points from which a group is searched: near each other at first, then far apart.
_RANKS = (0, 1, 2, 4, 8, 16, 32)
# Number of candidate points.
_CANDIDATES = 256


class GroupFits(NamedTuple):
    """The fits of g groups: the `points` `[g, p]`; whether each `converged`, which requires that all searches of the
    group ended at it and that it is a minimum between its bounds; the number of `starts` of each group; iterations and
    evaluations; and the rows and statistics there."""

    points: Any
    converged: Any
    starts: int
    iterations: Any
    evaluations: Any
    rows: FitRows
    statistics: Statistics


class GroupSearch(NamedTuple):
    """The settings of the search of each group: from at most `most` of the `candidates` `[k, p]`, with the `linear`
    parameters projected out, and first steps that are `reach` times as long as the point."""

    candidates: Any
    linear: Sequence[int]
    reach: float
    most: int = len(_RANKS)


def plan_groups(problem: Problem, start: Any, search: SearchOptions) -> GroupSearch:
    """The search of groups from a `start` `[p]`, nan for parameters without a start value.

    It is the first variant of the search of a single group, except where parameters without a start value are not
    linear: then fewer points are tried, and the candidates are the same for all groups.
    """
    unknown = np.isnan(start)
    if not unknown.any():
        return GroupSearch(start[None], (), DESCENT_VARIANTS[0].reach)
    linear = projected_parameters(problem, linear_parameters(problem, np.where(unknown, 1.0, start)))
    if unknown[[i for i in range(len(start)) if i not in linear]].any():
        candidates = hypercube(fewer_rows(problem, start), start, _CANDIDATES, search.seed)
        candidates[:, [*linear]] = np.where(unknown[[*linear]], 0.0, start[[*linear]])
        return GroupSearch(candidates, linear, INITIAL_STEP, min(search.starts, len(_RANKS)))
    point = np.clip(np.where(unknown, 0.0, start), problem.low, problem.high)
    return GroupSearch(point[None], linear, DESCENT_VARIANTS[1].reach)


def _starts(stacked: Stacked, plan: GroupSearch) -> Any:
    """The points `[g, m, p]` from which each group is searched."""
    g, k = len(stacked.real), len(plan.candidates)
    if k == 1:
        return np.tile(plan.candidates, (g, 1, 1))
    every = np.tile(plan.candidates, (g, 1)), np.repeat(np.arange(g), k)
    costs = stacked.projected_costs(*every, plan.linear).reshape(g, k)
    order = np.argsort(np.where(np.isfinite(costs), costs, np.inf), axis=1, kind="stable")
    return plan.candidates[order[:, _RANKS[: plan.most]]]


def fit_stacked(stacked: Stacked, plan: GroupSearch, watch: ProgressCallback | None = None) -> GroupFits:
    """Fit every group; `watch` is called with each iteration."""
    p = stacked.low.size
    searched = _searched(stacked, plan, watch)
    points, steps, here = _polished(stacked, searched.points)
    rows = _rows_at(stacked, points, here)
    found = statistics(rows, stacked.known)
    minimum = searched.agreed & _is_minimum(stacked, points, here, rows, found) & _newton(here).is_definite
    if searched.starts == 1 and len(plan.linear) < p and stacked.known.family == "gaussian":
        # A poor minimum is left for a search of that group alone, which tries other starts.
        minimum &= found.r2 >= 1 - POOR_FRACTION
    taken = searched.iterations + steps, searched.evaluations + steps + 1
    return GroupFits(points, minimum, searched.starts, *taken, rows._replace(second=None), found)


class _Searched(NamedTuple):
    """The searches of g groups: the best of the end points `[g, p]` of each, whether all searches of the group
    `agreed`, the number of searches of each group, and their iterations and evaluations in total."""

    points: Any
    agreed: Any
    starts: int
    iterations: Any
    evaluations: Any


def _searched(stacked: Stacked, plan: GroupSearch, watch: ProgressCallback | None) -> _Searched:
    starts = _starts(stacked, plan)
    g, m, p = starts.shape
    ended = levenberg_marquardt(
        lambda points, which: stacked.linearised(points, which // m),
        starts.reshape(-1, p),
        np.repeat(stacked.dof, m),
        linear=plan.linear,
        low=stacked.low,
        high=stacked.high,
        reach=plan.reach,
        enough=_DESCENT_OFFSET,
        watch=watch,
    )
    costs = np.where(np.isfinite(ended.costs), ended.costs, np.inf).reshape(g, m)
    agreed = of_one_minimum(costs, costs.min(axis=1, keepdims=True), stacked.response_norm[:, None]).all(axis=1)
    points = ended.points.reshape(g, m, p)
    best = [representative(own, plan.linear) for own in points] if m > 1 else np.zeros(g, int)
    iterations, evaluations = ended.iterations.reshape(g, m).sum(axis=1), ended.evaluations.reshape(g, m).sum(axis=1)
    return _Searched(points[np.arange(g), best], agreed, m, iterations, evaluations)


class _PointState(NamedTuple):
    """The rows and costs at one point of each of g groups: the values `[g, m]`; the derivatives, `[g, m]` each, first
    those by the p parameters and then those by pairs of them; the cost `[g]`, its gradient `pull` `[p, g]` and its
    `hessian` `[p, p, g]`."""

    value: Any
    derivatives: Sequence[Any]
    cost: Any
    pull: Any
    hessian: Any

    def put(self, which: Any, others: _PointState) -> None:
        """Replace those of the groups at the indices `which` by others."""
        self.value[which], self.cost[which] = others.value, others.cost
        self.pull[:, which], self.hessian[:, :, which] = others.pull, others.hessian
        for own, other in zip(self.derivatives, others.derivatives):
            own[which] = other


class _Newton(NamedTuple):
    """Steps of Newton's method, `[p, g]`, to be subtracted; the gradients `inside` the metric of the Hessian, whose
    lengths are those of the steps in it; and whether the Hessian `is_definite`, as far as rounding errors let it be
    known."""

    step: Any
    inside: Any
    is_definite: Any


def _polished(stacked: Stacked, points: Any) -> tuple[Any, Any, _PointState]:
    """The points after steps of Newton's method, taken where the Hessian is positive definite; the number of these
    steps for each group; and the rows and costs there."""
    g, p = points.shape
    dof = stacked.dof
    points, steps, left = points.copy(), np.zeros(g, int), np.arange(g)
    here = there = _at(stacked, points)
    for _ in range(_STEPS):
        newton = _newton(there)
        with np.errstate(all="ignore"):
            offset = relative_offset(batched_matrices.norms(newton.inside), np.sqrt(2 * there.cost), p, dof[left])
        go = newton.is_definite & ~(offset <= _NEWTON_OFFSET)
        left = left[go]
        if not len(left):
            break
        points[left] = np.clip(points[left] - newton.step[:, go].T, stacked.low, stacked.high)
        steps[left] += 1
        there = _at(stacked if len(left) == g else stacked.chosen(left), points[left])
        if len(left) == g:
            here = there
        else:
            here.put(left, there)
    return points, steps, here


def _at(stacked: Stacked, points: Any) -> _PointState:
    value, derivatives = stacked.second_of(points)
    cost, prior = stacked.cost(value), stacked.prior_residuals(points)
    g, p = points.shape
    first, second = derivatives[:p], derivatives[p:]
    with np.errstate(all="ignore"):
        pull = np.stack([np.vecdot(cost.first, column) for column in first])
        hessian = np.empty((p, p, g))
        weighted = [cost.second * column for column in first]
        for i, j, bent in zip(*pairs(p), second):
            hessian[i, j] = hessian[j, i] = np.vecdot(weighted[i], first[j]) + np.vecdot(cost.first, bent)
        pull += (prior / stacked.priors[1]).T
        hessian[range(p), range(p)] += stacked.priors[1][:, None] ** -2.0
        return _PointState(value, derivatives, cost.value.sum(axis=1) + np.vecdot(prior, prior) / 2, pull, hessian)


def _newton(here: _PointState) -> _Newton:
    with np.errstate(all="ignore"):
        root = batched_matrices.cholesky(here.hessian)
        inverse = batched_matrices.inverse(root)
        inside = batched_matrices.product(inverse.swapaxes(0, 1), here.pull)
        step = batched_matrices.product(inverse, inside)
        shares = np.einsum("iig->ig", root) ** 2 / np.einsum("iig->ig", here.hessian)
        is_definite = (shares > _SINGULAR).all(axis=0) & np.isfinite(step).all(axis=0)
    return _Newton(step, inside, is_definite)


def _rows_at(stacked: Stacked, points: Any, here: _PointState) -> FitRows:
    p = points.shape[-1]
    derivatives = np.stack(here.derivatives).transpose(1, 2, 0)
    priors = None
    if stacked.has_priors:
        priors = stacked.prior_residuals(points), np.tile(stacked.priors[1], (len(points), 1))
    deviations = np.where(stacked.real, stacked.sigma, 1.0)
    first, second = derivatives[..., :p], derivatives[..., p:]
    return FitRows(here.value, stacked.response, deviations, stacked.real, first, second, priors)


def _is_minimum(stacked: Stacked, points: Any, here: _PointState, rows: FitRows, found: Statistics) -> Any:
    """At which points `[g]` the relative offset is that of a minimum, up to rounding errors, and all parameters are
    determined and within their bounds."""
    p = points.shape[-1]
    inside = np.sqrt(np.einsum("gji,jg->gi", found.information.axes, here.pull) ** 2 @ np.ones(p))
    with np.errstate(all="ignore"):
        rest = np.sqrt(2 * here.cost)
        size = root_mean_squares(terms(here.value, rows.first, points), stacked.sigma, found.n)
        minimum = relative_offset(inside, rest, p, found.dof) <= largest_offset(size, rest, found.dof)
    lost = without_effect(here.value, here.derivatives[:p], stacked.sigma, points, found.n)
    # Unlike in a single fit, a prior excuses only its own parameter: a group in doubt is searched alone.
    minimum &= ~(lost & np.isinf(stacked.priors[1])).any(axis=1) & found.information.is_determined
    return minimum & ((points > stacked.low) & (points < stacked.high)).all(axis=1)
