"""Taylor's method: steps of high order and of the length that the coefficients of the solution allow.

Order and length are those of À. Jorba and M. Zou, "A software package for the numerical integration of ODEs by means of
high-order Taylor methods", Experimental Mathematics 14 (2005), 99.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradcli import limits
from gradcli.functionals.ode.progress import NoStepError, Problem, Progress
from gradcli.functionals.ode.recurrences import order_for

# The part of the tolerance that a step may use.
_SHARE = 1e-3
_LEAST_TOLERANCE = 2.0**-53
# A step is at most this part of the whole time: the coefficients of a peak far away are 0.
_LONGEST = 1 / 8
# The difference of the derivative at the end of a step from the right side there that is no accident, in units of the
# tolerance of a step. Where there is more, the series does not converge to the solution, or something switches between.
_MOST_DEFECT = 1e4

# From the order, the time, and the states, the coefficients of each state.
Series = Sequence[Sequence[float]]
Expansion = Callable[[int, float, Sequence[float]], Series]


class Step(NamedTuple):
    """The series of the states at the begin of a step, and the length that it may have, infinite if the series end."""

    series: Series
    length: float


class Stepper:
    """Makes the steps of a problem."""

    def __init__(self, problem: Problem, progress: Progress, expansion: Expansion) -> None:
        self.tolerance = max(problem.rtol * _SHARE, _LEAST_TOLERANCE)
        self.order = order_for(self.tolerance)
        self.longest = abs(progress.left) * _LONGEST
        self._problem, self._progress, self._expand = problem, progress, expansion
        self.step = self._expanded(progress.time, progress.states)

    def _expanded(self, time: float, states: Sequence[float]) -> Step:
        limits.charge_steps(len(states) * self.order)
        try:
            series = self._expand(self.order, time, states)
        except (ArithmeticError, ValueError):
            raise NoStepError from None
        length = step_length(series, self._problem.sizes(states), self._problem.system.groups, self.order)
        return Step(series, min(length, self.longest))

    def advance(self) -> None:
        """Make a step. Raises NoStepError."""
        progress, series = self._progress, self.step.series
        lapse = math.copysign(min(self.step.length, abs(progress.left)), progress.left)
        while True:
            end = progress.times[-1] if lapse == progress.left else progress.time + lapse
            if end == progress.time or lapse != lapse:
                raise NoStepError
            states = values_at(series, lapse)
            after = self._expanded(end, states)
            if self._is_consistent(series, lapse, after.series, states):
                break
            lapse /= 2
        progress.advance(end, states, lambda part: values_at(series, part))
        self.step = after

    def _is_consistent(self, series: Series, lapse: float, after: Series, states: Sequence[float]) -> bool:
        most = _MOST_DEFECT * self.tolerance
        sizes = self._problem.sizes(states)
        for coefficients, further, size in zip(series, after, sizes):
            slope = 0.0
            for k in range(len(coefficients) - 1, 0, -1):
                slope = slope * lapse + k * coefficients[k]
            if not abs(lapse * (slope - further[1])) <= most * max(size, abs(lapse * slope)):
                return False
        return True


def values_at(series: Series, lapse: float) -> list[float]:
    """The sums of power series."""
    found = []
    for coefficients in series:
        total = 0.0
        for c in reversed(coefficients):
            total = total * lapse + c
        found.append(total)
    return found


def step_length(series: Series, sizes: Sequence[float], groups: Sequence[Sequence[int]], order: int) -> float:
    """The length of a step, infinite if the series end, 0 if they are not finite."""
    shrink = math.exp(-2 - 0.7 / (order - 1))
    length = shrink * min(_radius(c, size, order) if size else math.inf for c, size in zip(series, sizes))
    for group in groups:
        if not any(sizes[i] for i in group):
            # States that begin with 0 have the size that they come to.
            lapse = length if length < math.inf else 1.0
            size = max(max(abs(series[i][1]) * lapse, abs(series[i][2]) * lapse**2) for i in group)
            if size:
                length = min(length, shrink * min(_radius(series[i], size, order) for i in group))
    return length


def _radius(coefficients: Sequence[float], size: float, order: int) -> float:
    radius = math.inf
    for j in (order - 1, order):
        c = abs(coefficients[j])
        if not c < math.inf:
            return 0.0
        if c:
            radius = min(radius, (size / c) ** (1 / j))
    return radius
