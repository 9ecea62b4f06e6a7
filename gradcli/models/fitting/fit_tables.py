"""Computes the tables of a fit by row: residuals of the fitted rows, and predictions with bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.models.fitting.inference import Assumptions, Rows, Statistics

# A leverage that is nearer to 1 than this counts as 1: its residual is a rounding error.
_ALL = 1e-12


def residuals(rows: Rows, found: Statistics, index: int, known: Assumptions) -> dict[str, Any]:
    """Residual statistics of the n rows of one fit, which is at `index` in the statistics.

    They are the model's `value`, the `residual`, the `standardized` residual, that is divided by its standard error and
    nan where that is 0, and the `leverage`, the derivative of the fitted value by the response of its row. Source: R.
    D. Cook and S. Weisberg, Residuals and Influence in Regression, 1982, 2.2 and 4.
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
    """Predictions for n rows: the model's `value`, its standard `error` from the covariances of the estimates and the
    derivatives `first` `[n, p]`, and its confidence band `low` to `high`.

    A gaussian family also has the band `low_response` to `high_response`, in which a further response lies.
    """
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
