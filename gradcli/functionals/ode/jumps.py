"""What happens to the derivatives of a solution where its right side jumps.

If the time of the jump moves with a parameter, dtau, the derivative of the solution jumps by (f_before - f_after)*dtau
(E. Hairer, S. Nørsett and G. Wanner, "Solving Ordinary Differential Equations I", chapter II.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.functionals.body import values
from gradcli.functionals.ode.progress import Problem
from gradcli.functionals.ode.smooth_pieces import crossings, has_moving_switches, switching
from gradcli.functionals.ode.system import System
from gradcli.kinds.jets import Jet
from gradcli.program.ir import Program


def after_jump(
    problem: Problem, time: float, states: Sequence[float], before: Sequence[float], after: Sequence[float]
) -> Sequence[float]:
    """The states after a switch, from those before and the slopes on both sides.

    Raises DifferentiationError for derivatives of higher order whose jumps are not known.
    """
    system = problem.system
    if not system.is_derivative:
        return states
    base = system.base or system
    if system.labels and base is not system.origin:
        # Derivatives by two ways, which are of order 2 at least.
        if has_moving_switches((system.origin or system).body):
            raise _unknown()
        return states
    crossing = crossings(base.body.program, switching(base.body.program, 1 + base.states))
    count = base.states
    place = [time, *states[:count], *problem.given]
    moves = [Jet([t, 1.0], 1) for t in [time]] + [Jet([y, f], 1) for y, f in zip(states, before[:count])]
    nearest, speed = _nearest(crossing, place, [*moves, *problem.given])
    shifts = _shifts(system, crossing, nearest, place, states)
    if not any(shifts):
        return states
    if system.blocks > 2 or any(len(by) > 1 for _, by in system.labels):
        raise _unknown()
    found = [*states]
    half = system.states // 2
    labels = system.labels or [(i % half, (0,) if i >= half else ()) for i in range(system.states)]
    for k, (i, by) in enumerate(labels):
        if by:
            found[k] += (before[i] - after[i]) * -shifts[by[0]] / speed
    return found


def _unknown() -> DifferentiationError:
    return DifferentiationError(
        "second derivatives are not known where the right side switches at a time that depends on what is varied"
    )


def _nearest(crossing: Program, place: Sequence[Any], moving: Sequence[Any]) -> tuple[int, float]:
    """The number of the switch that is nearest in time, and the derivative by time of what is 0 there."""
    with arrays.using_namespace(None), arrays.quiet():
        series = values(crossing, moving)
    best = None
    for number, jet in enumerate(series):
        speed = _slope(jet)
        if speed:
            distance = abs(_inner(jet) / speed)
            if best is None or distance < best[0]:
                best = distance, number, speed
    if best is None:
        raise DifferentiationError("the solution touches a place where its right side switches")
    return best[1:]


def _shifts(
    system: System, crossing: Program, number: int, place: Sequence[float], states: Sequence[float]
) -> list[float]:
    """The derivatives of what is 0 at a switch by the given values."""
    base = system.base or system
    time, given = place[0], place[1 + base.states :]
    found = []
    with arrays.using_namespace(None), arrays.quiet():
        if not system.labels:
            # States and given values are coefficients of series: those of order 1 are the derivatives.
            order = len(states) // system.blocks
            reads = len(given) // system.blocks
            jets = [Jet([y, states[order + i]], 1) if i < order else y for i, y in enumerate(states)]
            varied = [Jet([g, given[reads + i]], 1) if i < reads else g for i, g in enumerate(given)]
            return [_slope(values(crossing, [time, *jets, *varied])[number])]
        place_of = {label: k for k, label in enumerate(system.labels)}
        for p in range(len(given)):
            jets = [Jet([states[i], states[place_of[i, (p,)]]], 1) for i in range(base.states)]
            varied = [Jet([g, 1.0], 1) if k == p else g for k, g in enumerate(given)]
            found.append(_slope(values(crossing, [time, *jets, *varied])[number]))
    return found


def _slope(value: Any) -> float:
    found = value.coefficient(1) if isinstance(value, Jet) else None
    return 0.0 if found is None else float(found)


def _inner(value: Any) -> float:
    return float(value.inner if isinstance(value, Jet) else value)
