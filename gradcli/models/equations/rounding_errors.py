"""Whether equations have other values around a point than their rounding errors, without which 0 shows no root."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.models.equations.sign_changes import Crossing
from gradcli.models.equations.systems import System
from gradcli.models.equations.zeros import middle
from gradcli.models.second_runs import run_twice

# The share of a value that rounding errors are which hide how it changes.
_NOISE = 0.005
# How far around a point it is looked, as shares of the unknowns.
_SHARES = (0.1, 1e-3, 1e-6, 0.5)
# Along so many unknowns at most.
_MOST_DIRECTIONS = 10


def rounding_errors(system: System, point: Any) -> tuple[Any, Any]:
    """The residuals [n] at a point, and how far they are from those with other roundings, as far as that is known; nan
    where they have no value."""
    xp = arrays.numpy_namespace()
    found = run_twice(system.function, system.packing.named(point))
    if found is None:
        return system.residual(point), xp.zeros(system.packing.size)
    residuals, others = (xp.asarray(each, dtype=float) for each in found)
    return residuals, xp.abs(residuals - others)


def are_told(system: System, point: Any, start: Any) -> bool:
    """Whether along every unknown there are values on both sides of a point, nearby or as far as to its start, that are
    more than rounding errors; where there are no values on one side, on the other."""
    xp = arrays.numpy_namespace()
    sizes = [xp.where(size > 0.0, size, 1.0) for size in (xp.abs(point), xp.maximum(xp.abs(point), xp.abs(start)))]
    steps = [share * size for share, size in itertools.product(_SHARES, sizes)]
    return all(
        any(_are_told_beside(system, point, step * direction) for step in steps)
        for direction in xp.eye(len(point))[:_MOST_DIRECTIONS]
    )


def _are_told_beside(system: System, point: Any, step: Any) -> bool:
    sides = [_is_told_at(system, point + sign * step) for sign in (-1.0, 1.0)]
    return False not in sides and True in sides


def _is_told_at(system: System, point: Any) -> bool | None:
    """Whether an equation has a value at a point that is more than a rounding error, or all are exactly 0; None where they
    have no values."""
    values, errors = rounding_errors(system, point)
    if not arrays.numpy_namespace().isfinite(values).all():
        return None
    return bool((abs(values) > errors).any() or not (values.any() or errors.any()))


def is_noisy(system: System, x: float) -> bool:
    """Whether rounding errors are more than a small share of the value of one equation of one unknown."""
    values, errors = rounding_errors(system, arrays.numpy_namespace().asarray([x]))
    return bool(_NOISE * abs(values[0]) <= errors[0])


def told(system: System, crossings: Sequence[Crossing], low: float, high: float) -> list[Crossing]:
    """Changes of sign, and stretches of zeros, of one equation in a range; those that are nothing but rounding errors as
    such, where they are next to each other as one."""
    found: list[Crossing] = []
    for crossing in crossings:
        if crossing.kind != "coarse" and not _is_told(system, crossing, max(abs(low), abs(high))):
            end = crossing.point if crossing.end is None else crossing.end
            begin = found.pop().point if found and found[-1].kind == "rounded" else crossing.point
            found.append(Crossing(begin, "rounded", end))
        else:
            found.append(crossing)
    return found


def _is_told(system: System, crossing: Crossing, reach: float) -> bool:
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        if crossing.end is None:
            return are_told(system, xp.asarray([crossing.point]), xp.asarray([reach]))
        return not rounding_errors(system, xp.asarray([middle(crossing.point, crossing.end)]))[1].any()
