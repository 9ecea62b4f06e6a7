"""What a fit says of rows: residuals of those that it was found from, and predictions with bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.models.fitting.inference import Assumptions, Rows, Statistics

# Leverages that are nearer to 1 are 1: nothing but rounding is left of the residual.
_ALL = 1e-12


def residuals(rows: Rows, found: Statistics, index: int, known: Assumptions) -> dict[str, Any]:
    """Of n rows of one fit the model's `value`, the `residual`, that over its standard error, nan where that is 0, and the
    leverage: how much of a change of the response its fitted value follows.

    The statistics are those of the fit at `index`. Source: R. D. Cook and S. Weisberg, Residuals and Influence in
    Regression, 1982, 2.2 and 4.
    """
    value, sigma, first = rows.value[0], rows.sigma[0], rows.first[0]
    residual = rows.off(slice(None))[0]
    with np.errstate(all="ignore"):
        deviation = sigma * (found.s[index] if known.is_scaled else 1.0)
        if known.family != "gaussian":
            deviation = sigma * np.sqrt(value if known.family == "poisson" else value * (1 - value))
        spread = found.information.covariance[index]
        scaled = first / (sigma if known.family == "gaussian" else deviation)[:, None]
        leverage = ((scaled @ spread) * scaled).sum(axis=1)
        left = 1 - leverage
        standardized = residual / deviation / np.sqrt(np.where(left > _ALL, left, np.nan))
    return {"value": value, "residual": residual, "standardized": standardized, "leverage": leverage}


def prediction(value: Any, first: Any, sigma: Any, found: Statistics, index: int, known: Assumptions) -> dict[str, Any]:
    """Of n rows the model's `value`, its standard `error` by the covariances of the estimates and the exact derivatives
    `[n, p]`, and its confidence band; for a gaussian family with a known or estimated standard deviation also the band in
    which a further response lies."""
    spread = found.covariance[index]
    with np.errstate(all="ignore"):
        variance = np.maximum(((first @ spread) * first).sum(axis=1), 0.0)
        error = np.sqrt(variance)
        width = found.quantile[index] * error
        table = {"value": value, "error": error, "low": value - width, "high": value + width}
        if known.family == "gaussian":
            noise = np.asarray(sigma) * (found.s[index] if known.is_scaled else 1.0)
            width = found.quantile[index] * np.sqrt(variance + noise**2)
            table |= {"low_response": value - width, "high_response": value + width}
    return table
