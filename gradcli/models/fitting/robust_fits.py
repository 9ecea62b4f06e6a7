"""Fits with a robust loss, whose threshold follows from the residuals that it leaves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.convergence import message_of
from gradcli.models.fitting.estimation import SearchOptions, estimated, local
from gradcli.models.fitting.fitted import Ending
from gradcli.models.fitting.likelihoods import TUNING, median_deviation
from gradcli.models.fitting.problems import Problem

# How often a fit is repeated with the scale of its residuals, the relative change at which that is settled, and the one
# at which a search that goes on after so many rounds is no fit.
_ROUNDS, _SETTLED, _UNSETTLED = 200, 1e-12, 1e-6
# From a slope of the scale of the residuals by that of the loss on, it is not extrapolated.
_STEEP = 0.9
# Residuals below this part of the responses are rounding errors.
_ROUNDING = 64 * 2.0**-52


class RobustFit(NamedTuple):
    """The problem with the threshold of its loss, and where the search in it ended."""

    problem: Problem
    ending: Ending


def robust_fit(problem: Problem, start: Any, search: SearchOptions) -> RobustFit:
    """Fit with the loss, from a start `[p]`, in turn with its threshold, from the residuals of least squares on, until both
    stay (P. J. Huber, Robust Statistics, 1981, 7.8). The threshold is `TUNING` standard deviations of the residuals by
    the median of their absolute values, or the one that is known.

    Raises EvaluationError where the model has no finite value at the start.
    """
    known = problem.known
    if known.loss_scale is not None and (known.absolute or not _has_priors(problem)):
        scaled = problem.with_loss_scale(known.loss_scale, 1.0)
        return RobustFit(scaled, estimated(scaled, start, search))
    first = estimated(problem.of_least_squares(), start, search)
    deviation = _deviation(problem, first.point)
    scaled = _scaled(problem, deviation)
    # Parameters that all enter linearly are found from anywhere.
    is_found = first.starts.tried == 1 and np.isnan(start).any()
    ending = estimated(scaled, first.point if is_found else start, search)
    change, slope, before = math.inf, math.nan, (math.nan, math.nan)
    for _ in range(_ROUNDS):
        own = _deviation(problem, ending.point)
        change = abs(own / deviation - 1)
        if change <= _SETTLED:
            break
        if deviation != before[0]:
            slope = (own - before[1]) / (deviation - before[0])
        before = deviation, own
        # To where the differences lead, as they become less by the same part each time (A. C. Aitken, 1926).
        further = deviation + (own - deviation) / (1 - slope) if abs(slope) < _STEEP else own
        deviation = max(further, _least(problem))
        scaled = _scaled(problem, deviation)
        again = local(scaled, ending.point)
        ending = again._replace(
            iterations=ending.iterations + again.iterations,
            evaluations=ending.evaluations + again.evaluations,
            starts=ending.starts,
            warnings=ending.warnings,
        )
    if not change <= _UNSETTLED:
        message = message_of("the scale of the residuals does not settle")
        ending = ending._replace(converged=False, message=message)
    elif deviation <= _least(problem):
        ending = ending._replace(warnings=[*ending.warnings, "half of the rows and more are fitted without a residual"])
    return RobustFit(scaled, ending)


def _has_priors(problem: Problem) -> bool:
    return bool(np.isfinite(problem.priors[1]).any())


def _scaled(problem: Problem, deviation: float) -> Problem:
    """The problem with the threshold for residuals whose standard deviations are `deviation` times `sigma`."""
    known = problem.known
    threshold = TUNING[known.loss] * deviation if known.loss_scale is None else known.loss_scale
    return problem.with_loss_scale(threshold, 1.0 if known.absolute else deviation)


def _deviation(problem: Problem, point: Any) -> float:
    """The factor of `sigma` by the residuals at a point."""
    value, _ = problem.rows(point)
    with np.errstate(all="ignore"):
        found = float(median_deviation((value - problem.response) / problem.sigma))
    # Where a search ended nowhere, residuals are as large as the responses.
    return max(found, _least(problem)) if math.isfinite(found) else _least(problem) / _ROUNDING


def _least(problem: Problem) -> float:
    """What the deviation is of residuals that are rounding errors."""
    size = float(np.sqrt(np.mean(np.square(problem.response / problem.sigma))))
    return _ROUNDING * size or 1.0
