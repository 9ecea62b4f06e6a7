"""Taylor's method: steps of high order and of the length that the coefficients of the solution allow.

Order and length are those of À. Jorba and M. Zou, "A software package for the numerical integration of ODEs by means of
high-order Taylor methods", Experimental Mathematics 14 (2005), 99.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gradcli import limits
from gradcli.errors import EvaluationError
from gradcli.functionals.ode.recurrences import order_for

# The part of the tolerance that a step may use.
_SHARE = 1e-3
_LEAST_TOLERANCE = 2.0**-53
# Bounds on the number of steps, and on the length of one, relative to the time that it starts from.
_MOST_STEPS = 100_000
_SHORTEST = 1e-13
# A solution beyond this size, or a step that short, is on its way to infinity.
_HUGE = 1e100

# From the order, the time, and the states, the coefficients of each state.
Expansion = Callable[[int, float, Sequence[float]], Sequence[Sequence[float]]]


def trajectory(
    expansion: Expansion, start: Sequence[float], times: Sequence[float], groups: Sequence[Sequence[int]], rtol: float
) -> list[list[float]]:
    """The states at `times`, which are in order and on one side of 0; the states of each of `groups` have one scale."""
    tolerance = max(rtol * _SHARE, _LEAST_TOLERANCE)
    order = order_for(tolerance)
    time, states = 0.0, [*start]
    found: list[list[float]] = []
    while len(found) < len(times) and times[len(found)] == 0.0:
        found.append(states)
    steps = 0
    while len(found) < len(times):
        left = times[-1] - time
        try:
            series = expansion(order, time, states)
        except (ArithmeticError, ValueError):
            raise EvaluationError(f"the right side has no value, or no derivative, at t = {time:.6g}") from None
        length = step_length(series, order, groups)
        if not length > _SHORTEST * abs(time):
            raise EvaluationError(f"the solution leaves to infinity at t = {time:.8g}")
        limits.charge_steps(len(series) * order)
        last = not length < abs(left)
        step = left if last else math.copysign(length, left)
        end = times[-1] if last else time + step
        while len(found) < len(times) and (last or abs(times[len(found)]) <= abs(end)):
            found.append(values_at(series, times[len(found)] - time))
        time, states = end, values_at(series, step)
        steps += 1
        if steps > _MOST_STEPS:
            raise EvaluationError(f"the solution takes more than {_MOST_STEPS:,} steps; it came to t = {time:.6g}")
    return found


def values_at(series: Sequence[Sequence[float]], step: float) -> list[float]:
    """The sums of power series."""
    found = []
    for coefficients in series:
        total = 0.0
        for c in reversed(coefficients):
            total = total * step + c
        found.append(total)
    return found


def step_length(series: Sequence[Sequence[float]], order: int, groups: Sequence[Sequence[int]]) -> float:
    """The length of a step, infinite if the series end."""
    shortest = math.inf
    for group in groups:
        shortest = min(shortest, _length_of_group([series[i] for i in group], order, shortest))
    return shortest


def _length_of_group(series: Sequence[Sequence[float]], order: int, longest: float) -> float:
    size = max(abs(s[0]) for s in series)
    # States that begin with 0 have the size that they come to.
    if longest < math.inf:
        size = max(size, *(abs(s[1]) * longest for s in series), *(abs(s[2]) * longest**2 for s in series))
    elif size == 0.0:
        size = max(max(abs(s[1]) for s in series), 1e-14)
    radius = math.inf
    for j in (order - 1, order):
        largest = max(abs(s[j]) for s in series)
        if largest:
            radius = min(radius, (size / largest) ** (1 / j)) if size else radius
        if largest != largest:
            return 0.0
    return radius * math.exp(-2 - 0.7 / (order - 1))
