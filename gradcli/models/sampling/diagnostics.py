"""Whether draws of several chains agree, and how many independent draws they are worth.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner, "Rank-normalization, folding, and localization: An
improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021) 667.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def r_hat(draws: Any) -> float:
    """Rank-normalised split R-hat of draws `[chains, draws]`: the larger one of the bulk and the folded draws."""
    halves = _split(draws)
    if not np.isfinite(halves).all() or np.ptp(halves) == 0:
        return math.nan
    return max(_plain_r_hat(_ranked(halves)), _plain_r_hat(_ranked(abs(halves - np.median(halves)))))


def ess_bulk(draws: Any) -> float:
    """The effective sample size of the bulk: that of rank-normalised draws."""
    return _ess(_ranked(_split(draws)))


def ess_tail(draws: Any) -> float:
    """The effective sample size of the tails: the smaller one of the 5 % and the 95 % quantile."""
    halves = _split(draws)
    return min(_ess((halves <= np.quantile(halves, share)).astype(float)) for share in (0.05, 0.95))


def mean_error(draws: Any) -> float:
    """The Monte Carlo standard error of the mean."""
    count = _ess(_split(draws))
    return float(np.std(draws, ddof=1) / math.sqrt(count)) if count > 0 else math.nan


def energy_information(energies: Any) -> float:
    """The Bayesian fraction of missing information of a chain's energies; a small one says that momenta are resampled
    too slowly (Betancourt, 2016)."""
    return float(np.square(np.diff(energies)).sum() / np.square(energies - energies.mean()).sum())


def _split(draws: Any) -> Any:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _ranked(draws: Any) -> Any:
    """Normal scores of the ranks."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(draws, method="average").reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def _plain_r_hat(draws: Any) -> float:
    count = draws.shape[1]
    between = count * draws.mean(axis=1).var(ddof=1)
    within = draws.var(axis=1, ddof=1).mean()
    return math.sqrt((between / within + count - 1) / count) if within > 0 else math.nan


def _ess(draws: Any) -> float:
    """The effective sample size of draws `[chains, draws]` by Geyer's initial monotone sequence."""
    chains, count = draws.shape
    if count < 4 or not np.isfinite(draws).all() or np.ptp(draws) == 0:
        return math.nan
    covariances = _autocovariances(draws)
    within = float((covariances[:, 0] * count / (count - 1.0)).mean())
    variance = within * (count - 1.0) / count
    if chains > 1:
        variance += float(draws.mean(axis=1).var(ddof=1))
    correlations = 1.0 - (within - covariances.mean(axis=0) * count / (count - 1.0)) / variance
    correlations[0] = 1.0
    pairs = correlations[0 : count - count % 2 : 2] + correlations[1 : count - count % 2 : 2]
    negative = np.flatnonzero(pairs < 0)
    last = int(negative[0]) if len(negative) else len(pairs)
    monotone = np.minimum.accumulate(pairs[:last])
    # The first correlation after the pairs improves estimates for antithetic chains.
    further = max(float(correlations[2 * last]), 0.0) if 2 * last < count else 0.0
    time = max(-1.0 + 2.0 * float(monotone.sum()) + further, 1.0 / math.log10(chains * count))
    return float(chains * count / time)


def _autocovariances(draws: Any) -> Any:
    count = draws.shape[1]
    length = 2 ** math.ceil(math.log2(2 * count))
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), length, axis=1)
    return np.fft.irfft(spectrum * spectrum.conj(), length, axis=1)[:, :count] / count
