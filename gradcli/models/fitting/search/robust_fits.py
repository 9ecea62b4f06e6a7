"""Fits with a robust loss, whose threshold follows from the scale of the residuals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.models.fitting.problem.likelihoods import TUNING, median_deviation
from gradcli.models.fitting.problem.problems import Problem
from gradcli.models.fitting.search.convergence import message_of
from gradcli.models.fitting.search.estimation import SearchEnd, SearchOptions, estimate, local_minimum
from gradcli.named_tuples import NamedTuple

# Largest number of refits with the scale of the residuals, the relative change of that scale at which they stop, and
# the one above which the fit has not converged after all of them.
_MAX_REFITS, _SCALE_TOLERANCE, _MAX_SCALE_CHANGE = 200, 1e-12, 1e-6
# Slope, of the scale of the residuals by that of the loss, from which on the iteration is not extrapolated.
_MAX_EXTRAPOLATED_SLOPE = 0.9
# Residuals smaller than this, relative to the responses, are rounding errors.
_ROUNDING = 64 * 2.0**-52


class RobustFit(NamedTuple):
    """The problem with the threshold of its loss, and where the search in it ended."""

    problem: Problem
    ending: SearchEnd


def robust_fit(problem: Problem, start: Any, search: SearchOptions) -> RobustFit:
    """Fit with the robust loss from a start `[p]`.

    Starting from the residuals of least squares, threshold and estimates are computed in turn until both are constant
    (P. J. Huber, Robust Statistics, 1981, 7.8). The threshold is `TUNING` times the standard deviation of the
    residuals, estimated from the median of their absolute values, or the one that is given.

    Raises EvaluationError where the model has no finite value at the start.
    """
    known = problem.known
    if known.loss_scale is not None and (known.absolute or not problem.has_priors):
        scaled = problem.with_loss_scale(known.loss_scale, 1.0)
        return RobustFit(scaled, estimate(scaled, start, search))
    first = estimate(problem.of_least_squares(), start, search)
    deviation = _deviation(problem, first.point)
    scaled = _scaled(problem, deviation)
    # The estimates of least squares serve as the start where a single search, of linear parameters, found them.
    is_found = first.starts.tried == 1 and np.isnan(start).any()
    ending = estimate(scaled, first.point if is_found else start, search)
    change, slope, before = math.inf, math.nan, (math.nan, math.nan)
    for _ in range(_MAX_REFITS):
        own = _deviation(problem, ending.point)
        change = abs(own / deviation - 1)
        if change <= _SCALE_TOLERANCE:
            break
        if deviation != before[0]:
            slope = (own - before[1]) / (deviation - before[0])
        before = deviation, own
        # Extrapolated to the limit of a sequence whose differences decrease by a constant factor (A. C. Aitken, 1926).
        further = deviation + (own - deviation) / (1 - slope) if abs(slope) < _MAX_EXTRAPOLATED_SLOPE else own
        deviation = max(further, _rounding_deviation(problem))
        scaled = _scaled(problem, deviation)
        again = local_minimum(scaled, ending.point)
        ending = again._replace(
            iterations=ending.iterations + again.iterations,
            evaluations=ending.evaluations + again.evaluations,
            starts=ending.starts,
            warnings=ending.warnings,
        )
    if not change <= _MAX_SCALE_CHANGE:
        message = message_of("the scale of the residuals does not settle")
        ending = ending._replace(converged=False, message=message)
    elif deviation <= _rounding_deviation(problem):
        ending = ending._replace(warnings=[*ending.warnings, "half of the rows and more are fitted without a residual"])
    return RobustFit(scaled, ending)


def _scaled(problem: Problem, deviation: float) -> Problem:
    """The problem with the threshold of the loss for residuals whose standard deviations are `deviation` times
    `sigma`."""
    known = problem.known
    threshold = TUNING[known.loss] * deviation if known.loss_scale is None else known.loss_scale
    return problem.with_loss_scale(threshold, 1.0 if known.absolute else deviation)


def _deviation(problem: Problem, point: Any) -> float:
    """The standard deviation of the residuals at a point, in units of `sigma`."""
    value, _ = problem.rows(point)
    with np.errstate(all="ignore"):
        found = float(median_deviation((value - problem.response) / problem.sigma))
    # Where the residuals are not finite, the size of the responses is used.
    return (
        max(found, _rounding_deviation(problem)) if math.isfinite(found) else _rounding_deviation(problem) / _ROUNDING
    )


def _rounding_deviation(problem: Problem) -> float:
    """The standard deviation of residuals that are rounding errors, in units of `sigma`."""
    size = float(np.sqrt(np.mean(np.square(problem.response / problem.sigma))))
    return _ROUNDING * size or 1.0
