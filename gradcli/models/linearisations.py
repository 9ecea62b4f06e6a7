"""A problem near points, as triangular factors of its derivatives: all that a step to lower costs needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.models.likelihoods import Cost
from gradcli.models.problems import Problem

# So many numbers of derivatives are in memory at a time where there are several points.
_MOST = 2**22
# Rows that are weighted together, and that are factorised together, while they are in the caches.
_WEIGHTED, _FACTORISED = 2**15, 2**12


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
        value, derivatives = problem.columns_of(points)
        prior = problem.prior_residuals(points)
        total = (prior * prior).sum(-1) / 2
        factors = [_known(problem, prior)] if np.isfinite(problem.priors[1]).any() else []
        for start in range(0, problem.count, _WEIGHTED):
            rows = slice(start, start + _WEIGHTED)
            cost, weighted = _weighted(problem, rows, value[:, rows], [d[:, rows] for d in derivatives])
            total += cost
            factors.append(triangular(weighted))
        factor = triangular(factors[0] if len(factors) == 1 else np.concatenate(factors, axis=-2))
        finite = np.isfinite(total) & np.isfinite(factor).all((-1, -2))
    return Linearised(np.where(finite, total, np.inf), np.where(finite[:, None, None], factor, 0))


def _weighted(problem: Problem, rows: slice, value: Any, derivatives: Sequence[Any]) -> tuple[Any, Any]:
    """The cost of some rows `[g]`, and their derivatives and residuals, weighted, `[g, n, p + 1]`."""
    np = arrays.numpy_namespace()
    some = problem.with_rows(rows)
    off = value - some.response
    stacked = np.empty((*value.shape, len(derivatives) + 1))
    if problem.known.is_least_squares:
        root = 1 / some.sigma
        residual = off * root
        cost = (residual * residual).sum(-1) / 2
    else:
        costs = some.cost(value)
        root = np.sqrt(weights(some, value, costs))
        residual = np.copysign(np.sqrt(np.maximum(costs.first * off, 0)), off)
        cost = costs.value.sum(-1)
    for i, derivative in enumerate(derivatives):
        np.multiply(derivative, root, out=stacked[..., i])
    stacked[..., -1] = residual
    if not np.isfinite(cost).all():
        stacked[~np.isfinite(cost)] = 0
    return cost, stacked


def _known(problem: Problem, prior: Any) -> Any:
    """The rows of what is known before, `[g, p, p + 1]`."""
    np = arrays.numpy_namespace()
    slopes = np.broadcast_to(np.diag(1 / problem.priors[1]), (*prior.shape, prior.shape[-1]))
    return np.concatenate([slopes, prior[..., None]], axis=-1)


def weights(problem: Problem, value: Any, cost: Cost) -> Any:
    """The weights of the squares of rows, `[…, n]` as the model's values."""
    np = arrays.numpy_namespace()
    off = value - problem.response
    return np.maximum(np.where(off == 0, cost.second, cost.first / np.where(off == 0, 1, off)), 0)


def triangular(rows: Any) -> Any:
    """The upper triangular factors `[…, k, k]` of matrices `[…, n, k]`, block by block where they are long."""
    np = arrays.numpy_namespace()
    n, k = rows.shape[-2:]
    while n >= 2 * _FACTORISED > 4 * k:
        whole = n // _FACTORISED * _FACTORISED
        blocks = rows[..., :whole, :].reshape(*rows.shape[:-2], -1, _FACTORISED, k)
        factors = np.linalg.qr(blocks, mode="r").reshape(*rows.shape[:-2], -1, k)
        rows = np.concatenate([factors, rows[..., whole:, :]], axis=-2)
        n = rows.shape[-2]
    if n < k:
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-2], k - n, k))], axis=-2)
    return np.linalg.qr(rows, mode="r")
