"""Compares a fit with that of another model of the same rows: tests of nested models, and criteria."""

from __future__ import annotations

import numpy as np

from gradcli.models.fitting.fit_records import ComparedModel, Comparison, ModelTest
from gradcli.models.fitting.fit_results import Fit
from gradcli.models.fitting.inference import Assumptions

# Relative difference of log-likelihoods that is a rounding error.
_ROUNDING = 1e-9


def comparison_of(texts: tuple[str, str], fits: tuple[Fit, Fit], known: Assumptions) -> tuple[Comparison, list[str]]:
    """The comparison of two fits to the same rows, with warnings."""
    from scipy.special import chdtrc, fdtrc

    model, against = (_compared(text, fit) for text, fit in zip(texts, fits))
    warnings = [] if against.converged else [f"the model to compare with: {fits[1].message}"]
    small, large = sorted((model, against), key=lambda each: each.parameters)
    further = large.parameters - small.parameters
    if not further:
        return Comparison(model, against, None, None), [
            *warnings,
            "the models have as many parameters, so that none is a special case of the other: there is no test",
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
