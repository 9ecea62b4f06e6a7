"""What a fit says beside its estimates: standard errors, intervals, goodness, and how far all that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradcli.models.fitting.curvatures import Curvatures, curvatures
from gradcli.models.fitting.information import Information, factor_of_matrix, factor_of_rows, information
from gradcli.models.fitting.likelihoods import Likelihood, likelihood, median_deviation
from gradcli.models.fitting.packed_hessians import unpacked

# The largest rounding error of a float, as a part of it.
_ROUNDING = 2.0**-53
# Rows of a block, which stays in the caches.
_BLOCK = 2**15


class Assumptions(NamedTuple):
    """What is known of the rows: how they are distributed, whether `sigma` is their standard deviation as it stands or
    up to a factor, which is estimated then, and how sure an interval is to be.

    `loss_scale` is the residual, over `sigma`, from which on a robust loss is no square any more; None where it follows
    from the median of the residuals.
    """

    family: str = "gaussian"
    loss: str = "linear"
    absolute: bool = False
    level: float = 0.95
    loss_scale: float | None = None

    @property
    def likelihood(self) -> Likelihood:
        return likelihood(self.family, self.loss)

    @property
    def is_scaled(self) -> bool:
        """Whether the standard deviation is estimated."""
        return self.family == "gaussian" and not self.absolute

    @property
    def is_least_squares(self) -> bool:
        return self.family == "gaussian" and self.loss == "linear"

    @property
    def is_robust(self) -> bool:
        return self.loss != "linear"

    def quantile(self, dof: Any) -> Any:
        """How many standard errors an interval goes to each side, with so many degrees of freedom."""
        from scipy.special import ndtri, stdtrit

        if not self.is_scaled:
            return np.broadcast_to(ndtri((1 + self.level) / 2), np.shape(dof))
        return _by_dof(lambda known: stdtrit(known, (1 + self.level) / 2), dof)


class Rows(NamedTuple):
    """The rows of g fits, up to n in each: arrays `[g, n]` of the model's values, of the responses and their standard
    deviations, and of which are there at all; the model's derivatives by the p parameters that were estimated,
    `[g, n, p]`, and those of order 2 by `pairs` of them, `[g, n, k]`, where they are known.

    `priors` are what was known of the parameters before, `[g, p]` for their means' distances and the standard deviations,
    which are infinite where nothing was. `residuals` `[g, n]` are responses less values where they are known better than
    these. `loss_scale` is the threshold of a robust loss, over the standard deviations.
    """

    value: Any
    response: Any
    sigma: Any
    real: Any
    first: Any
    second: Any = None
    priors: tuple[Any, Any] | None = None
    residuals: Any = None
    loss_scale: float = math.nan

    def off(self, place: slice) -> Any:
        """The responses less the model's values of a block of rows."""
        if self.residuals is not None:
            return self.residuals[:, place]
        return self.response[:, place] - self.value[:, place]

    def chosen(self, index: int) -> Rows:
        """Those of one fit alone that are there."""
        there = self.real[index]
        value, response, sigma, real, first = (part[index][there][None] for part in self[:5])
        second = None if self.second is None else self.second[index][there][None]
        priors = None if self.priors is None else (self.priors[0][index][None], self.priors[1][index][None])
        residuals = None if self.residuals is None else self.residuals[index][there][None]
        return Rows(value, response, sigma, real, first, second, priors, residuals, self.loss_scale)

    def parts(self) -> list[_Part]:
        """The rows, block by block."""
        return [_Part(self, slice(start, start + _BLOCK)) for start in range(0, self.real.shape[1], _BLOCK)]


class _Part:
    """A block of rows: which they are, one over their standard deviations, which is 0 for those that are not there, their
    residuals times that, and the model's derivatives."""

    def __init__(self, rows: Rows, place: slice) -> None:
        self.place = place
        self.weight = rows.real[:, place] / rows.sigma[:, place]
        self.residual = rows.off(place) * self.weight
        self.first = rows.first[:, place]
        self.second = None if rows.second is None else rows.second[:, place]

    @cached_property
    def weighted(self) -> Any:
        """The first derivatives times the weights, and behind them those of order 2 where these are known."""
        parts = [self.first] if self.second is None else [self.first, self.second]
        columns = [column for part in parts for column in part.transpose(2, 0, 1)]
        found = np.empty((len(columns), *self.weight.shape))
        for column, own in zip(columns, found):
            np.multiply(column, self.weight, out=own)
        return found.transpose(1, 2, 0)


class Statistics(NamedTuple):
    """Of g fits; arrays `[g]` where nothing else is said."""

    n: Any
    dof: Any
    information: Information
    covariance: Any
    """`[g, p, p]`, of the estimates."""
    quantile: Any
    """How many standard errors an interval has on each side."""
    rss: Any
    s: Any
    reduced_chi2: Any
    r2: Any
    loglik: Any
    aic: Any
    bic: Any
    deviance: Any
    """Twice what the logarithm of the likelihood is below that of a model which gives each response."""
    loss_scale: Any
    """The threshold of a robust loss, over the standard deviations of the rows."""
    rounding: Any
    """What part of `s`, of which the errors come, a rounding error of a response is; 0 where that is none in it."""
    curvature: Curvatures | None

    def chosen(self, index: int) -> Statistics:
        """Those of one fit alone."""
        one = slice(index, index + 1)
        curvature = None if self.curvature is None else Curvatures(*(part[one] for part in self.curvature))
        rest = {name: getattr(self, name)[one] for name in self._fields if name not in ("information", "curvature")}
        return Statistics(information=self.information.chosen(one), curvature=curvature, **rest)


def statistics(rows: Rows, known: Assumptions) -> Statistics:
    """Those of fits that are at their minima.

    Standard errors are from the Jacobian for least squares, from the observed information for other families, and for a
    robust loss from the Jacobian and the slopes of the loss (see `_robust_variance`).
    """
    n = rows.real.sum(axis=1)
    p = rows.first.shape[-1]
    parts = rows.parts()
    with np.errstate(all="ignore"):
        dof = n - p + (0 if rows.priors is None else np.isfinite(rows.priors[1]).sum(axis=1))
        rss = sum(np.vecdot(part.residual, part.residual) for part in parts)
        beyond = 0.0 if rows.priors is None else (np.square(rows.priors[0] / rows.priors[1])).sum(axis=1)
        variance = np.where(dof > 0, (rss + beyond) / dof, np.nan)
        deviation = _deviation(parts, rows.real) if known.is_robust else np.sqrt(variance)
        found, covariance = _covariances(rows, parts, known, variance, beyond, dof)
        loglik = _loglik(rows, known, rss, n)
        count = p + known.is_scaled
        share, deviance, size = _share(rows, known, rss)
        hidden = known.is_least_squares and known.is_scaled and rows.residuals is None
        curvature = None
        if known.is_least_squares and rows.second is not None and p:
            curvature = curvatures([part.weighted for part in parts], found.axes, _radius(known, p, dof, variance))
        return Statistics(
            n,
            dof,
            found,
            covariance,
            known.quantile(dof),
            rss,
            deviation,
            variance if known.family == "gaussian" else _dispersion(rows, known, dof),
            1 - share,
            loglik,
            2 * count - 2 * loglik,
            count * np.log(n) - 2 * loglik,
            deviance,
            np.full(len(n), rows.loss_scale),
            _ROUNDING * size / np.sqrt(variance) if hidden else np.zeros(len(n)),
            curvature,
        )


def _covariances(
    rows: Rows, parts: Sequence[_Part], known: Assumptions, variance: Any, beyond: Any, dof: Any
) -> tuple[Information, Any]:
    """What the rows say of the parameters, and the covariances of the estimates; `beyond` are the squares of what was known
    before."""
    g, n, p = rows.first.shape
    if known.family == "gaussian":
        # What was known before is as a row for each parameter.
        before = [] if rows.priors is None else [np.eye(p) / rows.priors[1][:, None, :]]
        found = information(_factor([*(factor_of_rows(part.weighted[..., :p]) for part in parts), *before]), n)
        if known.is_robust:
            variance = _robust_variance(rows, parts, known, beyond, dof)
        elif known.absolute:
            variance = np.ones(g)
        return found, found.covariance * variance[:, None, None]
    observed = np.zeros((g, p, p))
    for part in parts:
        own = part.place
        cost = known.likelihood(rows.value[:, own], rows.response[:, own], rows.sigma[:, own])
        first, second = cost.first * rows.real[:, own], cost.second * rows.real[:, own]
        observed += np.swapaxes(part.first, 1, 2) @ (second[:, :, None] * part.first)
        if part.second is not None:
            observed += unpacked((first[:, None, :] @ part.second)[:, 0], p)
    if rows.priors is not None:
        observed[:, range(p), range(p)] += rows.priors[1] ** -2.0
    found = information(factor_of_matrix(observed), n)
    return found, found.covariance


def _robust_variance(rows: Rows, parts: Sequence[_Part], known: Assumptions, beyond: Any, dof: Any) -> Any:
    """What the inverse of JᵀJ is to be multiplied by, `[g]`, for the covariances of a robust fit: K² Σ ψ(u)² / dof / mean(ψ'(u))²,
    where u are the residuals over their standard deviations, and K = 1 + p var(ψ') / (n mean(ψ')²).

    Source: P. J. Huber, Robust Statistics, 1981, (7.6.8), with n - 1 in the variance of ψ', as R's rlm has it.
    """
    g, _, p = rows.first.shape
    n = rows.real.sum(axis=1)
    squares, total, curved = np.zeros(g), np.zeros(g), []
    for part in parts:
        own = part.place
        scale = rows.sigma[:, own] * rows.loss_scale
        cost = known.likelihood(rows.value[:, own], rows.response[:, own], scale)
        real = rows.real[:, own]
        psi = np.where(real, cost.first * scale * rows.loss_scale, 0.0)
        curved.append(np.where(real, cost.second * scale**2, np.nan))
        squares += np.vecdot(psi, psi)
        total += np.nansum(curved[-1], axis=1)
    mean = total / n
    spread = sum(np.nansum((part - mean[:, None]) ** 2, axis=1) for part in curved) / np.maximum(n - 1, 1)
    correction = 1 + p * spread / (n * mean**2)
    return np.where((dof > 0) & (mean > 0), correction**2 * (squares + beyond) / np.maximum(dof, 1) / mean**2, np.nan)


def _deviation(parts: Sequence[_Part], real: Any) -> Any:
    """The standard deviations `[g]` of the residuals over `sigma`, by their median."""
    residuals = np.concatenate([part.residual for part in parts], axis=1)
    return median_deviation(np.where(real, residuals, np.nan))


def _factor(factors: Sequence[Any]) -> Any:
    """That of rows of which some have these."""
    return factors[0] if len(factors) == 1 else factor_of_rows(np.concatenate(factors, axis=1))


def _radius(known: Assumptions, p: int, dof: Any, variance: Any) -> Any:
    """That of the region in which the values of the model lie."""
    from scipy.special import chdtri, fdtri

    if known.absolute:
        return np.broadcast_to(np.sqrt(chdtri(p, 1 - known.level)), np.shape(dof))
    return np.sqrt(variance * p * _by_dof(lambda own: fdtri(p, own, known.level), dof))


def _by_dof(quantile: Callable[[Any], Any], dof: Any) -> Any:
    """A quantile, which takes long to compute, once for each number of degrees of freedom; nan where none is left."""
    numbers, places = np.unique(dof, return_inverse=True)
    return np.where(numbers > 0, quantile(np.maximum(numbers, 1)), np.nan)[places]


def _loglik(rows: Rows, known: Assumptions, rss: Any, n: Any) -> Any:
    """Minus infinity where a row cannot be, nan for a loss, which is no likelihood."""
    if known.loss != "linear":
        return np.full(len(n), np.nan)
    if known.family != "gaussian":
        cost = known.likelihood(rows.value, rows.response, rows.sigma).value
        return -(cost * rows.real).sum(axis=1)
    weights = (np.log(rows.sigma) * rows.real).sum(axis=1)
    if known.absolute:
        return -rss / 2 - n / 2 * math.log(2 * math.pi) - weights
    return -n / 2 * (np.log(2 * math.pi * rss / n) + 1) - weights


def _share(rows: Rows, known: Assumptions, rss: Any) -> tuple[Any, Any, Any]:
    """What the model leaves of what the mean response leaves: of squares, of deviances for other families; the deviance,
    nan for a robust loss; and the root mean square of the weighted responses."""
    weights = rows.real * np.square(1 / rows.sigma)
    total = weights.sum(axis=1, keepdims=True)
    mean = (weights * rows.response).sum(axis=1, keepdims=True) / total
    if known.family == "gaussian":
        about_mean = (weights * (rows.response - mean) ** 2).sum(axis=1)
        size = np.sqrt((about_mean + (total * mean**2)[:, 0]) / rows.real.sum(axis=1))
        return rss / about_mean, np.full(len(rss), np.nan) if known.is_robust else rss, size
    of_model, of_mean, least = (
        (rows.real * known.likelihood(value, rows.response, rows.sigma).value).sum(axis=1)
        for value in (rows.value, mean + 0 * rows.response, rows.response)
    )
    return (of_model - least) / (of_mean - least), 2 * (of_model - least), np.nan


def _dispersion(rows: Rows, known: Assumptions, dof: Any) -> Any:
    """Pearson's: squares of residuals over the variances that a family has, by degrees of freedom."""
    variances = rows.value if known.family == "poisson" else rows.value * (1 - rows.value)
    squared = ((rows.response - rows.value) / rows.sigma) ** 2
    # A count of 0 where the mean is 0 is as it is expected.
    off = rows.real & (squared > 0)
    return np.where(off, squared / np.where(off, variances, 1.0), 0.0).sum(axis=1) / dof
