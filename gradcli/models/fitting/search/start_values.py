"""Generates the points from which to search for parameters that have no start value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.models.fitting.problem.linearisations import Linearised, least_squares_step, linear_first, linearised
from gradcli.models.fitting.problem.magnitudes import magnitudes
from gradcli.models.fitting.problem.problems import Problem

# Number of points generated for each that is chosen; largest number of rows on which they are ranked, without and with
# sines in the model.
_CANDIDATES_PER_START = 64
_ROWS, _ROWS_OF_SINES = 200, 1000
# Estimated work of a search from one point, in array elements for each parameter: a constant, and the part for each
# row.
_SEARCH, _OF_ROW = 700, 20
# Largest decimal logarithm of a parameter's size.
_LARGEST = 30
# Width of the distribution of sizes: decades on each side of the likely size.
_DECADES = 1.5
# Shares of points in which a parameter is negative, and in which a place is among the data.
_NEGATIVE_FRACTION = 0.25
_PLACE_FRACTION = 0.75


def start_values(problem: Problem, start: Any, linear: Sequence[int], count: int, seed: int) -> Any:
    """At most `count` points `[g, p]`: those with the lowest costs of a Latin hypercube over the likely sizes of the
    parameters.

    For least squares the costs are those with the `linear` parameters at their best values, and these parameters are 0
    in the points. For other likelihoods half of the points have the linear parameters of least squares, which are near
    the best ones. Parameters with a number in `start` `[p]` keep it. Raises LimitError where the searches from all
    points would exceed the limits of the problem.
    """
    np = arrays.numpy_namespace()
    few = fewer_rows(problem, start)
    p = len(start)
    with limits.within(*problem.limits):
        limits.charge(count * (p + 1) * (_SEARCH + _OF_ROW * few.count))
    looked_at = max(count, min(_CANDIDATES_PER_START * count, problem.most_candidate_elements // (few.count * (p + 1))))
    points = hypercube(few, start, looked_at, seed)
    if problem.known.is_least_squares:
        points[:, [*linear]] = np.where(np.isnan(start[[*linear]]), 0.0, start[[*linear]])
        costs = _costs_by_qr(linearised(few, points), linear)
    else:
        unknown = [i for i in linear if np.isnan(start[i])]
        points[::2] = _with_least_squares(few, points[::2], unknown)
        costs = linearised(few, points).cost
    order = np.argsort(np.where(np.isfinite(costs), costs, np.inf), kind="stable")
    return points[order[:count]]


def fewer_rows(problem: Problem, start: Any) -> Problem:
    """The problem with a sample of evenly spaced rows that is enough to rank points: a larger one where sines have to
    be resolved."""
    np = arrays.numpy_namespace()
    if problem.count <= _ROWS:
        return problem
    has_sines = magnitudes(problem, np.where(np.isnan(start), 1.0, start)).frequencies
    count = min(problem.count, _ROWS_OF_SINES if has_sines else _ROWS)
    return problem.with_rows(np.unique(np.linspace(0, problem.count - 1, count).astype(int)))


def _costs_by_qr(found: Linearised, linear: Sequence[int]) -> Any:
    """The costs with the `linear` parameters at their best values. Those of `linearisations.projected_costs`, from scalar
    products, would lose half of the digits where columns are nearly dependent."""
    if not len(linear):
        return found.cost
    inside = linear_first(found.factor, linear)[:, : len(linear), -1]
    return found.cost - (inside * inside).sum(-1) / 2


def _with_least_squares(problem: Problem, points: Any, linear: Sequence[int]) -> Any:
    """The points with the `linear` parameters replaced by those of least squares."""
    np = arrays.numpy_namespace()
    if not linear:
        return points
    found = points.copy()
    found[:, linear] = 0.0
    with np.errstate(all="ignore"):
        factor = linear_first(linearised(problem.of_least_squares(), found).factor, linear)
        found[:, linear] = least_squares_step(factor[:, : len(linear), : len(linear)], factor[:, : len(linear), -1])
    return found


def hypercube(problem: Problem, start: Any, count: int, seed: int) -> Any:
    """Points `[count, p]` of a Latin hypercube: each parameter has one value in each of `count` equal parts of its
    distribution."""
    np = arrays.numpy_namespace()
    rng = np.random.default_rng(seed)
    p = len(start)
    shares = (np.stack([rng.permutation(count) for _ in range(p)], 1) + rng.random((count, p))) / count
    signs = np.stack([rng.permutation(count) for _ in range(p)], 1) < _NEGATIVE_FRACTION * count
    among = np.stack([rng.permutation(count) for _ in range(p)], 1) < _PLACE_FRACTION * count
    likely = magnitudes(problem, np.where(np.isnan(start), 1.0, start))
    logarithms = np.clip(likely.logarithms, -_LARGEST, _LARGEST)
    points = 10 ** (logarithms + _DECADES * (2 * shares - 1)) * np.where(signs, -1, 1)
    for i, (low, high) in likely.places.items():
        points[:, i] = np.where(among[:, i], low + shares[:, i] * (high - low), points[:, i])
    if likely.frequencies:
        # The cost has a minimum for each number of periods of a sine among the data: half of the points cover all of
        # these.
        fast = rng.permutation(count) < count // 2
        for i, (size, power, largest) in likely.frequencies.items():
            angles = (rng.permutation(count) + rng.random(count)) / count
            points[fast, i] = size * (1 + angles[fast] * (largest - 1)) ** power
    both = np.isfinite(problem.low) & np.isfinite(problem.high)
    with np.errstate(invalid="ignore"):
        points = np.where(both, problem.low + shares * (problem.high - problem.low), points)
    # Bounds may exclude one sign.
    outside = (points < problem.low) | (points > problem.high)
    points = np.clip(np.where(outside, -points, points), problem.low, problem.high)
    return np.where(np.isnan(start), points, start)
