"""What a fit says of rows: residuals of those that it was found from, and predictions with bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.models.fitting.inference import Assumptions, Statistics


def residuals(
    value: Any, first: Any, response: Any, sigma: Any, found: Statistics, index: int, known: Assumptions
) -> dict[str, Any]:
    """Of n rows the model's `value`, the `residual`, that over its standard error, and the leverage: how much of a change
    of the response its fitted value follows.

    `first` are the model's derivatives `[n, p]`, and the statistics those of the fit at `index`. Source: R. D. Cook and
    S. Weisberg, Residuals and Influence in Regression, 1982, 2.2 and 4.
    """
    residual = response - value
    with np.errstate(all="ignore"):
        deviation = sigma * (found.s[index] if known.is_scaled else 1.0) + 0 * value
        if known.family != "gaussian":
            deviation = np.sqrt(value if known.family == "poisson" else value * (1 - value))
        spread = found.information.covariance[index]
        weights = 1 / np.broadcast_to(sigma, value.shape) if known.family == "gaussian" else 1 / deviation
        scaled = first * weights[:, None]
        leverage = np.clip(((scaled @ spread) * scaled).sum(axis=1), 0.0, 1.0)
        standardized = residual / deviation / np.sqrt(1 - leverage)
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
