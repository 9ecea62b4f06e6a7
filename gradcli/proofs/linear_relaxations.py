"""Lower bounds of a minimum over boxes by linear programs, whose duals are verified in interval arithmetic.

The objective and the conditions are replaced by linear functions below them: at corners of a box with the extreme slopes,
and at its middle with a constant for the uncertainty of the slopes (I. Araya, G. Trombettoni, B. Neveu, A Contractor Based
on Convex Interval Taylor, 2012). Any multipliers give a bound, so that the solver need not be trusted (A. Neumaier,
O. Shcherbina, Safe bounds in linear and mixed-integer linear programming, 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.proofs.box_arithmetic import Interval, add, multiply, subtract, total
from gradcli.proofs.newton_contraction import distances

# Boxes whose linear programs are solved together, as one with blocks: calls of the solver take longer than small programs.
_TOGETHER = 32
# The cost of violating a condition, in units of the change of the objective over a box: above the multipliers that occur.
_PENALTY = 1e3
# Multipliers below this share of the largest are left out, which the solver's tolerance may have made.
_NEGLIGIBLE = 1e-9


class Rows(NamedTuple):
    """Linear functions below k functions over boxes: `offset` `[boxes, k]` in the middle of the box, and `slopes`
    `[boxes, k, n]`, with the widths of the slopes that they replace. Where nothing is known the offset is -inf."""

    slopes: Any
    offset: Any
    widths: Any


class Relaxed(NamedTuple):
    """A linear function below the objective at all feasible points of a box: its `slopes` `[boxes, n]`, its bound from
    below in the `middle`, both times `weight`. The weight is 0 where the box has no feasible point if the function is
    above 0 in it."""

    slopes: Interval
    middle: Any
    weight: Interval


def rows_at_middle(value: Interval, slopes: Interval, low: Any, high: Any, point: Any) -> Rows:
    """Functions with values `[boxes, k]` at points in the boxes, by slopes `[boxes, k, n]` in their middle."""
    with np.errstate(all="ignore"):
        middle = 0.5 * slopes.low + 0.5 * slopes.high
        exact = Interval(middle, middle)
        around = distances(low, high, point)
        error = multiply(subtract(slopes, exact), Interval(around.low[:, None], around.high[:, None]))
        offset = add(value, total(error, axis=(1,))).low
    return _known(middle, offset, slopes)


def rows_at_corner(value: Interval, slopes: Interval, low: Any, high: Any, point: Any, upper: Any) -> Rows:
    """Functions with values `[boxes, k]` at the corners that are at the upper end where `upper` `[boxes, n]`."""
    extreme = np.where(upper[:, None], slopes.high, slopes.low)
    corner = np.where(upper, high, low)
    with np.errstate(all="ignore"):
        toward = subtract(Interval(point, point), Interval(corner, corner))
        moved = multiply(Interval(extreme, extreme), Interval(toward.low[:, None], toward.high[:, None]))
        offset = add(value, total(moved, axis=(1,))).low
    return _known(extreme, offset, slopes)


def _known(slopes: Any, offset: Any, replaced: Interval) -> Rows:
    known = np.isfinite(slopes).all(axis=2) & np.isfinite(offset)
    with np.errstate(invalid="ignore"):
        widths = np.where(known[:, :, None], replaced.high - replaced.low, 0.0)
    return Rows(np.where(known[:, :, None], slopes, 0.0), np.where(known, offset, -math.inf), widths)


def joined(parts: Sequence[Rows]) -> Rows:
    return Rows(*(np.concatenate([part[k] for part in parts], axis=1) for k in range(3)))


class Relaxation(NamedTuple):
    """Linear functions below the objective at points where the conditions are at most 0; those of the conditions
    `alone`, which show that a box has no such point; how `uncertain` the first are by each variable `[boxes, n]`; and the
    points `[boxes, n]` where the linear programs have their minima."""

    objective: Relaxed
    alone: Relaxed
    uncertain: Any
    points: Any


def relaxed(objective: Rows, conditions: Rows, low: Any, high: Any, point: Any) -> Relaxation:
    """The relaxation over boxes with points in them."""
    parts = [slice(k, k + _TOGETHER) for k in range(0, len(low), _TOGETHER)]
    solved = [
        _solved(Rows(*(p[k] for p in objective)), Rows(*(p[k] for p in conditions)), low[k] - point[k], high[k] - point[k])
        for k in parts
    ]  # fmt: skip
    multipliers, moves = (np.concatenate([each[k] for each in solved]) for k in range(2))
    count = objective.offset.shape[1]
    both = joined([objective, conditions])
    found = []
    for own in (multipliers, np.where(np.arange(multipliers.shape[1]) < count, 0.0, multipliers)):
        # Where a row is not known, its multiplier is 0.
        offset = np.where(own > 0, both.offset, 0.0)
        exact, constant = Interval(own, own), Interval(offset, offset)
        with np.errstate(all="ignore"):
            slopes = total(
                multiply(Interval(own[:, :, None], own[:, :, None]), Interval(both.slopes, both.slopes)), axis=(0,)
            )
            middle = total(multiply(exact, constant), axis=(0,)).low
            weight = total(Interval(own[:, :count], own[:, :count]), axis=(0,))
        found.append(Relaxed(slopes, middle, weight))
    widths = np.where(multipliers[:, :, None] > 0, both.widths, 0.0)
    uncertain = np.einsum("br,brn->bn", multipliers, widths) * (high - low)
    return Relaxation(found[0], found[1], uncertain, np.clip(point + moves, low, high))


def _solved(objective: Rows, conditions: Rows, below: Any, above: Any) -> tuple[Any, Any]:
    """Multipliers `[boxes, rows]` of linear functions over boxes that reach from `below` to `above` `[boxes, n]`, and
    where the minima are; 0 where none are found."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    boxes, count, n = objective.slopes.shape
    rows = count + conditions.offset.shape[1]
    half = np.maximum(abs(below), abs(above))
    half = np.where(half > 0, half, 1.0)
    slopes = np.concatenate([objective.slopes, conditions.slopes], axis=1) * half[:, None]
    offset = np.concatenate([objective.offset, conditions.offset], axis=1)
    reach = abs(slopes).sum(axis=2)
    # Functions that are below the others everywhere, and conditions that hold everywhere, are left out.
    best = (offset[:, :count] - reach[:, :count]).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        kept = np.concatenate([offset[:, :count] + reach[:, :count] >= best, (offset + reach)[:, count:] > 0], axis=1)
    kept &= np.isfinite(offset)
    offset = np.where(kept, offset, 0.0)
    slopes = np.where(kept[:, :, None], slopes, 0.0)
    first = np.where(kept[:, :count], offset[:, :count], -math.inf).max(axis=1)
    first = np.where(np.isfinite(first), first, 0.0)
    own = np.maximum(
        abs(slopes[:, :count]).max(axis=(1, 2)), (kept[:, :count] * abs(offset[:, :count] - first[:, None])).max(axis=1)
    )
    scale = np.empty((boxes, rows))
    scale[:, :count] = np.where(own > 0, own, 1.0)[:, None]
    size = np.maximum(abs(slopes[:, count:]).max(axis=2), abs(offset[:, count:]) / (2 * n))
    scale[:, count:] = np.where(size > 0, size, 1.0)
    # The unknowns of a box are the place in it, the objective, and by how much the conditions are violated.
    matrix = np.zeros((boxes, rows, n + 2))
    matrix[:, :, :n] = slopes / scale[:, :, None]
    matrix[:, :count, n] = -1.0 * kept[:, :count]
    matrix[:, count:, n + 1] = -1.0
    right = -np.where(np.arange(rows) < count, offset - first[:, None], offset) / scale
    right = np.where(kept, right, 0.0)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros((boxes, rows)), np.zeros((boxes, n))
    width = n + 2
    columns = np.arange(boxes)[:, None, None] * width + np.broadcast_to(np.arange(width), (1, rows, width))
    blocks = csr_array(
        (matrix.ravel(), columns.ravel(), np.arange(0, matrix.size + 1, width)), shape=(boxes * rows, boxes * width)
    )
    # Without a function below it, the objective counts as 0.
    free = kept[:, :count].any(axis=1)
    least = np.concatenate([below / half, np.tile([-math.inf, 0.0], (boxes, 1))], axis=1)
    most = np.concatenate([above / half, np.tile([math.inf, math.inf], (boxes, 1))], axis=1)
    least[~free, n] = most[~free, n] = 0.0
    cost = np.tile(np.append(np.zeros(n), [1.0, _PENALTY]), boxes)
    found = linprog(
        cost, A_ub=blocks, b_ub=right.ravel(), bounds=np.stack([least.ravel(), most.ravel()], axis=1),
        method="highs-ds", options={"presolve": False},
    )  # fmt: skip
    if found.status != 0:
        return np.zeros((boxes, rows)), np.zeros((boxes, n))
    multipliers = np.maximum(-np.asarray(found.ineqlin.marginals).reshape(boxes, rows), 0.0) * kept
    multipliers = np.where(multipliers > _NEGLIGIBLE * multipliers.max(axis=1, keepdims=True), multipliers, 0.0)
    units = np.where(own > 0, own, 1.0)[:, None]
    scaled = np.concatenate([multipliers[:, :count], multipliers[:, count:] * units / scale[:, count:]], axis=1)
    return scaled, np.asarray(found.x).reshape(boxes, width)[:, :n] * half
