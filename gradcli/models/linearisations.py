"""A problem near points, as triangular factors of its derivatives: all that a step to lower costs needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.likelihoods import Cost
from gradcli.models.problems import Problem

# So many numbers of derivatives are in memory at a time where there are several points.
_MOST = 2**22
# Rows of a block that is factorised while it is in the caches.
_BLOCK = 2**12


class Linearised(NamedTuple):
    """At each of g points: the cost, and the upper triangular factor `[p + 1, p + 1]` of the derivatives with the
    residuals as their last column, both weighted so that the gradient of the cost is `RᵀRe`: the first p columns of the
    factor, transposed, times the last. Where there is no finite value the cost is infinite and the factor 0."""

    cost: Any
    factor: Any


def linearised(problem: Problem, points: Any) -> Linearised:
    """At points `[g, p]`.

    The weights are those of iteratively reweighted least squares, the slope of a row's cost over the residual: for a
    Poisson or binomial family they give the expected information (P. J. Green, J. R. Stat. Soc. B 46 (1984) 149).
    """
    np = arrays.numpy_namespace()
    g, p = points.shape
    at_once = max(1, _MOST // (problem.count * (p + 1) or 1))
    parts = [linearised_at_once(problem, points[i : i + at_once]) for i in range(0, g, at_once)]
    return parts[0] if len(parts) == 1 else Linearised(*map(np.concatenate, zip(*parts)))


def linearised_at_once(problem: Problem, points: Any) -> Linearised:
    """As `linearised`, whatever memory it takes."""
    np = arrays.numpy_namespace()
    with np.errstate(all="ignore"):
        value, first = problem.rows_of(points)
        cost = problem.cost(value)
        root, off = np.sqrt(weights(problem, value, cost)), value - problem.response
        residual = np.copysign(np.sqrt(np.maximum(cost.first * off, 0)), off)
        prior = problem.prior_residuals(points)
        total = cost.value.sum(-1) + (prior * prior).sum(-1) / 2
        first *= root[..., None]
        finite = np.isfinite(total) & np.isfinite(residual).all(-1) & np.isfinite(first.sum((-1, -2)))
    rows = np.concatenate([first, residual[..., None]], axis=-1)
    if np.isfinite(problem.priors[1]).any():
        known = np.concatenate([np.zeros((*prior.shape, prior.shape[-1])), prior[..., None]], axis=-1)
        known[..., range(prior.shape[-1]), range(prior.shape[-1])] = 1 / problem.priors[1]
        rows = np.concatenate([rows, known], axis=-2)
    rows[~finite] = 0
    return Linearised(np.where(finite, total, np.inf), triangular(rows))


def weights(problem: Problem, value: Any, cost: Cost) -> Any:
    """The weights of the squares of rows, `[…, n]` as the model's values."""
    np = arrays.numpy_namespace()
    off = value - problem.response
    return np.maximum(np.where(off == 0, cost.second, cost.first / np.where(off == 0, 1, off)), 0)


def triangular(rows: Any) -> Any:
    """The upper triangular factors `[…, k, k]` of matrices `[…, n, k]`, block by block where they are long."""
    np = arrays.numpy_namespace()
    n, k = rows.shape[-2:]
    while n >= 2 * _BLOCK > 4 * k:
        whole = n // _BLOCK * _BLOCK
        blocks = rows[..., :whole, :].reshape(*rows.shape[:-2], -1, _BLOCK, k)
        factors = np.linalg.qr(blocks, mode="r").reshape(*rows.shape[:-2], -1, k)
        rows = np.concatenate([factors, rows[..., whole:, :]], axis=-2)
        n = rows.shape[-2]
    if n < k:
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-2], k - n, k))], axis=-2)
    return np.linalg.qr(rows, mode="r")
