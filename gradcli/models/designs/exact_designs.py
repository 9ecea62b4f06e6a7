"""Exact designs: a number of rows for each point, by rounding an approximate design and exchanging rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.models.designs.approximate_designs import ApproximateDesign, Candidates, moved_points
from gradcli.models.designs.criteria import Criterion

# The number of candidates, beside the support points, to exchange rows with; and the most exchanges.
_POOL, _MOST_EXCHANGES = 400, 500
# Points nearer to each other than this, relative to the widths of the region, are one.
_SAME = 1e-7
# An exchange must lower the criterion by more than this.
_LEAST_FALL = 1e-10


class ExactDesign(NamedTuple):
    """Points `[m, d]` with their numbers of rows `[m]`, and the efficiency relative to the best approximate design."""

    points: Any
    rows: Any
    efficiency: float


def rounded_weights(weights: Any, count: int) -> Any:
    """Numbers of rows `[m]` for weights `[m]`, none 0, with the sum `count`, which is at least m: the efficient rounding
    of F. Pukelsheim and S. Rieder (Biometrika 79 (1992) 763)."""
    rows = np.ceil((count - len(weights) / 2) * weights).astype(int)
    while rows.sum() < count:
        rows[np.argmin(rows / weights)] += 1
    while rows.sum() > count:
        rows[np.argmax((rows - 1) / weights)] -= 1
    return rows


def exact_design(
    candidates: Candidates, criterion: Criterion, approximate: ApproximateDesign, count: int
) -> ExactDesign:
    """The best exact design that is found with `count` rows, at least as many as parameters."""
    support = candidates.gradients_at(approximate.points)
    matrix = (support.T * approximate.weights) @ support
    rises = np.einsum("ij,jk,ik->i", candidates.gradients, criterion.slope(matrix), candidates.gradients)
    # A sample of the best candidates, and the same number of others everywhere.
    by_rise = np.argsort(-rises, kind="stable")[: 4 * _POOL : 8]
    evenly = np.unique(np.linspace(0, len(rises) - 1, _POOL // 2).astype(int))
    chosen = np.unique(np.concatenate([by_rise, evenly]))
    points = np.concatenate([approximate.points, candidates.points[chosen]])
    gradients = np.concatenate([support, candidates.gradients[chosen]])
    weights = np.concatenate([approximate.weights, np.zeros(len(chosen))])
    best: tuple[float, Any, Any] | None = None
    for rows in _starts(gradients, weights, criterion, count):
        rows = _exchanged(rows, gradients, criterion)
        taken = rows > 0
        shares = rows[taken] / count
        moved = moved_points(points[taken], shares, candidates, criterion)
        own = candidates.gradients_at(moved)
        value = criterion.value((own.T * shares) @ own)
        if best is None or value < best[0] - _LEAST_FALL:
            best = value, moved, rows[taken]
    assert best is not None
    value, moved, rows = best
    moved = _snapped(moved, approximate.points, candidates.region.widths)
    places, inverse = np.unique(moved, axis=0, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=rows).astype(int)
    return ExactDesign(places, totals, min(1.0, float(np.exp(criterion.value(matrix) - value))))


def _snapped(points: Any, support: Any, widths: Any) -> Any:
    """The points, of which those at a support point are that one without rounding errors."""
    apart = np.abs((points[:, None] - support[None]) / widths).max(axis=2)
    nearest = apart.argmin(axis=1)
    return np.where(apart.min(axis=1)[:, None] < _SAME, support[nearest], points)


def _starts(gradients: Any, weights: Any, criterion: Criterion, count: int) -> list[Any]:
    """Numbers of rows from which to exchange: the rounded weights where there are rows for each support point, and those
    that are chosen one after the other."""
    support = int((weights > 0).sum())
    found = []
    if count >= support:
        rows = np.zeros(len(weights), int)
        rows[:support] = rounded_weights(weights[:support], count)
        found.append(rows)
    if count < 4 * support:
        found.append(_greedy(gradients, criterion, count))
    return found


def _greedy(gradients: Any, criterion: Criterion, count: int) -> Any:
    from scipy.linalg import qr

    _, _, order = qr(gradients.T, mode="economic", pivoting=True)
    rows = np.zeros(len(gradients), int)
    rows[order[: gradients.shape[1]]] = 1
    while rows.sum() < count:
        matrix = (gradients.T * rows) @ gradients
        added = matrix + gradients[:, :, None] * gradients[:, None, :]
        rows[np.argmin(criterion.values(added))] += 1
    return rows


def _exchanged(rows: Any, gradients: Any, criterion: Criterion) -> Any:
    """Numbers of rows, after the best exchange of one row for another as long as there is one."""
    rows, count = rows.copy(), rows.sum()
    products = gradients[:, :, None] * gradients[:, None, :] / count
    value = criterion.value(np.tensordot(rows, products, 1))
    for _ in range(_MOST_EXCHANGES):
        matrix, taken = np.tensordot(rows, products, 1), np.flatnonzero(rows)
        tried = criterion.values(matrix - products[taken, None] + products[None])
        place = int(np.argmin(tried))
        found = float(tried.flat[place])
        if not found < value - _LEAST_FALL:
            break
        out, into = divmod(place, len(gradients))
        rows[taken[out]] -= 1
        rows[into] += 1
        value = found
    return rows


def exact_c_design(approximate: ApproximateDesign, coefficients: Any, count: int) -> ExactDesign:
    """The exact c-optimal design at the support points with `count` rows, at least as many as points; the variance is
    the sum of coefficients²/rows."""
    squares = coefficients**2
    rows = rounded_weights(approximate.weights, count)
    while True:
        falls = squares / rows - squares / (rows + 1)
        rises = np.where(rows > 1, squares / np.maximum(rows - 1, 1) - squares / rows, np.inf)
        into, out = int(np.argmax(falls)), int(np.argmin(rises))
        if into == out or falls[into] <= rises[out] * (1 + 1e-12):
            break
        rows[into] += 1
        rows[out] -= 1
    variance = float((squares / rows).sum())
    efficiency = float(np.abs(coefficients).sum()) ** 2 / count / variance
    return ExactDesign(approximate.points, rows, min(1.0, efficiency))
