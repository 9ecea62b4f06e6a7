"""Linearises a problem at points: the cost, and the triangular factor of the weighted Jacobian and residuals, from
which a descent computes its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.executors.row_blocks import over_blocks
from gradcli.executors.thread_pool import cores
from gradcli.models.fitting.problem import batched_matrices
from gradcli.models.fitting.problem.likelihoods import Cost
from gradcli.models.fitting.problem.problems import Problem
from gradcli.named_tuples import NamedTuple

# Largest number of derivatives in memory at once, where there are several points.
_MAX_ELEMENTS = 2**22
# Rows of the blocks that are weighted, and of those that are factorised, so that they stay in the caches.
_WEIGHTED, _FACTORISED = 2**15, 2**12
# Bound of numbers whose squares are finite.
_LARGEST = 1e150
# From _MANY rows on the factor is computed from the scalar products of the columns, in a fifth of the time of a QR
# decomposition, unless the columns are nearly dependent: the least eigenvalue of the products of columns of length 1,
# which is the inverse square of the factor that enlarges rounding errors, must be above _APART.
_CHOLESKY_ROWS, _MIN_EIGENVALUE = 2**17, 1e-5
# The same for several problems at once, which need not reach the last digit of their minima: a limit of the determinant
# of the products of columns of length 1, the least eigenvalue of which is at least a third of it.
_MIN_DETERMINANT = 1e-8


class Linearised(NamedTuple):
    """The linearisation at g points: the costs, and the upper triangular factors `[g, p + 1, p + 1]` of the derivatives
    with the residuals as last column.

    Rows are weighted so that the gradient of the cost is `RᵀRe`: the transpose of the first p columns of the factor,
    times its last column. Where a value is not finite, or too large to be squared, the cost is infinite and the factor
    0.
    """

    cost: Any
    factor: Any


def linearised(problem: Problem, points: Any) -> Linearised:
    """Linearise a problem at points `[g, p]`.

    The weights are those of iteratively reweighted least squares, the derivative of a row's cost over its residual: for
    a Poisson or binomial family they give the expected information (P. J. Green, J. R. Stat. Soc. B 46 (1984) 149).
    """
    g, p = points.shape
    at_once = max(1, _MAX_ELEMENTS // (problem.count * (p + 1) or 1))
    parts = [linearised_at_once(problem, points[i : i + at_once]) for i in range(0, g, at_once)]
    return parts[0] if len(parts) == 1 else Linearised(*map(np.concatenate, zip(*parts)))


def linear_first(factor: Any, linear: Sequence[int]) -> Any:
    """Triangular factors `[g, p + 1, p + 1]` with the columns of the `linear` parameters moved to the front."""
    others = [i for i in range(factor.shape[-1]) if i not in linear]
    return np.linalg.qr(factor[:, :, [*linear, *others]], mode="r")


def least_squares_step(matrix: Any, rest: Any) -> Any:
    """The steps `[g, k]` that minimise the sums of squares of residuals `rest` `[g, k]`, which change by `matrix`
    `[g, k, k]`; 0 along directions that rounding errors alone determine."""
    lengths = np.sqrt((matrix * matrix).sum(-2))
    norms = np.where(lengths > 0, lengths, 1)
    u, s, vt = np.linalg.svd(matrix / norms[:, None, :])
    kept = s > s[:, :1] * 1e-14
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    inside = inverse * (u.mT @ rest[:, :, None])[:, :, 0]
    return -(vt.mT @ inside[:, :, None])[:, :, 0] / norms


def linearised_at_once(problem: Problem, points: Any) -> Linearised:
    """Like `linearised`, without a limit of memory."""
    with np.errstate(all="ignore"):
        value, derivatives = problem.columns_of(points)
        prior = problem.prior_residuals(points)
        known = _prior_rows(problem, prior)

        def weighted(rows: slice) -> tuple[Any, list[Any]]:
            return _weighted(problem, rows, value[:, rows], [d[:, rows] for d in derivatives])

        cost, factor = _factor_by_blocks(weighted, known, problem.count)
        total = cost + np.vecdot(prior, prior) / 2
        finite = np.isfinite(total) & (np.einsum("gij,gij->g", factor, factor) < _LARGEST**2)
    if not finite.all():
        total, factor = np.where(finite, total, np.inf), np.where(finite[:, None, None], factor, 0)
    return Linearised(total, factor)


def projected_costs(problem: Problem, points: Any, linear: Sequence[int]) -> Any:
    """The costs `[g]` at points `[g, p]` with the `linear` parameters at their best values, which must have no bounds;
    accurate enough to rank points."""
    with np.errstate(all="ignore"):
        value, derivatives = problem.columns_of(points)
        prior = problem.prior_residuals(points)
        cost, columns = _weighted(problem, slice(0, problem.count), value, [derivatives[i] for i in linear])
        cost = cost + np.vecdot(prior, prior) / 2
        if not len(linear):
            return cost
        products = _products(columns, _prior_rows(problem, prior)[:, [*linear, -1]])
        whole = np.einsum("iig->ig", products).copy()
        for i in range(len(linear)):
            # What is left of a column that depends on earlier ones is a rounding error.
            share = np.where(products[i, i] > _MIN_DETERMINANT * whole[i], products[i] / products[i, i], 0)
            products = products - products[:, i, None] * share
        return np.where(np.isfinite(cost), cost - (whole[-1] - np.maximum(products[-1, -1], 0)) / 2, np.inf)


def _factor_by_blocks(weighted: Callable[[slice], tuple[Any, list[Any]]], known: Any, count: int) -> tuple[Any, Any]:
    """The cost of all rows and their triangular factor. `weighted` computes the costs and columns of a slice of rows;
    `known` are further rows, those of the priors."""
    if count <= _WEIGHTED:
        cost, columns = weighted(slice(0, count))
        return cost, _factorised(columns, known) if len(known) == 1 else _factor_by_products(columns, known)
    found: dict[int, tuple[Any, Any]] = {}

    def by(reduced: Callable[[Any], Any]) -> list[Any]:
        def compute(start: int, stop: int) -> bool:
            cost, columns = weighted(slice(start, stop))
            found[start] = cost, reduced(np.stack(columns, axis=-2))
            return True

        over_blocks(compute, count, _WEIGHTED, cores())
        # The order of the blocks is fixed, so that sums have the same digits whichever thread computes them.
        return [found[start] for start in sorted(found)]

    if count >= _CHOLESKY_ROWS:
        parts = by(lambda block: block @ block.mT)
        factor = _cholesky(sum(product for _, product in parts) + known @ known.mT)
        if factor is not None:
            return sum(cost for cost, _ in parts), factor
    parts = by(qr_factor)
    return sum(cost for cost, _ in parts), qr_factor(np.concatenate([*(f.mT for _, f in parts), known], axis=-1))


def _cholesky(products: Any) -> Any:
    """The triangular factors of matrices of scalar products `[g, k, k]`; None where too many digits would be lost."""
    lengths = np.sqrt(products.diagonal(axis1=-2, axis2=-1))
    if not (np.isfinite(lengths).all() and lengths.all()):
        return None
    scaled = products / lengths[:, :, None] / lengths[:, None, :]
    if not np.linalg.eigvalsh(scaled[:, :-1, :-1])[:, 0].min() > _MIN_EIGENVALUE:
        return None
    try:
        return np.linalg.cholesky(scaled, upper=True) * lengths[:, None, :]
    except np.linalg.LinAlgError:
        return None


def _factorised(columns: Sequence[Any], known: Any) -> Any:
    """The triangular factors `[g, k, k]` of matrices that have the k `columns`, `[g, n]` each, and the further rows
    `known` `[g, k, m]`."""
    block = np.stack(columns, axis=-2)
    return qr_factor(np.concatenate([block, known], axis=-1) if known.shape[-1] else block)


def _factor_by_products(columns: Sequence[Any], known: Any) -> Any:
    """Like `_factorised`, for many matrices: from the scalar products of the columns where these are well
    conditioned."""
    products = _products(columns, known)
    found = batched_matrices.cholesky(products)
    # The residuals may lie in the span of the derivatives, up to rounding errors.
    found[-1, -1] = np.where(np.isnan(found[-1, -1]) & np.isfinite(found[0, -1]), 0, found[-1, -1])
    shares = np.einsum("iig->ig", found)[:-1] ** 2 / np.einsum("iig->ig", products)[:-1]
    is_good = shares.prod(0) > _MIN_DETERMINANT
    factors = found.transpose(2, 0, 1)
    if not is_good.all():
        factors[~is_good] = _factorised([column[~is_good] for column in columns], known[~is_good])
    return factors


def _products(columns: Sequence[Any], known: Any) -> Any:
    """The scalar products `[k, k, g]` of the columns of many matrices, which are given as in `_factorised`."""
    found = np.empty((len(columns), len(columns), len(known)))
    for i, column in enumerate(columns):
        for j in range(i + 1):
            found[i, j] = found[j, i] = np.vecdot(column, columns[j])
    return found + batched_matrices.batch_last(known @ known.mT) if known.shape[-1] else found


def _weighted(problem: Problem, rows: slice, value: Any, derivatives: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The costs `[g]` of some rows, and the weighted columns of their derivatives and residuals, `[g, n]` each."""
    some = problem if value.shape[1] == problem.count else problem.with_rows(rows)
    off = value - some.response
    if problem.known.is_least_squares:
        root = 1 / some.sigma
        columns = [*derivatives, off]
        if np.ndim(root) or root != 1:
            columns = [column * root for column in columns]
        cost = np.vecdot(columns[-1], columns[-1]) / 2
    else:
        costs = some.cost(value)
        root = np.sqrt(weights(some, value, costs))
        columns = [*(derivative * root for derivative in derivatives)]
        if problem.known.is_density:
            # The matrix of the scores stands for the Jacobian, and -1 for each residual: with these the gradient is that
            # of the cost, and the Gauss-Newton matrix the sum of the products of the scores (E. R. Berndt et al., Annals
            # of Economic and Social Measurement 3 (1974) 653).
            columns.append(-root)
        else:
            columns.append(np.copysign(np.sqrt(np.maximum(costs.first * off, 0)), off))
        cost = costs.value.sum(-1)
    finite = np.isfinite(cost)
    if not finite.all():
        columns = [np.where(finite[:, None], column, 0) for column in columns]
    return cost, columns


def _prior_rows(problem: Problem, prior: Any) -> Any:
    """The rows of the k priors, `[g, p + 1, k]`."""
    told = np.isfinite(problem.priors[1])
    if not told.any():
        return np.empty((len(prior), len(told) + 1, 0))
    slopes = np.broadcast_to(np.diag(1 / problem.priors[1])[:, told], (*prior.shape, told.sum()))
    return np.concatenate([slopes, prior[:, None, told]], axis=-2)


def weights(problem: Problem, value: Any, cost: Cost) -> Any:
    """The weights of the squared residuals, `[…, n]` as the model's values."""
    if problem.known.is_density:
        return -cost.first
    off = value - problem.response
    return np.maximum(np.where(off == 0, cost.second, cost.first / np.where(off == 0, 1, off)), 0)


def qr_factor(columns: Any) -> Any:
    """The upper triangular factors `[…, k, k]` of matrices with k columns, given as `[…, k, n]`; long columns are
    factorised block by block."""
    k, n = columns.shape[-2:]
    while n >= 2 * _FACTORISED > 4 * k:
        whole = n // _FACTORISED * _FACTORISED
        blocks = np.moveaxis(columns[..., :whole].reshape(*columns.shape[:-1], -1, _FACTORISED), -3, -1)
        factors: Any = np.linalg.qr(blocks, mode="r")
        factors = factors.reshape(*columns.shape[:-2], -1, k).mT
        columns = np.concatenate([factors, columns[..., whole:]], axis=-1)
        n = columns.shape[-1]
    if n < k:
        columns = np.concatenate([columns, np.zeros((*columns.shape[:-1], k - n))], axis=-1)
    return np.linalg.qr(columns.mT, mode="r")
