"""Confidence intervals by the profile likelihood: how far a parameter can go, with the others refitted, until the fit
is too bad."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.levenberg_marquardt import descend
from gradcli.models.fitting.linearisations import Linearised, linearised
from gradcli.models.fitting.problems import Problem
from gradcli.models.results import Watcher

# Relative precision of an end, in the signed root of the likelihood ratio.
_NEAR = 1e-9
# Largest number of steps to find the ends.
_STEPS = 60
# A parameter has no end where the fit is still good at so many times its linear interval.
_FAR = 1e4


class Profile(NamedTuple):
    """The ends of the intervals of p parameters, `[p]` each, infinite where there is none, and whether a lower minimum
    was met on the way."""

    low: Any
    high: Any
    lower_found: bool


def profile(
    problem: Problem, point: Any, errors: Any, scale: float, quantile: float, watch: Watcher | None = None
) -> Profile:
    """The profile likelihood intervals around the minimum `point` `[p]`.

    `errors` `[p]` are the standard errors of the parameters, nan for one at a bound, whose interval is one-sided.
    `watch` is called with each iteration. An end is where the square root of twice the rise of the cost, divided by
    `scale`, is the `quantile`. Source: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, 6.1.2. It is
    found by Newton's method, as the derivative of the least cost by the parameter is the derivative of the cost there.
    """
    p = len(point)
    ends = _Ends(problem, point, errors, scale, quantile, watch)
    # The scale is 0 for exact data.
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            if not ends.step():
                break
    return Profile(ends.found[:p], ends.found[p:], ends.lower_found)


class _Ends:
    """The state of 2p simultaneous searches for ends: first the p lower ones, then the upper ones."""

    def __init__(
        self, problem: Problem, point: Any, errors: Any, scale: float, quantile: float, watch: Watcher | None
    ) -> None:
        p = len(point)
        self._watch = watch
        self._problem, self._scale, self._quantile = problem, scale, quantile
        self._which = np.tile(np.arange(p), 2)
        self._sign = np.repeat([-1.0, 1.0], p)
        self._limit = np.concatenate([problem.low, problem.high])
        self._center = np.tile(point, 2)
        here = linearised(problem, point[None])
        self._least = here.cost[0]
        self._width = np.tile(np.where(np.isnan(errors), self._beside(here.factor[0]), errors), 2)
        self._points = np.tile(point, (2 * p, 1))
        # Distances that bracket each end: the fit is good at the first and too bad at the second.
        self._near, self._beyond = np.zeros(2 * p), np.full(2 * p, np.inf)
        self._next = np.where(np.isfinite(self._width), quantile * self._width, np.nan)
        self.found = np.full(2 * p, np.nan)
        endless = ~np.isfinite(self._width)
        self.found[endless] = self._sign[endless] * np.inf
        self.lower_found = False

    def _beside(self, factor: Any) -> Any:
        """The approximate distance that each parameter alone can go from a bound, where the cost has a slope, divided
        by the quantile."""
        columns, residuals = factor[:, :-1], factor[:, -1]
        slope, rise = np.abs(columns.T @ residuals), self._quantile * self._scale
        with np.errstate(all="ignore"):
            return self._quantile * self._scale**2 / (slope + np.sqrt(slope**2 + (columns**2).sum(axis=0) * rise**2))

    def step(self) -> bool:
        """Move each search that has not ended to its next parameter value; False where all have ended."""
        k = np.flatnonzero(np.isnan(self.found))
        if not len(k):
            return False
        at = self._center[k] + self._sign[k] * self._next[k]
        beyond = self._sign[k] * (at - self._limit[k]) >= 0
        at = np.where(beyond, self._limit[k], at)
        distance = np.abs(at - self._center[k])
        points, root, slope = self._profiled(k, at)
        good = root < self._quantile
        self._points[k[good]] = points[good]
        self._near[k] = np.where(good, distance, self._near[k])
        self._beyond[k] = np.where(good, self._beyond[k], distance)
        with np.errstate(all="ignore"):
            newton = distance + (self._quantile - root) / slope
        done = np.abs(root - self._quantile) <= _NEAR * self._quantile
        done |= np.isfinite(self._beyond[k]) & (self._beyond[k] - self._near[k] <= 1e-12 * self._beyond[k])
        done |= beyond & good
        # Where the model fails further out, the end is the last value at which it does not.
        last = np.where(np.isfinite(newton), at, self._center[k] + self._sign[k] * self._near[k])
        self.found[k[done]] = np.where(beyond & good, self._limit[k], last)[done]
        endless = ~done & (distance > _FAR * self._quantile * self._width[k]) & good
        self.found[k[endless]] = self._sign[k[endless]] * np.inf
        between = np.where(
            np.isfinite(self._beyond[k]), (self._near[k] + self._beyond[k]) / 2, 4 * np.maximum(distance, 1e-300)
        )
        fits = (newton > self._near[k]) & (newton < np.minimum(self._beyond[k], 4 * distance))
        self._next[k] = np.where(fits, newton, between)
        return True

    def _profiled(self, k: Any, at: Any) -> tuple[Any, Any, Any]:
        """The points of least cost of the searches `k` with their parameters held at `at`; and the root of the
        likelihood ratio there, with its derivative by the distance."""
        held = self._which[k]
        start = self._points[k].copy()
        start[np.arange(len(k)), held] = at

        def linearise(points: Any, which: Any) -> Linearised:
            found = linearised(self._problem, points)
            found.factor[np.arange(len(which)), :, held[which]] = 0.0
            return found

        ended = descend(
            linearise,
            start,
            self._problem.dof,
            low=self._problem.low,
            high=self._problem.high,
            reach=1.0,
            watch=self._watch,
        )
        found = linearised(self._problem, ended.points)
        gradient = (found.factor[:, :, :-1].mT @ found.factor[:, :, -1:])[:, :, 0]
        rise = 2 * (ended.costs - self._least) / self._scale**2
        self.lower_found |= bool((rise < -1e-6).any())
        with np.errstate(all="ignore"):
            root = np.where(np.isfinite(rise), np.copysign(np.sqrt(np.abs(rise)), rise), np.inf)
            slope = self._sign[k] * gradient[np.arange(len(k)), held] / (root * self._scale**2)
        return ended.points, root, slope
