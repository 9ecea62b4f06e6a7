"""Intervals by the profile of the likelihood of a model with random effects: how far a parameter, a standard deviation or
a correlation can go, with all others refitted, until the likelihood is too low."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gradcli.models.fitting.effects.marginal_search import CONVERGED, Box, MarginalMinimum, MarginalObjective, minimised
from gradcli.models.fitting.effects.mixed_problems import MixedFit, PosedEffects, laplace_likelihood, posed_effects
from gradcli.named_tuples import NamedTuple

# Relative precision of an end, in the signed root of the likelihood ratio; the largest number of steps to it; and the
# multiple of the linear interval at which a profile that is still good has no end.
_END_TOLERANCE, _STEPS, _MAX_WIDTHS = 1e-8, 60, 1e4
# A likelihood ratio below this is that of a maximum higher than the one that the profile is of.
_LOWER = -1e-6

Interval = tuple[float, float]


class MixedProfiles(NamedTuple):
    """The intervals of the free parameters by name, of the standard deviations by term and effect, of the correlations
    by term and pair of effects, and of the residual standard deviation, None where there is none; nan for an end that
    was not found. `any_lower` says whether a higher maximum was met on the way."""

    parameters: Mapping[str, Interval]
    deviations: Mapping[tuple[int, int], Interval]
    correlations: Mapping[tuple[int, int, int], Interval]
    residual: Interval | None
    any_lower: bool


def profiled(
    job: MixedFit, posed: PosedEffects, point: Any, box: Box, singular: Collection[tuple[int, int]], quantile: float
) -> MixedProfiles:
    """The intervals around the maximum of the likelihood at a `point` in a `box`; the `singular` effects, by term and
    index, have no correlations.

    An end is where the root of twice the fall of the log-likelihood is the `quantile`.
    """
    p = posed.design.count
    every = []

    def of(term: int, front: Sequence[int]) -> _Profile:
        every.append(_Profile(*_ordered(job, posed, point, term, front), box, quantile))
        return every[-1]

    own = of(0, ())
    parameters = {name: own.interval(i) for i, name in enumerate(job.question.problem.parameters)}
    residual = None
    if posed.spread is not None:
        low, high = own.interval(p)
        residual = math.exp(low), math.exp(high)
    deviations: dict[tuple[int, int], Interval] = {}
    correlations: dict[tuple[int, int, int], Interval] = {}
    place = len(point) - len(posed.covariances.entries)
    for t, each in enumerate(job.levels):
        k = len(each.term.effects)
        for i in range(k):
            # The deviation of the first effect is a parameter of the covariances.
            deviations[t, i] = (of(t, (i,)) if i else own).interval(place, 0.0)
        for i, j in combinations(range(k), 2):
            if (t, i) in singular or (t, j) in singular:
                correlations[t, i, j] = math.nan, math.nan
            else:
                low, high = of(t, (i, j)).with_slope(place + 1).interval(place + 1)
                correlations[t, i, j] = _correlation(low), _correlation(high)
        place += k * (k + 1) // 2
    return MixedProfiles(parameters, deviations, correlations, residual, any(each.any_lower for each in every))


def _correlation(slope: float) -> float:
    """ρ for ρ/√(1 - ρ²)."""
    return math.copysign(1.0, slope) if math.isinf(slope) else slope / math.hypot(1.0, slope)


def _ordered(
    job: MixedFit, posed: PosedEffects, point: Any, term: int, front: Sequence[int]
) -> tuple[MixedFit, PosedEffects, Any]:
    """The same fit with some effects of a term in front of its others, and the same point there, whose Cholesky factors
    have positive diagonals."""
    counts = [len(each.term.effects) for each in job.levels]
    orders = [[*range(k)] for k in counts]
    orders[term] = [*front, *(i for i in orders[term] if i not in front)]
    begins = np.cumsum([0, *counts])
    levels = [
        each._replace(term=each.term._replace(effects=tuple(each.term.effects[i] for i in order)))
        for each, order in zip(job.levels, orders)
    ]
    factors = [job.factors[begin + i] for begin, order in zip(begins, orders) for i in order]
    moved = job._replace(levels=levels, factors=factors)
    covariances = posed.covariances
    count = len(point) - len(covariances.entries)
    found = []
    for t, order in enumerate(orders):
        triangle = np.linalg.qr(covariances.of_term(t, point[count:])[order].T)[1].T
        triangle = triangle * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
        found += [triangle[i, j] for own, i, j in covariances.entries if own == t]
    return moved, posed_effects(moved), np.append(point[:count], found)


class _Slope:
    """An objective in which the parameter at a place is a multiple of the next one, and the multiple is the parameter."""

    def __init__(self, objective: MarginalObjective, place: int) -> None:
        self._objective, self._place = objective, place

    def _inner(self, point: Any) -> Any:
        found = point.copy()
        found[self._place] *= point[self._place + 1]
        return found

    def value(self, point: Any) -> float:
        return self._objective.value(self._inner(point))

    def slopes(self, point: Any) -> tuple[Any, Any]:
        gradient, hessian = self._objective.slopes(self._inner(point))
        a, b = self._place, self._place + 1
        change = np.eye(len(point))
        change[a, a], change[a, b] = point[b], point[a]
        bent = change.T @ hessian @ change
        bent[a, b] += gradient[a]
        bent[b, a] += gradient[a]
        return change.T @ gradient, bent


class _Profile:
    """The profiles of the numbers of a point around the maximum that is there."""

    def __init__(self, job: MixedFit, posed: PosedEffects, point: Any, box: Box, quantile: float) -> None:
        p = posed.design.count
        spread = 0.0 if posed.spread is None else float(point[p])
        self._objective: MarginalObjective = laplace_likelihood(job, posed, point[:p], spread)
        self._box, self._quantile, self._watch = box, quantile, job.search.watch
        self._best = minimised(self._objective, point, box, self._watch)
        self.any_lower = False

    def with_slope(self, place: int) -> _Profile:
        """The same where the number at a place is given as a multiple of the next one."""
        point = self._best.point.copy()
        point[place] /= point[place + 1]
        self._objective = _Slope(self._objective, place)
        self._best = minimised(self._objective, point, self._box, self._watch)
        return self

    def interval(self, place: int, least: float = -math.inf) -> Interval:
        """The ends of the number at a place, which is at least `least`."""
        low = max(least, float(self._box.low[place]))
        return self._end(place, -1.0, low), self._end(place, 1.0, float(self._box.high[place]))

    def _end(self, place: int, sign: float, limit: float) -> float:
        best, quantile = self._best, self._quantile
        center = float(best.point[place])
        width = self._width(place)
        near, beyond, distance = 0.0, math.inf, quantile * width
        point = best.point
        for _ in range(_STEPS):
            at = center + sign * distance
            is_limit = sign * (at - limit) >= 0
            if is_limit:
                at, distance = limit, abs(limit - center)
            there = self._held(place, at, point)
            root, slope = math.inf, math.nan
            if there is not None:
                point = there.point
                ratio = 2 * (there.value - best.value)
                self.any_lower |= ratio < _LOWER
                root = math.sqrt(max(ratio, 0.0))
                slope = sign * float(there.gradient[place]) / root if root else math.nan
            if abs(root - quantile) <= _END_TOLERANCE * quantile or (is_limit and root < quantile):
                return at
            if root < quantile:
                near = distance
                if distance > _MAX_WIDTHS * quantile * width:
                    return sign * math.inf
            else:
                beyond = distance
            newton = distance + (quantile - root) / slope if slope > 0 else math.nan
            between = (near + beyond) / 2 if math.isfinite(beyond) else 4 * distance
            distance = newton if near < newton < min(beyond, 4 * distance) else between
        return math.nan

    def _held(self, place: int, at: float, near: Any) -> MarginalMinimum | None:
        """The minimum in which the number at a place is held; None where none is found."""
        point = near.copy()
        point[place] = at
        if not math.isfinite(self._objective.value(point)):
            return None
        low, high = self._box.low.copy(), self._box.high.copy()
        low[place] = high[place] = at
        found = minimised(self._objective, point, Box(low, high), self._watch)
        return found if found.left <= CONVERGED else None

    def _width(self, place: int) -> float:
        """The distance at which the profile is expected to reach a root of 1."""
        best = self._best
        free = best.free.copy()
        free[place] = True
        others = free.copy()
        others[place] = False
        hessian, slope = best.hessian, abs(float(best.gradient[place]))
        inner = hessian[np.ix_(others, others)]
        bend = float(hessian[place, place] - hessian[place, others] @ np.linalg.solve(inner, hessian[others, place]))
        root = math.sqrt(max(slope**2 + max(bend, 0.0), 1e-300))
        return 1.0 / (slope + root)
