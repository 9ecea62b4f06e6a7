"""Decides whether values of equations around a point are more than rounding errors; only then does a residual of 0
show a root."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.models.equations.sign_changes import SignChange, middle
from gradcli.models.equations.systems import EquationSystem
from gradcli.models.perturbed_runs import run_twice

# Rounding errors of at least this share of a value hide how the value changes.
_NOISE = 0.005
# The distances from a point at which values are tested, as shares of the unknowns.
_RELATIVE_DISTANCES = (0.1, 1e-3, 1e-6, 0.5)
# Upper bound of the unknowns along which values are tested.
_MOST_DIRECTIONS = 10


def rounding_errors(system: EquationSystem, point: Any) -> tuple[Any, Any]:
    """The residuals `[n]` at a point, nan where they have no value, and the rounding-error estimate `[n]` of each: its
    difference from a second run with other rounding errors, or 0 where there is no second run."""
    xp = arrays.numpy_namespace()
    found = run_twice(system.function, system.packing.named(point))
    if found is None:
        return system.residual(point), xp.zeros(system.packing.size)
    residuals, others = map(system.flat_residual, found)
    return residuals, xp.abs(residuals - others)


def exceeds_rounding(system: EquationSystem, point: Any, start: Any) -> bool:
    """Return whether, along every unknown, values on both sides of a point exceed their rounding errors, nearby or as
    far as to the start. Where one side has no values, the other one suffices."""
    xp = arrays.numpy_namespace()
    sizes = [xp.where(size > 0.0, size, 1.0) for size in (xp.abs(point), xp.maximum(xp.abs(point), xp.abs(start)))]
    steps = [share * size for share, size in itertools.product(_RELATIVE_DISTANCES, sizes)]
    return all(
        any(_exceed_rounding_beside(system, point, step * direction) for step in steps)
        for direction in xp.eye(len(point))[:_MOST_DIRECTIONS]
    )


def _exceed_rounding_beside(system: EquationSystem, point: Any, step: Any) -> bool:
    sides = [_exceeds_rounding_at(system, point + sign * step) for sign in (-1.0, 1.0)]
    return False not in sides and True in sides


def _exceeds_rounding_at(system: EquationSystem, point: Any) -> bool | None:
    """Return whether a residual at a point exceeds its rounding error, or all residuals are exactly 0; None where they
    have no values."""
    values, errors = rounding_errors(system, point)
    if not arrays.numpy_namespace().isfinite(values).all():
        return None
    return bool((abs(values) > errors).any() or not (values.any() or errors.any()))


def is_noisy(system: EquationSystem, x: float) -> bool:
    """Return whether the rounding error of one equation in one unknown is more than a small share of its value."""
    values, errors = rounding_errors(system, arrays.numpy_namespace().asarray([x]))
    return bool(_NOISE * abs(values[0]) <= errors[0])


def with_rounded_marked(
    system: EquationSystem, crossings: Sequence[SignChange], low: float, high: float
) -> list[SignChange]:
    """The crossings of one equation in a range, in which those that are only rounding errors have the kind `rounded`;
    adjacent ones of these are joined."""
    found: list[SignChange] = []
    for crossing in crossings:
        if crossing.kind != "coarse" and not _changes_beyond_rounding(system, crossing, max(abs(low), abs(high))):
            end = crossing.point if crossing.end is None else crossing.end
            begin = found.pop().point if found and found[-1].kind == "rounded" else crossing.point
            found.append(SignChange(begin, "rounded", end))
        else:
            found.append(crossing)
    return found


def _changes_beyond_rounding(system: EquationSystem, crossing: SignChange, reach: float) -> bool:
    xp = arrays.numpy_namespace()
    with arrays.quiet():
        if crossing.end is None:
            return exceeds_rounding(system, xp.asarray([crossing.point]), xp.asarray([reach]))
        return not rounding_errors(system, xp.asarray([middle(crossing.point, crossing.end)]))[1].any()
