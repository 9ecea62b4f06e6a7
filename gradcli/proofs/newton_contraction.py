"""Interval Newton steps for systems of equations over many boxes at once, and clusters of boxes that touch each other.

A box is contracted by Gauss-Seidel steps on the system preconditioned by the inverse of its middle, and Krawczyk's
operator decides whether it contains exactly one root (A. Neumaier, Interval Methods for Systems of Equations, 1990, ch.
5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.named_tuples import NamedTuple
from gradcli.proofs.box_arithmetic import (
    BoxInterval,
    add,
    down,
    matrix_product,
    multiply,
    negative,
    subtract,
    total,
    up,
)
from gradcli.proofs.box_arithmetic import divide as quotient

# Above this number of boxes, which no one reads, one box around all of them is given.
_MOST = 3_000


def clusters(low: Any, high: Any, margin: Any) -> list[tuple[Any, Any]]:
    """The smallest boxes around the groups of boxes `[boxes, n]` that are at most a margin apart in each direction."""
    if not len(low):
        return []
    if len(low) > _MOST:
        return [(low.min(axis=0), high.max(axis=0))]
    waiting = np.ones(len(low), bool)
    found = []
    while waiting.any():
        first = int(waiting.argmax())
        waiting[first] = False
        least, most = low[first], high[first]
        while True:
            near = waiting & ((low <= most + margin) & (high >= least - margin)).all(axis=1)
            if not near.any():
                break
            waiting &= ~near
            least, most = np.minimum(least, low[near].min(axis=0)), np.maximum(most, high[near].max(axis=0))
        found.append((least, most))
    return _apart(found, margin)


def _apart(boxes: list[tuple[Any, Any]], margin: Any) -> list[tuple[Any, Any]]:
    """The boxes, joined where the boxes around groups touch each other."""
    while True:
        low, high = (np.array([box[k] for box in boxes]) for k in range(2))
        touch = ((low[:, None] <= high[None] + margin) & (high[:, None] >= low[None] - margin)).all(axis=2)
        pairs = np.argwhere(np.triu(touch, 1))
        if not len(pairs):
            return boxes
        i, j = (int(k) for k in pairs[0])
        joined = np.minimum(low[i], low[j]), np.maximum(high[i], high[j])
        boxes = [box for k, box in enumerate(boxes) if k not in (i, j)] + [joined]


class Contracted(NamedTuple):
    """Boxes `[boxes, n]` after a step; `empty` where there is no root in the box, `unique` where there is exactly one
    in the box before the step."""

    low: Any
    high: Any
    empty: Any
    unique: Any


def middle(low: Any, high: Any) -> Any:
    """A point in each box."""
    return np.clip(0.5 * low + 0.5 * high, low, high)


def contracted(low: Any, high: Any, point: Any, residual: BoxInterval, jacobian: BoxInterval, free: Any) -> Contracted:
    """One step for boxes `[boxes, n]`, with residuals `[boxes, n]` at points in them and Jacobians `[boxes, n, n]` over
    them.

    Where `free` `[boxes, n]` is false, the box is a point in that direction, and the equation of that number does not
    count. Without finite Jacobians boxes stay as they are.
    """
    boxes, n = low.shape
    both = free[:, :, None] & free[:, None, :]
    unit = np.eye(n)
    a_low, a_high = (np.where(both, end, unit) for end in (jacobian.low, jacobian.high))
    f_low, f_high = (np.where(free, end, 0.0) for end in (residual.low, residual.high))
    known = (np.isfinite(a_low) & np.isfinite(a_high)).all(axis=(1, 2)) & (
        np.isfinite(f_low) & np.isfinite(f_high)
    ).all(axis=1)
    new_low, new_high = low.copy(), high.copy()
    empty, unique = np.zeros(boxes, bool), np.zeros(boxes, bool)
    if not known.any():
        return Contracted(new_low, new_high, empty, unique)
    with np.errstate(all="ignore"):
        inverse = _inverses(0.5 * a_low[known] + 0.5 * a_high[known])
        found = _step(
            low[known], high[known], point[known], inverse, BoxInterval(f_low[known], f_high[known]),
            BoxInterval(a_low[known], a_high[known]),
        )  # fmt: skip
    new_low[known], new_high[known], empty[known], unique[known] = found
    return Contracted(new_low, new_high, empty, unique)


def _step(low: Any, high: Any, point: Any, inverse: Any, residual: BoxInterval, jacobian: BoxInterval) -> Contracted:
    n = low.shape[1]
    preconditioner = BoxInterval(inverse, inverse)
    matrix = matrix_product(preconditioner, jacobian)
    moved = matrix_product(preconditioner, residual)
    around = distances(low, high, point)
    rest = subtract(BoxInterval(np.eye(n)[None], np.eye(n)[None]), matrix)
    image = add(subtract(BoxInterval(point, point), moved), matrix_product(rest, around))
    wide = low < high
    inside = ((low < image.low) & (image.high < high)) | (~wide & (image.low <= high) & (image.high >= low))
    unique = inside.all(axis=1) & wide.any(axis=1)
    new_low, new_high = np.fmax(low, image.low), np.fmin(high, image.high)
    empty = (new_low > new_high).any(axis=1)
    for i in range(n):
        row = BoxInterval(matrix.low[:, i], matrix.high[:, i])
        terms = multiply(row, distances(new_low, new_high, point))
        terms.low[:, i] = terms.high[:, i] = 0.0
        off = add(BoxInterval(moved.low[:, i], moved.high[:, i]), total(terms, axis=0))
        diagonal = BoxInterval(row.low[:, i], row.high[:, i])
        regular = (diagonal.low > 0) | (diagonal.high < 0)
        step = negative(quotient(off, diagonal))
        target = add(BoxInterval(point[:, i], point[:, i]), step)
        least = np.where(regular, np.fmax(new_low[:, i], target.low), new_low[:, i])
        most = np.where(regular, np.fmin(new_high[:, i], target.high), new_high[:, i])
        empty |= least > most
        new_low[:, i], new_high[:, i] = np.where(empty, new_low[:, i], least), np.where(empty, new_high[:, i], most)
    return Contracted(np.where(empty[:, None], low, new_low), np.where(empty[:, None], high, new_high), empty, unique)


def _inverses(matrices: Any) -> Any:
    """Inverses of the matrices `[boxes, n, n]`; unit matrices where they are singular, which precondition nothing."""
    n = matrices.shape[1]
    try:
        found = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        # One singular matrix stops the others.
        regular = abs(np.linalg.det(matrices)) > 0
        found = np.broadcast_to(np.eye(n), matrices.shape).copy()
        try:
            found[regular] = np.linalg.inv(matrices[regular])
        except np.linalg.LinAlgError:
            return found
    bad = ~np.isfinite(found).all(axis=(1, 2))
    found[bad] = np.eye(n)
    return found


def mean_value(value: BoxInterval, slopes: BoxInterval, low: Any, high: Any, point: Any) -> BoxInterval:
    """The mean value form `[boxes, m]`: values at points, and slopes `[boxes, m, n]` times the distances from there."""
    around = distances(low, high, point)
    return add(value, total(multiply(slopes, BoxInterval(around.low[:, None, :], around.high[:, None, :])), axis=1))


def distances(low: Any, high: Any, point: Any) -> BoxInterval:
    """The distances of the ends of boxes from points in them; exactly 0 where an end is the point."""
    return BoxInterval(np.where(low == point, 0.0, down(low - point)), np.where(high == point, 0.0, up(high - point)))


def cut(low: Any, high: Any, point: Any, value: Any, slopes: BoxInterval, usable: Any) -> tuple[Any, Any, Any]:
    """Remove from boxes `[boxes, n]` parts in which a function is certainly above 0; return the ends, and a mask of the
    boxes of which nothing is left.

    `value` `[boxes]` is a lower bound at points, `slopes` `[boxes, n]` are the derivatives over the boxes. Boxes that
    are not `usable` stay as they are.
    """
    low, high = low.copy(), high.copy()
    value = BoxInterval(value, value)
    with np.errstate(all="ignore"):
        terms = multiply(slopes, distances(low, high, point))
        for i in range(low.shape[1]):
            others = BoxInterval(terms.low.copy(), terms.high.copy())
            others.low[:, i] = others.high[:, i] = 0.0
            # The slope times the distance is at most this.
            most = -add(value, total(others, axis=0)).low
            slope = BoxInterval(slopes.low[:, i], slopes.high[:, i])
            step = quotient(BoxInterval(most, most), slope)
            reached = add(BoxInterval(point[:, i], point[:, i]), step)
            known = usable & np.isfinite(most)
            rising, falling = known & (slope.low > 0), known & (slope.high < 0)
            high[:, i] = np.where(rising, np.fmin(high[:, i], reached.high), high[:, i])
            low[:, i] = np.where(falling, np.fmax(low[:, i], reached.low), low[:, i])
        whole = mean_value(
            BoxInterval(value.low[:, None], value.low[:, None]), BoxInterval(slopes.low[:, None], slopes.high[:, None]),
            low, high, point,
        )  # fmt: skip
    empty = (low > high).any(axis=1) | (usable & (whole.low[:, 0] > 0))
    return low, high, empty
