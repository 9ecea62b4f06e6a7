"""Compares a fit with that of another model of the same rows: tests of nested models, and criteria."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.models.fitting.fit_requests import FitOutcome
from gradcli.models.fitting.problem.likelihoods import Assumptions
from gradcli.models.fitting.results.fit_records import ComparedModel, Comparison, ModelTest, VuongStatistic, VuongTest
from gradcli.models.fitting.results.fit_results import Fit

# Relative difference of log-likelihoods that is a rounding error.
_ROUNDING = 1e-9


def comparison_of(
    texts: tuple[str, str], outcomes: tuple[FitOutcome, FitOutcome], assumed: tuple[Assumptions, Assumptions]
) -> tuple[Comparison, list[str]]:
    """The comparison of two fits to the same rows, with warnings."""
    fits, known = (outcomes[0].fit, outcomes[1].fit), assumed[0]
    found, warnings = _comparison(texts, fits, known, known.family == assumed[1].family)
    own, other = (_row_likelihoods(*each) for each in zip(outcomes, assumed))
    if own is not None and other is not None:
        counts = found.model.parameters, found.against.parameters
        found = found._replace(vuong=vuong_test(own, other, counts[0] - counts[1]))
    return found, warnings


def _row_likelihoods(outcome: FitOutcome, known: Assumptions) -> Any:
    """The log-likelihoods `[n]` of the rows; None where the rows were not fitted."""
    solved = outcome.solved
    if solved is None:
        return None
    rows = solved.rows.chosen(solved.place)
    value, response, sigma = rows.value[0], rows.response[0], rows.sigma[0]
    with np.errstate(all="ignore"):
        if known.family != "gaussian":
            return -known.likelihood(value, response, sigma).value
        off = rows.off(slice(None))[0] / sigma
        s = np.sqrt(np.mean(off**2)) if known.is_scaled else 1.0
        return -0.5 * (off / s) ** 2 - np.log(s * sigma) - 0.5 * math.log(2 * math.pi)


def vuong_test(own: Any, other: Any, parameters: int) -> VuongTest | None:
    """Vuong's test by the log-likelihoods of rows, `[n]` each, of a model with so many more `parameters` and of the one that
    it is compared with; None where they are the same in all rows but for rounding.

    Source: Q. H. Vuong, Econometrica 57 (1989) 307, (5.6), with the variance and the corrections of R's pscl.
    """
    from scipy.special import ndtr

    n, difference = len(own), own - other
    spread = np.std(difference, ddof=1) if n > 1 else 0.0
    if not spread > _ROUNDING * np.abs(own).max(initial=1.0):
        return None

    def of(correction: float) -> VuongStatistic:
        z = float((difference.sum() - correction) / (np.sqrt(n) * spread))
        return VuongStatistic(z, float(ndtr(-z)), float(ndtr(z)))

    return VuongTest(of(0.0), of(parameters), of(parameters * math.log(n) / 2))


def _comparison(
    texts: tuple[str, str], fits: tuple[Fit, Fit], known: Assumptions, is_one_family: bool
) -> tuple[Comparison, list[str]]:
    """The comparison by the likelihoods of all rows together."""
    from scipy.special import chdtrc, fdtrc

    model, against = (_compared(text, fit) for text, fit in zip(texts, fits))
    warnings = [] if against.converged else [f"the model to compare with: {fits[1].message}"]
    small, large = sorted((model, against), key=lambda each: each.parameters)
    further = large.parameters - small.parameters
    if not is_one_family:
        return Comparison(model, against, None, None), warnings
    if not further:
        return Comparison(model, against, None, None), [
            *warnings,
            "the models have as many parameters, so that none is a special case of the other: the test is Vuong's",
        ]
    rise = 2 * (large.loglik - small.loglik)
    if rise < -_ROUNDING * abs(large.loglik):
        warnings.append("the larger model fits less well: the models are not nested, or a better minimum was not found")
    rise = max(rise, 0.0)
    ratio = ModelTest(rise, (further,), float(chdtrc(further, rise)))
    f = None
    if known.is_least_squares and known.is_scaled and large.dof > 0:
        with np.errstate(all="ignore"):
            value = max(float(np.float64(small.rss - large.rss) / further / (np.float64(large.rss) / large.dof)), 0.0)
        f = ModelTest(value, (further, large.dof), float(fdtrc(further, large.dof, value)))
    return Comparison(model, against, f, ratio), warnings


def _compared(text: str, fit: Fit) -> ComparedModel:
    parameters = sum(not estimate.fixed for estimate in fit.estimates.values())
    return ComparedModel(text, parameters, fit.dof, fit.rss, fit.loglik, fit.aic, fit.aicc, fit.bic, fit.converged)
