"""Statistics of a fit at its minimum: standard errors, goodness of fit, and how far linear intervals can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gradcli.errors import EvaluationError
from gradcli.models.fitting.problem.batched_matrices import pairs, unpacked
from gradcli.models.fitting.problem.likelihoods import Assumptions, by_dof, median_deviation
from gradcli.models.fitting.statistics.information import Information, factor_of_matrix, factor_of_rows, information
from gradcli.named_tuples import NamedTuple

# Unit roundoff of a float: the largest relative rounding error.
_ROUNDING = 2.0**-53
# Rows of a block, few enough for the caches.
_BLOCK = 2**15


class FitRows(NamedTuple):
    """The rows of g fits, up to n in each.

    `value`, `response`, `sigma` and `real` are arrays `[g, n]`: the model's values, the responses, their standard
    deviations, and whether the row exists or is padding. `first` `[g, n, p]` are the derivatives by the p parameters
    that were estimated, and `second` `[g, n, k]` those of order 2 in the order of `pairs`, None where they are not
    known.

    `priors` are the distances of the parameters from the means of their priors and the standard deviations of these,
    `[g, p]` each; the latter are infinite for parameters without a prior. `residuals` `[g, n]` are responses less
    values where they are known more accurately than by subtraction. `loss_scale` is the threshold of a robust loss,
    divided by the standard deviations. `bent` `[g, p, p]` are the sums of the second derivatives times those of the costs
    by the values, where `second` is None for a family that needs them.
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
    bent: Any = None

    def off(self, place: slice) -> Any:
        """The responses less the model's values in a block of rows."""
        if self.residuals is not None:
            return self.residuals[:, place]
        return self.response[:, place] - self.value[:, place]

    def chosen(self, index: int) -> FitRows:
        """The rows of one fit, without padding."""
        there = self.real[index]
        value, response, sigma, real, first = (part[index][there][None] for part in self[:5])
        second = None if self.second is None else self.second[index][there][None]
        priors = None if self.priors is None else (self.priors[0][index][None], self.priors[1][index][None])
        residuals = None if self.residuals is None else self.residuals[index][there][None]
        return FitRows(value, response, sigma, real, first, second, priors, residuals, self.loss_scale)

    def parts(self) -> list[_Part]:
        """The rows in blocks."""
        return [_Part(self, slice(start, start + _BLOCK)) for start in range(0, self.real.shape[1], _BLOCK)]


class _Part:
    """A block of rows: its slice; the weights, which are 1 over the standard deviations and 0 for padding; the weighted
    residuals; and the derivatives of the model."""

    def __init__(self, rows: FitRows, place: slice) -> None:
        self.place = place
        self.weight = rows.real[:, place] / rows.sigma[:, place]
        self.residual = rows.off(place) * self.weight
        self.first = rows.first[:, place]
        self.second = None if rows.second is None else rows.second[:, place]

    @cached_property
    def weighted(self) -> Any:
        """The weighted first derivatives, followed by the weighted second ones where these are known: `[g, n, p]` or
        `[g, n, p + k]`."""
        parts = [self.first] if self.second is None else [self.first, self.second]
        columns = [column for part in parts for column in part.transpose(2, 0, 1)]
        found = np.empty((len(columns), *self.weight.shape))
        for column, own in zip(columns, found):
            np.multiply(column, self.weight, out=own)
        return found.transpose(1, 2, 0)


class Statistics(NamedTuple):
    """Statistics of g fits: arrays `[g]` where nothing else is said."""

    n: Any
    dof: Any
    information: Information
    covariance: Any
    """The covariances of the estimates, `[g, p, p]`."""
    quantile: Any
    """The half-width of confidence intervals, in standard errors."""
    tail: Any
    """The degrees of freedom of the Student's t distribution of an estimate over its error, infinite for the normal
    one."""
    rss: Any
    s: Any
    reduced_chi2: Any
    r2: Any
    loglik: Any
    aic: Any
    aicc: Any
    """The criterion of Akaike with the correction for few rows (C. M. Hurvich and C.-L. Tsai, Biometrika 76 (1989)
    297); nan where the rows are too few."""
    bic: Any
    deviance: Any
    """Twice the difference of the log-likelihoods of a model that gives each response exactly and of this model."""
    loss_scale: Any
    """The threshold of a robust loss, divided by the standard deviations of the rows."""
    rounding: Any
    """The rounding error of a response relative to `s`, on which the standard errors depend; 0 where it does not enter
    `s`."""
    curvature: Curvatures | None

    def chosen(self, index: int) -> Statistics:
        """The statistics of one fit."""
        one = slice(index, index + 1)
        curvature = None if self.curvature is None else Curvatures(*(part[one] for part in self.curvature))
        rest = {name: getattr(self, name)[one] for name in self._fields if name not in ("information", "curvature")}
        return Statistics(information=self.information.chosen(one), curvature=curvature, **rest)


def statistics(rows: FitRows, known: Assumptions) -> Statistics:
    """The statistics of fits at their minima.

    Standard errors are from the Jacobian for least squares, from the observed information for other families, and for a
    robust loss from the Jacobian and the derivatives of the loss (see `_robust_variance`).
    """
    n = rows.real.sum(axis=1)
    p = rows.first.shape[-1]
    parts = rows.parts()
    with np.errstate(all="ignore"):
        found = _information(rows, parts, known)
        rank = p - np.array([len(across) for across in found.null])
        dof = n - rank + _dof_of_priors(rows, known, found)
        rss = sum(np.vecdot(part.residual, part.residual) for part in parts)
        if known.is_density:
            # There are no residuals.
            rss = np.full(len(n), np.nan)
        variance = np.where(dof > 0, (rss + _squares_of_priors(rows, known)) / dof, np.nan)
        deviation = _deviation(parts, rows.real) if known.is_robust else np.sqrt(variance)
        factor = _robust_variance(rows, parts, known, dof) if known.is_robust else variance
        covariance = found.covariance * factor[:, None, None] if known.is_scaled else found.covariance
        loglik = _loglik(rows, known, rss, n)
        count = rank + known.is_scaled
        share, deviance, size = _goodness(rows, known, rss)
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
            np.where(known.is_scaled, dof, np.inf),
            rss,
            deviation,
            variance if known.family == "gaussian" else _dispersion(rows, known, dof),
            1 - share,
            loglik,
            2 * count - 2 * loglik,
            2 * count - 2 * loglik + np.where(n > count + 1, 2 * count * (count + 1) / (n - count - 1), np.nan),
            count * np.log(n) - 2 * loglik,
            deviance,
            np.full(len(n), rows.loss_scale),
            _ROUNDING * size / np.sqrt(variance) if hidden else np.zeros(len(n)),
            curvature,
        )


def _information(rows: FitRows, parts: Sequence[_Part], known: Assumptions) -> Information:
    """The information on the parameters; of a gaussian family for rows whose standard deviations are `sigma`."""
    g, n, p = rows.first.shape
    if known.family == "gaussian":
        # A prior counts as a further row for its parameter.
        before = [] if rows.priors is None else [np.eye(p) / rows.priors[1][:, None, :]]
        return information(_factor([*(factor_of_rows(part.weighted[..., :p]) for part in parts), *before]), n)
    observed = np.zeros((g, p, p))
    for part in parts:
        own = part.place
        cost = known.likelihood(rows.value[:, own], rows.response[:, own], rows.sigma[:, own])
        first, second = cost.first * rows.real[:, own], cost.second * rows.real[:, own]
        observed += np.swapaxes(part.first, 1, 2) @ (second[:, :, None] * part.first)
        if part.second is not None:
            observed += unpacked((first[:, None, :] @ part.second)[:, 0], p)
    if rows.bent is not None:
        observed += rows.bent
    if rows.priors is not None:
        observed[:, range(p), range(p)] += rows.priors[1] ** -2.0
    return information(factor_of_matrix(observed), n)


def _dof_of_priors(rows: FitRows, known: Assumptions, found: Information) -> Any:
    """The number of parameters `[g]` that the priors determine.

    Each prior determines one, unless the standard deviation of the rows is estimated. Its most probable value, whatever
    the parameters are, has the degrees of freedom n - γ, where γ is the trace of the part of the information that is
    from the rows times the inverse of the whole: a prior determines the share of its parameter that the rows do not.

    Source: D. J. C. MacKay, Bayesian interpolation, Neural Computation 4 (1992) 415.
    """
    if rows.priors is None:
        return 0
    deviations = rows.priors[1]
    if not known.is_scaled:
        return np.isfinite(deviations).sum(axis=1)
    variances = np.einsum("gii->gi", found.covariance)
    return np.where(np.isfinite(deviations), variances / deviations**2, 0.0).sum(axis=1)


def _squares_of_priors(rows: FitRows, known: Assumptions) -> Any:
    """The sums `[g]` of the squared residuals of the priors, where these are as known as the rows."""
    if rows.priors is None or known.is_scaled:
        return 0.0
    return np.square(rows.priors[0] / rows.priors[1]).sum(axis=1)


def _robust_variance(rows: FitRows, parts: Sequence[_Part], known: Assumptions, dof: Any) -> Any:
    """The factors `[g]` of the inverse of JᵀJ in the covariances of a robust fit: K² Σ ψ(u)² / dof / mean(ψ'(u))²,
    where u are the residuals divided by their standard deviations, and K = 1 + p var(ψ') / (n mean(ψ')²).

    Source: P. J. Huber, Robust Statistics, 1981, (7.6.8), with n - 1 in the variance of ψ', as in R's rlm.
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
    return np.where((dof > 0) & (mean > 0), correction**2 * squares / dof / mean**2, np.nan)


def _deviation(parts: Sequence[_Part], real: Any) -> Any:
    """The standard deviations `[g]` of the residuals divided by `sigma`, estimated from the median of their absolute
    values."""
    residuals = np.concatenate([part.residual for part in parts], axis=1)
    return median_deviation(np.where(real, residuals, np.nan))


def _factor(factors: Sequence[Any]) -> Any:
    """The triangular factor of rows whose blocks have these factors."""
    return factors[0] if len(factors) == 1 else factor_of_rows(np.concatenate(factors, axis=1))


def _radius(known: Assumptions, p: int, dof: Any, variance: Any) -> Any:
    """The radius `[g]` of the confidence region in the space of the model's values."""
    from scipy.special import chdtri, fdtri

    if known.absolute:
        return np.broadcast_to(np.sqrt(chdtri(p, 1 - known.level)), np.shape(dof))
    return np.sqrt(variance * p * by_dof(lambda own: fdtri(p, own, known.level), dof))


def _loglik(rows: FitRows, known: Assumptions, rss: Any, n: Any) -> Any:
    """The log-likelihoods `[g]`: minus infinity where a response is impossible, nan for a robust loss, which is no
    likelihood."""
    if known.loss != "linear":
        return np.full(len(n), np.nan)
    if known.family != "gaussian":
        cost = known.likelihood(rows.value, rows.response, rows.sigma).value
        return -(cost * rows.real).sum(axis=1)
    weights = (np.log(rows.sigma) * rows.real).sum(axis=1)
    if known.absolute:
        return -rss / 2 - n / 2 * math.log(2 * math.pi) - weights
    return -n / 2 * (np.log(2 * math.pi * rss / n) + 1) - weights


def _goodness(rows: FitRows, known: Assumptions, rss: Any) -> tuple[Any, Any, Any]:
    """Three goodness measures, `[g]` each: the ratio of squares (of deviances for other families than gaussian) that
    the model and the mean response leave; the deviance, nan for a robust loss; and the root mean square of the weighted
    responses."""
    nothing = np.full(len(rss), np.nan)
    weights = rows.real * np.square(1 / rows.sigma)
    total = weights.sum(axis=1, keepdims=True)
    mean = (weights * rows.response).sum(axis=1, keepdims=True) / total
    if known.is_density:
        return nothing, nothing, np.nan
    if known.family == "gaussian":
        about_mean = (weights * (rows.response - mean) ** 2).sum(axis=1)
        size = np.sqrt((about_mean + (total * mean**2)[:, 0]) / rows.real.sum(axis=1))
        return rss / about_mean, nothing if known.is_robust else rss, size
    of_model, of_mean, least = (
        (rows.real * known.likelihood(value, rows.response, rows.sigma).value).sum(axis=1)
        for value in (rows.value, mean + 0 * rows.response, rows.response)
    )
    return (of_model - least) / (of_mean - least), 2 * (of_model - least), np.nan


def _dispersion(rows: FitRows, known: Assumptions, dof: Any) -> Any:
    """Pearson's estimate of the dispersion: squared residuals over the variances of the family, summed and divided by
    the degrees of freedom."""
    if known.is_density:
        return np.full(len(dof), np.nan)
    variances = rows.value if known.family == "poisson" else rows.value * (1 - rows.value)
    squared = ((rows.response - rows.value) / rows.sigma) ** 2
    # A row without a residual contributes 0, also where its variance is 0.
    off = rows.real & (squared > 0)
    return np.where(off, squared / np.where(off, variances, 1.0), 0.0).sum(axis=1) / dof


# --- the curvature of a model near its fit: the curvature measures of Bates and Watts


class Curvatures(NamedTuple):
    """Root mean square curvatures of g fits over all directions, `[g]` each, times the radius of the confidence region.

    `intrinsic` is the curvature of the surface of the model's values, `parameter` that of the lines on it along which
    one parameter changes.
    """

    intrinsic: Any
    parameter: Any


def curvatures(blocks: Sequence[Any], axes: Any, radius: Any) -> Curvatures:
    """The curvatures of g fits.

    `blocks` hold the n rows: derivatives of the model divided by the standard deviations of the rows, `[g, n, p + k]`,
    the p first ones followed by the k second ones in the order of `pairs`. `axes` are those of the parameters'
    `Information`, and `radius` `[g]` is that of the confidence region in the space of the rows, s sqrt(p F).

    Directions that the rows do not determine are left out. Source: D. M. Bates and D. G. Watts, Relative curvature
    measures of nonlinearity, J. R. Statist. Soc. B 42 (1980) 1, (2.14) and (2.15).
    """
    p = axes.shape[-1]
    first, other = pairs(p)
    # Along the axes A, the second derivatives V of a row are AᵀVA.
    twice = np.where(first == other, 0.5, 1.0)[:, None]
    left, right = axes[:, first], axes[:, other]
    change = twice * (left[:, :, first] * right[:, :, other] + right[:, :, first] * left[:, :, other])
    tangential = axes.mT @ sum(block[..., :p].mT @ block[..., p:] for block in blocks) @ change
    # The components of the second derivatives normal to the tangent plane.
    beyond = np.concatenate([-axes @ tangential, change], axis=1).mT
    normal = sum(_squares(beyond @ block.mT, p) for block in blocks)
    scale = radius / np.sqrt(p * (p + 2.0))
    return Curvatures(scale * np.sqrt(normal), scale * np.sqrt(_squares(tangential.mT, p)))


def _squares(curved: Any, p: int) -> Any:
    """The mean square curvature over all directions, times p(p + 2), of second derivatives `[g, k, n]` in the order of
    `pairs`: twice the sum of the squares of all matrix elements, plus the square of the trace."""
    first, other = pairs(p)
    counts = np.where(first == other, 2.0, 4.0)
    trace = (first == other).astype(float) @ curved
    return np.vecdot(curved, curved) @ counts + np.vecdot(trace, trace)


# What `errors` may be, beside a column of clusters, as in `cluster:site`.
INFORMATION, ROBUST, CLUSTER = "information", "robust", "cluster"
ERRORS = (INFORMATION, ROBUST)
# Number of clusters below which the errors are known to be too small (A. C. Cameron and D. L. Miller, Journal of Human
# Resources 50 (2015) 317, VI).
_FEW_CLUSTERS = 20


def cluster_column(errors: str) -> str | None:
    """The column of clusters, None where there is none."""
    kind, separator, column = errors.partition(":")
    return column if kind == CLUSTER and separator else None


def with_robust_errors(found: Statistics, rows: FitRows, known: Assumptions, clusters: Any) -> Statistics:
    """The statistics of one fit with the covariances of the sandwich B M B, where B is the inverse of the information,
    and M the sum of the squares of the gradients of the costs of rows, or of `clusters`, the codes `[n]` of rows. Priors
    add to M what they add to the information.

    For least squares M of the rows is multiplied by n/(n - p), and of clusters by (n - 1)/(n - p), where n - p are the
    degrees of freedom; for G clusters also by G/(G - 1), with which intervals are those of G - 1 degrees of freedom.
    Sources: H. White, Econometrica 48 (1980) 817; J. G. MacKinnon and H. White, J. Econometrics 29 (1985) 305 (HC1);
    A. C. Cameron and D. L. Miller, above.

    Raises EvaluationError for a single cluster.
    """
    if known.errors == INFORMATION or not found.information.is_determined.all():
        return found
    value, response, sigma, first = rows.value[0], rows.response[0], rows.sigma[0], rows.first[0]
    scores = known.likelihood(value, response, sigma).first[:, None] * first
    n = len(scores)
    quantile, tail = found.quantile, found.tail
    least_squares = known.family == "gaussian"
    with np.errstate(all="ignore"):
        factor = np.float64(n if known.errors == ROBUST else n - 1) / found.dof[0] if least_squares else 1.0
    if known.errors == CLUSTER:
        codes = np.unique(clusters, return_inverse=True)[1]
        count = int(codes.max()) + 1
        if count < 2:
            raise EvaluationError(
                "there is one cluster of rows, and errors of clusters need several", hint="--errors robust has none"
            )
        scores = np.stack([np.bincount(codes, column, count) for column in scores.T], axis=1)
        factor *= count / (count - 1)
        if known.is_scaled:
            tail = np.array([count - 1])
            quantile = known.quantile(tail)
    inverse = found.information.covariance[0]
    squares = scores.T @ scores * factor
    if rows.priors is not None:
        scale = found.reduced_chi2[0] if known.is_scaled else 1.0
        squares += np.diag(scale / rows.priors[1][0] ** 2)
    covariance = inverse @ squares @ inverse
    return found._replace(covariance=covariance[None], quantile=quantile, tail=tail)


def cluster_warnings(known: Assumptions, clusters: Any, parameters: int) -> list[str]:
    """Warnings of too few clusters."""
    if known.errors != CLUSTER:
        return []
    count = len(np.unique(clusters))
    if count <= parameters:
        return [f"there are {count} clusters for {parameters} parameters: some combination of these has the error 0"]
    return [f"there are only {count} clusters: the standard errors are too small"] if count < _FEW_CLUSTERS else []
