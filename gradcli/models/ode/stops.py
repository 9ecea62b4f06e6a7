"""The time at which a condition is met along a solution, and its derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.errors import DifferentiationError, EvaluationError, GradcliError
from gradcli.language.differential_equations import DifferentialEquations, read_differential_equations
from gradcli.models.ode.row_functions import Array, RowFunctions, ValueExpansion
from gradcli.models.ode.trajectories import Trajectories, with_variables
from gradcli.named_tuples import NamedTuple

# The number of places at which a condition is examined, at least, and the bisections that follow.
_EXAMINED, _NEWTON = 1000, 40
# A condition is 0 up to the first part of what it is made of, and is examined at the other two, as parts of the lapse,
# before its time.
_ZERO, _BEFORE, _FAR = 1e-8, 1e-10, 1e-3
# A condition touches 0 where its slope is this part of that at the farther place: a double root is found to half of the
# digits.
_FLAT = 1e-3
# The slope of the time that a condition has one sign, so small that it is nothing beside other states.
_TINY = 1e-60
# The number of parts that an interval in which a condition becomes 0 and returns is divided into, and how often that is
# done until the interval is a point.
_PARTS, _DIVISIONS = 100, 7


class Met(NamedTuple):
    """The place at which a condition is met: the time `[1]`, and the states `[n]` there, with total derivatives; or
    where it jumps over 0."""

    time: ValueExpansion
    states: ValueExpansion
    jumps: bool


class SignTimes:
    """The times for which a condition has each sign along a solution: two more states, whose right sides are stepped
    onto where they jump. The steps are as rigorous as the first root of a polynomial, so that the condition is
    examined everywhere."""

    def __init__(
        self, equations: DifferentialEquations, condition: str, shared: Mapping[str, Any], method: str
    ) -> None:
        self._names = ["above0", "below0"]
        while any(name in equations.source + condition for name in self._names):
            self._names = [f"{name}0" for name in self._names]
        rates = [f"{n}' = where(({condition}) {s} 0, {_TINY}, 0)" for n, s in zip(self._names, "><")]
        self._trajectories: Trajectories | None = None
        try:
            widened = read_differential_equations("\n".join([equations.source, *rates]))
            self._trajectories = Trajectories(widened, (), shared, method)
        except GradcliError:
            pass

    def both(self, values: Mapping[str, float], times: Array) -> Array | None:
        """Return whether the condition had both signs up to each of the times after the first one; None where that is
        unknown."""
        if self._trajectories is None:
            return None
        try:
            found = self._trajectories.at({**values, **dict.fromkeys(self._names, 0.0)}, times, 0).value
        except GradcliError:
            # The caller examines places along the solution itself, which tells what is wrong with that.
            return None
        numbers = [self._trajectories.equations.states.index(name) for name in self._names]
        return np.all(found[:, numbers] != 0, axis=1)


def met(
    trajectories: Trajectories,
    condition: RowFunctions,
    signs: SignTimes,
    values: Mapping[str, float],
    times: Array,
    order: int,
) -> Met | None:
    """The first place after the first time at which a condition becomes 0; None if there is none."""
    if len(times) < 2:
        return None
    between = max(1, -(-_EXAMINED // max(1, len(times) - 1)))
    fine = np.unique(np.concatenate([np.linspace(a, b, between + 1) for a, b in itertools.pairwise(times)]))
    if times[-1] < times[0]:
        fine = fine[::-1]
    start, time = float(times[0]), None
    bracket = _first_change(trajectories, condition, signs, values, fine)
    for _ in range(_DIVISIONS):
        if bracket is None:
            break
        if bracket.below * bracket.beyond < 0 or bracket.beyond == 0:
            time = _refined(trajectories, condition, values, (start, bracket.low, bracket.high), bracket.below)
            before = time - _BEFORE * (time - start)
            both = signs.both(values, np.array([start, before]))
            if both is None or not both[1]:
                break
            # It is 0 more than once between the two places.
            bracket = bracket._replace(high=before)
        finer = np.linspace(bracket.low, bracket.high, _PARTS + 1)
        bracket = _first_change(
            trajectories, condition, signs, values, finer if finer[0] == start else np.array([start, *finer])
        )
    if time is None:
        return None
    return _expanded(trajectories, condition, values, (float(times[0]), time), order)


class _Bracket(NamedTuple):
    """Two times between which a condition becomes 0, and its values there."""

    low: float
    high: float
    below: float
    beyond: float


def _first_change(
    trajectories: Trajectories, condition: RowFunctions, signs: SignTimes, values: Mapping[str, float], times: Array
) -> _Bracket | None:
    """The first two of some times between which the condition becomes 0, the first one of which is the start."""
    states = trajectories.at(values, times, 0)
    found = condition.at(trajectories.along(times, states, values).value, 0).value[:, 0]
    sign = np.sign(found)
    # A condition that holds at the start is met again later.
    changes = (sign[1:] == 0) | (sign[1:] * sign[:-1] < 0)
    # What matters is whether the condition is 0 and returns before the first change that these places show.
    until = int(np.argmax(changes)) + 2 if changes.any() else len(times)
    both = signs.both(values, times[:until])
    if both is not None:
        changes[: until - 1] |= both[1:]
    if not changes.any():
        return None
    i = int(np.argmax(changes))
    return _Bracket(float(times[i]), float(times[i + 1]), float(found[i]), float(found[i + 1]))


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
        slope = _along(here, rates)
        following = time - value / slope if slope else low
        if not min(low, high) < following < max(low, high):
            following = (low + high) / 2
        if abs(following - time) <= 4e-16 * max(abs(time), abs(high - low)):
            return following
        time = following
    return time


def _here(
    trajectories: Trajectories, values: Mapping[str, float], start: float, time: float
) -> tuple[ValueExpansion, Array]:
    """The values of all names at a time, and the rates of the states."""
    states = trajectories.at(values, np.array([start, time]), 0).taken(slice(1, 2))
    point = trajectories.along(np.array([time]), states, values).taken(0)
    return point, trajectories.rates.at(point.value, 0).value


def _slope(
    trajectories: Trajectories, condition: RowFunctions, values: Mapping[str, float], start: float, time: float
) -> float:
    """The derivative of a condition by the time, along the solution."""
    point, rates = _here(trajectories, values, start, time)
    return _along(condition.at(point.value, 1), rates)


def _along(found: ValueExpansion, rates: Array) -> float:
    """The total derivative by the time of a value with derivatives by the time and the states, which have `rates`."""
    return float(found.first[0, 0] + found.first[0, 1 : 1 + len(rates)] @ rates)


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
    jumps = _jumps(trajectories, condition, values, ends, point.value)
    if not order:
        return Met(ValueExpansion(times[1:]), states.taken(0), jumps)
    if jumps:
        raise DifferentiationError(
            f"the condition jumps over 0 at {time:.8g}, and the derivatives of this time are not known",
            hint="leave out --wrt",
        )
    q, n = len(trajectories.wrt), len(trajectories.equations.states)
    widened = trajectories.with_time(point)
    found = condition.at(widened.value, order).of(widened)
    slope = found.first[0, q]
    if abs(slope) <= _FLAT * abs(_slope(trajectories, condition, values, start, time - _FAR * (time - start))):
        raise EvaluationError(f"the condition touches 0 at {time:.8g}, and this time has no derivatives")
    lapse = ValueExpansion(np.zeros(1), -found.first[:, :q] / slope)
    if found.second is not None:
        first = with_variables(lapse).first
        lapse = lapse._replace(second=-(first.T @ found.second @ first) / slope)
    inner = with_variables(lapse)
    whole = widened.of(inner)
    return Met(whole.taken(slice(0, 1)), whole.taken(slice(1, 1 + n)), jumps)


def _jumps(
    trajectories: Trajectories,
    condition: RowFunctions,
    values: Mapping[str, float],
    ends: tuple[float, float],
    point: Array,
) -> bool:
    """Return whether a condition is not 0 at a point on both sides of which it has different signs."""
    start, time = ends
    here, rates = condition.at(point, 1), trajectories.rates.at(point, 0).value
    slope = _along(here, rates)
    earlier, farther = (
        abs(condition.at(_here(trajectories, values, start, time - part * (time - start))[0].value, 0).value[0])
        for part in (_BEFORE, _FAR)
    )
    size = abs(slope * (time - start)) + np.abs(here.first[0] * point).sum() + farther
    return bool(max(abs(here.value[0]), earlier) > _ZERO * size)
