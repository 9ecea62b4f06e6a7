"""What happens to the derivatives of a solution where its right side jumps.

If the time of the jump moves with a parameter, dtau, the derivative of the solution jumps by (f_before - f_after)*dtau
(E. Hairer, S. Nørsett and G. Wanner, "Solving Ordinary Differential Equations I", chapter II.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.executors import stepwise
from gradcli.functionals.ode.progress import Problem
from gradcli.functionals.ode.smooth_pieces import crossings, switching
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
    crossing = crossings(base.body.program, switching(base.body.program, 1 + base.states))
    count = base.states
    place = [time, *states[:count], *problem.given]
    moves = [Jet([t, 1.0], 1) for t in [time]] + [Jet([y, f], 1) for y, f in zip(states, before[:count])]
    nearest, speed = _nearest(crossing, place, [*moves, *problem.given])
    shifts = _shifts(system, crossing, nearest, place, states)
    if not any(shifts):
        return states
    if system.blocks > 1 or any(len(by) > 1 for _, by in system.labels):
        raise DifferentiationError(
            "second derivatives are not known where the right side switches at a time that depends on what is varied"
        )
    found = [*states]
    for k, (i, by) in enumerate(system.labels):
        if by:
            found[k] += (before[i] - after[i]) * -shifts[by[0]] / speed
    return found


def _nearest(crossing: Program, place: Sequence[Any], moving: Sequence[Any]) -> tuple[int, float]:
    """The number of the switch that is nearest in time, and the derivative by time of what is 0 there."""
    with arrays.using_namespace(None), arrays.quiet():
        series = stepwise.outputs(crossing, moving)
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
            # States and given values are coefficients of series. Where those of what is 0 are 0, the time is fixed.
            order, blocks = system.blocks - 1, system.blocks
            count, reads = len(states) // blocks, len(given) // blocks
            curve: list[Any] = [Jet([*states[i::count]], order) for i in range(count)] + [0.0] * (len(states) - count)
            curve += [Jet([*given[i::reads]], order) for i in range(reads)] + [0.0] * (len(given) - reads)
            series = stepwise.outputs(crossing, [time, *curve])[number]
            return [_coefficient(series, k) for k in range(1, blocks)]
        place_of = {label: k for k, label in enumerate(system.labels)}
        for p in range(len(given)):
            jets = [Jet([states[i], states[place_of[i, (p,)]]], 1) for i in range(base.states)]
            varied = [Jet([g, 1.0], 1) if k == p else g for k, g in enumerate(given)]
            found.append(_slope(stepwise.outputs(crossing, [time, *jets, *varied])[number]))
    return found


def _slope(value: Any) -> float:
    return _coefficient(value, 1)


def _coefficient(value: Any, k: int) -> float:
    found = value.coefficient(k) if isinstance(value, Jet) else None
    return 0.0 if found is None else float(found)


def _inner(value: Any) -> float:
    return float(value.inner if isinstance(value, Jet) else value)
