"""The time at which a condition is met along a solution, and its derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gradcli.errors import DifferentiationError, EvaluationError
from gradcli.models.ode.expansions import Array, Expansion, constants
from gradcli.models.ode.row_functions import RowFunctions
from gradcli.models.ode.trajectories import Trajectories

# The number of places at which a condition is examined, at least, and the bisections that follow.
_EXAMINED, _NEWTON = 1000, 40
# A condition is 0 up to this part of what it is made of, and is examined so close before its time, as a part of the lapse.
_ZERO, _BEFORE = 1e-8, 1e-10


class Met(NamedTuple):
    """Where a condition is met: the time `[1]`, and the states `[n]` there, with total derivatives."""

    time: Expansion
    states: Expansion


def met(
    trajectories: Trajectories, condition: RowFunctions, values: Mapping[str, float], times: Array, order: int
) -> Met | None:
    """Where a condition becomes 0 first, after the first time; None where it does not."""
    if len(times) < 2:
        return None
    between = max(1, -(-_EXAMINED // max(1, len(times) - 1)))
    fine = np.unique(np.concatenate([np.linspace(a, b, between + 1) for a, b in itertools.pairwise(times)]))
    if times[-1] < times[0]:
        fine = fine[::-1]
    states = trajectories.at(values, fine, 0)
    found = condition.at(trajectories.along(fine, states, values).value, 0).value[:, 0]
    signs = np.sign(found)
    # A condition that holds at the start is met again later.
    changed = np.flatnonzero((signs[1:] == 0) | (signs[1:] * signs[:-1] < 0))
    if not len(changed):
        return None
    low, high = float(fine[changed[0]]), float(fine[changed[0] + 1])
    time = _refined(trajectories, condition, values, (float(times[0]), low, high), found[changed[0]])
    return _expanded(trajectories, condition, values, (float(times[0]), time), order)


def _refined(
    trajectories: Trajectories,
    condition: RowFunctions,
    values: Mapping[str, float],
    bracket: tuple[float, float, float],
    below: float,
) -> float:
    """The time between two times at which the condition has different signs, by Newton's method and bisection."""
    start, low, high = bracket
    time = (low + high) / 2
    for _ in range(_NEWTON):
        point, rates = _here(trajectories, values, start, time)
        here = condition.at(point.value, 1)
        value = float(here.value[0])
        if value == 0:
            return time
        low, high = (time, high) if np.sign(value) == np.sign(below) else (low, time)
        n = len(rates)
        slope = float(here.first[0, 0] + here.first[0, 1 : 1 + n] @ rates)
        following = time - value / slope if slope else low
        if not min(low, high) < following < max(low, high):
            following = (low + high) / 2
        if abs(following - time) <= 4e-16 * max(abs(time), abs(high - low)):
            return following
        time = following
    return time


def _here(
    trajectories: Trajectories, values: Mapping[str, float], start: float, time: float
) -> tuple[Expansion, Array]:
    """The values of all names at a time, and the rates of the states."""
    states = trajectories.at(values, np.array([start, time]), 0).taken(slice(1, 2))
    point = trajectories.along(np.array([time]), states, values).taken(0)
    return point, trajectories.rates.at(point.value, 0).value


def _expanded(
    trajectories: Trajectories,
    condition: RowFunctions,
    values: Mapping[str, float],
    ends: tuple[float, float],
    order: int,
) -> Met:
    """The time and the states with derivatives, by the implicit function theorem."""
    start, time = ends
    times = np.array([start, time])
    states = trajectories.at(values, times, order).taken(slice(1, 2))
    point = trajectories.along(times[1:], states, values).taken(0)
    if not order:
        return Met(Expansion(times[1:]), states.taken(0))
    q, n = len(trajectories.wrt), len(trajectories.equations.states)
    rate = trajectories.rates.at(point.value, order)
    # By the variables and by time, which is the last one.
    widened = _with_time(point, rate, n, q)
    here = condition.at(widened.value, order)
    found = here.of(widened)
    slope = found.first[0, q]
    if slope == 0:
        raise EvaluationError(f"the condition touches 0 at {time:.8g}, and this time has no derivatives")
    earlier, _ = _here(trajectories, values, start, time - _BEFORE * (time - start))
    residual = max(abs(here.value[0]), abs(condition.at(earlier.value, 0).value[0]))
    if residual > _ZERO * (abs(slope * (time - start)) + np.abs(here.first[0] * point.value).sum()):
        raise DifferentiationError(
            f"the condition jumps over 0 at {time:.8g}, and the derivatives of this time are not known",
            hint="leave out --wrt",
        )
    first = -found.first[0, :q] / slope
    inner = constants(np.zeros(q + 1), q, order)
    inner.first[:q] = np.eye(q)
    inner.first[q] = first
    if found.second is not None and inner.second is not None:
        inner.second[q] = -(inner.first.T @ found.second[0] @ inner.first) / slope
    whole = widened.of(inner)
    return Met(whole.taken(slice(0, 1)), whole.taken(slice(1, 1 + n)))


def _with_time(point: Expansion, rate: Expansion, n: int, q: int) -> Expansion:
    """The names at a time that is a variable too."""
    size = len(point.value)
    first = np.zeros((size, q + 1))
    first[:, :q] = point.first
    first[0, q] = 1.0
    first[1 : 1 + n, q] = rate.value
    if point.second is None:
        return Expansion(point.value, first)
    second = np.zeros((size, q + 1, q + 1))
    second[:, :q, :q] = point.second
    # How the rates change with the variables, and along the solution.
    changes = rate.first @ first
    second[1 : 1 + n, q, :] = changes
    second[1 : 1 + n, :, q] = changes
    return Expansion(point.value, first, second)
