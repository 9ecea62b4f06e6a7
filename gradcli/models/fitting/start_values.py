"""Points from which to search, for parameters that have no start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.models.fitting.linearisations import Linearised, linearised
from gradcli.models.fitting.magnitudes import magnitudes
from gradcli.models.fitting.problems import Problem

# So many points are looked at for each that is chosen, with so many rows at most, and numbers of derivatives in all.
_LOOKED_AT = 64
_ROWS = 200
_WORK = 2**24
# Decades to each side of the size that is likely.
_DECADES = 1.5
# The shares of points with a sign other than +, and of places that are among the data.
_NEGATIVE = 0.25
_AMONG = 0.75


def start_values(problem: Problem, start: Any, linear: Sequence[int], count: int, seed: int) -> Any:
    """At most `count` points `[g, p]`: of a Latin hypercube over the likely sizes those with the lowest costs, where the
    `linear` parameters are the best ones. Parameters that have a number in `start` `[p]` have it in all of them."""
    np = arrays.numpy_namespace()
    few = problem.with_rows(np.unique(np.linspace(0, problem.count - 1, min(problem.count, _ROWS)).astype(int)))
    p = len(start)
    looked_at = max(count, min(_LOOKED_AT * count, _WORK // (few.count * (p + 1))))
    points = hypercube(problem, start, linear, looked_at, seed)
    costs = without_linear(linearised(few, points), linear)
    order = np.argsort(np.where(np.isfinite(costs), costs, np.inf), kind="stable")
    return points[order[:count]]


def without_linear(found: Linearised, linear: Sequence[int]) -> Any:
    """The costs with the best `linear` parameters."""
    np = arrays.numpy_namespace()
    if not len(linear):
        return found.cost
    p = found.factor.shape[-1] - 1
    others = [i for i in range(p) if i not in linear]
    inside = np.linalg.qr(found.factor[:, :, [*linear, *others, p]], mode="r")[:, : len(linear), -1]
    return found.cost - (inside * inside).sum(-1) / 2


def hypercube(problem: Problem, start: Any, linear: Sequence[int], count: int, seed: int) -> Any:
    """Points of a Latin hypercube: of each parameter one in each of `count` parts of its distribution, 0 for those that
    are `linear` and have no start."""
    np = arrays.numpy_namespace()
    rng = np.random.default_rng(seed)
    p = len(start)
    shares = (np.stack([rng.permutation(count) for _ in range(p)], 1) + rng.random((count, p))) / count
    signs = np.stack([rng.permutation(count) for _ in range(p)], 1) < _NEGATIVE * count
    among = np.stack([rng.permutation(count) for _ in range(p)], 1) < _AMONG * count
    likely = magnitudes(problem, np.where(np.isnan(start), 1.0, start))
    points = 10 ** (likely.logarithms + _DECADES * (2 * shares - 1)) * np.where(signs, -1, 1)
    for i, (low, high) in likely.places.items():
        points[:, i] = np.where(among[:, i], low + shares[:, i] * (high - low), points[:, i])
    both = np.isfinite(problem.low) & np.isfinite(problem.high)
    with np.errstate(invalid="ignore"):
        points = np.where(both, problem.low + shares * (problem.high - problem.low), points)
    # On the other side of 0 there may be none.
    outside = (points < problem.low) | (points > problem.high)
    points = np.clip(np.where(outside, -points, points), problem.low, problem.high)
    points[:, [*linear]] = 0.0
    return np.where(np.isnan(start), points, start)
