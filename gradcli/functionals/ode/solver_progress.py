"""The progress of the solution of an initial value problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gradcli.functionals.ode.ode_system import System
from gradcli.named_tuples import NamedTuple

# The least size of a state that is not 0: those below have few digits or none, as floats are not smaller than 1e-308.
LEAST_SIZE = 1e-250


class NoStepError(Exception):
    """A step that leads nowhere: the right side has no value or no derivatives, or the step becomes too small."""


class SolverProblem(NamedTuple):
    """A system with its given values, and how the solution is wanted.

    `origin` is the first time, which is 0 to the system; `breaks` are times that are stepped onto.
    """

    system: System
    given: Sequence[float]
    origin: float
    breaks: Sequence[float]
    rtol: float
    atol: float

    @property
    def stops(self) -> Sequence[float]:
        """The breaks, as times after the first one."""
        return [b - self.origin for b in self.breaks]

    def sizes(self, states: Sequence[float]) -> list[float]:
        """The size of each state, by which its error is measured in units of `rtol`."""
        found = [*map(abs, states)]
        share = self.atol / self.rtol
        for group in self.system.groups:
            if len(group) == 1:
                found[group[0]] *= 1.0 + share
                continue
            least = share * max([found[i] for i in group])
            for i in group:
                found[i] += least
        return [LEAST_SIZE if 0.0 < size < LEAST_SIZE else size for size in found]


class SolverProgress:
    """The time that is reached with the states there, and the states at those of `times` that lie behind it.

    If it `keeps` them, `passed` has the ends of all steps with the states there; it is None else, and where the states
    could not be solved backward.
    """

    def __init__(self, times: Sequence[float], states: Sequence[float], *, keeps: bool = False) -> None:
        self.passed: list[tuple[float, Sequence[float]]] | None = [] if keeps else None
        self.times = times
        self.time = 0.0
        self.states = [*states]
        self.found: list[Sequence[float]] = []
        self.steps = 0
        while not self.done and times[len(self.found)] == 0.0:
            self.found.append(self.states)

    @property
    def done(self) -> bool:
        """True if all times are reached."""
        return len(self.found) == len(self.times)

    @property
    def left(self) -> float:
        """The time to go, negative if it goes back."""
        return self.times[-1] - self.time

    def reach(self, length: float, breaks: Sequence[float]) -> float:
        """The end of a step of at most a length, which goes over none of `breaks`."""
        end = self.times[-1]
        for time in breaks:
            if (time - self.time) * self.left > 0 and abs(time - self.time) < abs(end - self.time):
                end = time
        return end if abs(end - self.time) <= length else self.time + math.copysign(length, self.left)

    def advance(self, time: float, states: Sequence[float], states_after: Callable[[float], Sequence[float]]) -> None:
        """Go to a time; `states_after` has the states some time after the one before."""
        while not self.done and abs(self.times[len(self.found)]) <= abs(time):
            moment = self.times[len(self.found)]
            self.found.append(states if moment == time else states_after(moment - self.time))
        self.time, self.states = time, [*states]
        if self.passed is not None:
            self.passed.append((time, self.states))
        self.steps += 1

    def go_back(self, number: int, states: Sequence[float]) -> None:
        """Go back to one of `times` by number, where the states are others than were found."""
        self.time, self.states = self.times[number], [*states]
        self.found[number:] = [self.states]

    def move(self, steps: int, time: float, states: Sequence[float]) -> None:
        """Go by some steps to a time that is before the next of `times`, and keep none of the steps."""
        self.time, self.states = time, [*states]
        self.steps += steps
