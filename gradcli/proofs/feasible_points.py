"""Points that meet conditions, which is proved.

Inequalities hold where their values over a box around the point are at most 0. Equations are solved for as many of the
variables: by Krawczyk's operator there is exactly one solution in a small box, and that box is what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.named_tuples import NamedTuple
from gradcli.proofs.box_arithmetic import BoxInterval
from gradcli.proofs.box_programs import BoxProgram
from gradcli.proofs.newton_contraction import contracted

# The distances, relative to the change that a condition makes over the variables' sizes, at which active inequalities are
# to hold: the first that can be proved is the best.
_INSIDE = (0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)
# An inequality counts as active within this distance, relative to the same.
_ACTIVE = 1e-5
_NEWTON_STEPS = 8
# The half widths of boxes in which a solution is looked for, relative to the variables.
_AROUND = (1e-14, 1e-12, 1e-10, 1e-8)
# A variable is at a bound within this distance, relative to its size.
_AT_BOUND = 1e-6


class Condition(NamedTuple):
    """A program whose elements are 0 at feasible points where it `is_equation`, and at most 0 there elsewhere."""

    program: BoxProgram
    is_equation: bool


def holds(program: BoxProgram, low: Any, high: Any, *, strictly: bool = False) -> Any:
    """Return a mask of the boxes in which all elements are certainly defined and at most 0, or `strictly` below 0."""
    found = program.values(low, high)
    # In a point, a number is nan where it is not defined, and is compared at a kink too.
    defined = found.smooth | (low == high).all(axis=1)
    return defined & ((found.high < 0) if strictly else (found.high <= 0)).all(axis=1)


class _Residuals(NamedTuple):
    """Residuals `[points, m]` and their derivatives `[points, m, n]`."""

    value: Any
    slopes: Any


def feasible_boxes(
    conditions: Sequence[Condition], low: Any, high: Any, fixed: Any, point: Any
) -> Iterator[tuple[Any, Any]]:
    """Small boxes next to a point that contain a feasible point each; those with the least distance from the conditions
    come first. Variables that are `fixed` keep their values."""
    is_equation = np.concatenate([np.full(each.program.count, each.is_equation) for each in conditions])
    size = np.minimum(np.maximum(abs(point), 1.0), high - low)
    at_bounds = np.where(point - low <= _AT_BOUND * size, low, np.where(high - point <= _AT_BOUND * size, high, point))
    starts = [np.where(fixed, point, at_bounds), point]
    points = [_corrected(conditions, low, high, fixed, start, is_equation) for start in starts]
    # At a vertex of the whole box there may be no room for a box around a solution, but next to it.
    points.append(_corrected(conditions, low, high, fixed, point, is_equation, within=size))
    inequalities = [each.program for each in conditions if not each.is_equation]
    for row in np.concatenate(points):
        box = (row, row) if not is_equation.any() else _solved(conditions, low, high, fixed, row)
        if box is not None and all(holds(each, box[0][None], box[1][None])[0] for each in inequalities):
            yield box


def _corrected(
    conditions: Sequence[Condition],
    low: Any,
    high: Any,
    fixed: Any,
    point: Any,
    is_equation: Any,
    *,
    within: Any = None,
) -> Any:
    """Points `[k, n]` at which the equations hold nearly, and the active inequalities with the distances `_INSIDE`.
    Variables at bounds stay there, or with `within`, sizes `[n]`, are inside by distances relative to these."""
    free = ~fixed & (low < high)
    distance = np.array(_INSIDE if within is None else _INSIDE[1:])[:, None]
    margin = 0.0 if within is None else np.where(free, distance * within, 0.0)
    least, most = low + margin, high - margin
    points = np.clip(np.repeat(point[None], len(distance), axis=0), least, most)
    sizes = np.maximum(abs(point), 1e-3 * np.minimum(high - low, 1.0))
    first = _residuals(conditions, point[None])
    reach = (abs(first.slopes[0]) * sizes).sum(axis=1)
    active = is_equation | (first.value[0] > -_ACTIVE * reach)
    target = np.where(is_equation, 0.0, -distance * reach)[:, active]
    blocked = (points <= low) | (points >= high)
    for _ in range(_NEWTON_STEPS):
        found = _residuals(conditions, points)
        missing = target - found.value[:, active]
        # An inequality may be further inside.
        missing = np.where(is_equation[active], missing, np.minimum(missing, 0.0))
        if not (np.isfinite(missing).all() and np.isfinite(found.slopes).all()):
            return point[None]
        movable = free & ~blocked
        scaled = found.slopes[:, active] * (sizes * movable)[:, None]
        try:
            step = np.einsum("bij,bj->bi", np.linalg.pinv(scaled, rcond=1e-11), missing)
        except np.linalg.LinAlgError:
            return point[None]
        moved = points + sizes * movable * step
        # Coordinates that reach a bound stay there, and the others move on.
        blocked |= (moved < least) | (moved > most)
        points = np.clip(moved, least, most)
    return points


def _residuals(conditions: Sequence[Condition], points: Any) -> _Residuals:
    values = [each.program.values(points, points) for each in conditions]
    slopes = [each.program.first_derivatives(points, points) for each in conditions]
    return _Residuals(
        *(np.concatenate([0.5 * p.low + 0.5 * p.high for p in parts], axis=1) for parts in (values, slopes))
    )


def _solved(conditions: Sequence[Condition], low: Any, high: Any, fixed: Any, point: Any) -> tuple[Any, Any] | None:
    """A box in which the equations have exactly one solution with the other variables as they are."""
    from scipy.linalg import qr

    equations = [each for each in conditions if each.is_equation]
    slopes = _residuals(equations, point[None]).slopes[0]
    room = np.minimum(np.minimum(point - low, high - point), np.maximum(abs(point), 1e-3))
    weighted = np.where(fixed, 0.0, slopes * np.maximum(room, 0.0))
    # Equations between variables that stay where they are have no unknown, and must hold as they are.
    solved = np.flatnonzero(weighted.any(axis=1))
    count = len(solved)
    if count > (room > 0).sum() or not np.isfinite(weighted).all():
        return None
    dependent = qr(weighted[solved], mode="r", pivoting=True)[1][:count] if count else np.zeros(0, int)
    for share in _AROUND:
        around = share * np.maximum(abs(point[dependent]), 1e-6)
        least, most = point.copy(), point.copy()
        least[dependent] -= around
        most[dependent] += around
        if (least < low).any() or (most > high).any():
            return None
        values = [each.program.values(point[None], point[None]) for each in equations]
        whole = [each.program.values(least[None], most[None]) for each in equations]
        first = [each.program.first_derivatives(least[None], most[None]) for each in equations]
        if not all(part.smooth.all() for part in (*values, *whole, *first)):
            return None
        exact = [np.delete(np.concatenate([p[k] for p in whole], axis=1), solved) for k in range(2)]
        if any(end.any() for end in exact):
            return None
        if not count:
            return least, most
        residual = BoxInterval(*(np.concatenate([p[k] for p in values], axis=1)[:, solved] for k in range(2)))
        jacobian = BoxInterval(
            *(np.concatenate([p[k] for p in first], axis=1)[:, solved][:, :, dependent] for k in range(2))
        )
        found = contracted(
            least[None, dependent], most[None, dependent], point[None, dependent], residual, jacobian,
            np.ones((1, count), bool),
        )  # fmt: skip
        if found.unique[0]:
            least[dependent], most[dependent] = found.low[0], found.high[0]
            return least, most
    return None
