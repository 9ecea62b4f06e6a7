"""Taylor's method: steps of high order and of the length that the coefficients of the solution allow.

Order and length are those of À. Jorba and M. Zou, "A software package for the numerical integration of ODEs by means of
high-order Taylor methods", Experimental Mathematics 14 (2005), 99.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradcli import limits
from gradcli.functionals.ode.hidden_peaks import (
    SHORTEST_PART,
    becomes_active,
    has_unseen_exponentials,
    hides,
    is_polynomial,
)
from gradcli.functionals.ode.piecewise_series import Crossing, PieceSeries, PiecewiseSeries, Series
from gradcli.functionals.ode.recurrences import order_for
from gradcli.functionals.ode.smooth_pieces import Decisions, sliding_error
from gradcli.functionals.ode.solver_progress import NoStepError, SolverProblem, SolverProgress
from gradcli.functionals.ode.taylor_machine_code import SHORTEST, Rooms, StepRules
from gradcli.functionals.ode.transitions import after_switch
from gradcli.named_tuples import NamedTuple

# The part of the tolerance that a step may use.
_SHARE = 1e-3
_LEAST_TOLERANCE = 2.0**-53
# A step is at most this part of the whole time: the coefficients of a peak far away are 0.
LONGEST = 1 / 3
# The difference of the derivative at the end of a step from the right side there that is no accident, in units of the
# tolerance of a step. Where there is more, the series does not converge to the solution, or something switches between.
MOST_DEFECT = 1e4
# Steps are not made shorter for peaks of functions of the time more often than this.
_MOST_EXAMINED = 500
# Bound on the pieces that are tried at one place.
_MOST_TRIED = 10


def tolerance_of(rtol: float) -> float:
    """The tolerance of a step."""
    return max(rtol * _SHARE, _LEAST_TOLERANCE)


def shrinkage(order: int) -> float:
    """The part of the radius of convergence that a step has."""
    return math.exp(-2 - 0.7 / (order - 1))


class TaylorStep(NamedTuple):
    """The series at the begin of a step, and the length that it may have, 0 where the series are not finite."""

    expansion: PieceSeries
    length: float


class TaylorStepper:
    """Makes the steps of a problem."""

    def __init__(self, problem: SolverProblem, progress: SolverProgress) -> None:
        self.tolerance = tolerance_of(problem.rtol)
        self.order = order_for(self.tolerance)
        self._longest = abs(progress.left) * LONGEST
        # The number of steps that were made shorter for what they might step over.
        self._examined = 0
        self._rooms: Rooms | None = None
        self._problem, self._progress = problem, progress
        self._series = PiecewiseSeries(problem, progress.time, progress.states)
        self.restart(progress.states)

    def _settled(self, time: float, states: Sequence[float]) -> TaylorStep:
        """The step from a place, which may be the end of a piece, in the piece in which it goes on."""
        sizes = self._problem.sizes(states)
        tried: list[Decisions] = []
        while True:
            step = self._step(self._series.at(self.order, time, states), sizes)
            crossing = self._crossing(step)
            # A lapse below the rounding of the time would end the step where it begins.
            if crossing is None or time + crossing.lapse != time:
                return step
            tried.append(self._series.decisions)
            self._series.cross(crossing)
            if self._series.decisions in tried or len(tried) > _MOST_TRIED:
                raise sliding_error(self._problem.origin + time)

    def _crossing(self, step: TaylorStep) -> Crossing | None:
        """The end of the piece within the whole length of a step: within a part of it, a margin that is 0 but for
        rounding at the begin may seem to have another sign."""
        left = self._progress.left
        return self._series.crossing(step.expansion, math.copysign(min(step.length, abs(left)), left))

    def _step(self, expansion: PieceSeries, sizes: Sequence[float]) -> TaylorStep:
        limits.charge_steps(len(sizes) * self.order)
        length = min(self._longest, step_length(expansion.states, sizes, self._problem.system.groups, self.order))
        return TaylorStep(expansion, _resolving(expansion.margins, length, self.order))

    def restart(self, states: Sequence[float]) -> None:
        """Go on from other states at the time that is reached."""
        self._progress.states = [*states]
        rooms = self._with_rooms()
        if rooms is None:
            self.step = self._settled(self._progress.time, states)
        else:
            limits.charge_steps(len(states) * self.order)
            self._go_on(rooms, rooms.restart(self._progress.time, states))

    def _with_rooms(self) -> Rooms | None:
        """The rooms of machine code, once it is made."""
        if self._rooms is None and self._series.steps is not None:
            problem = self._problem
            inputs = [self._progress.time, *self._progress.states, *problem.given]
            rules = StepRules(problem.atol / problem.rtol, MOST_DEFECT * self.tolerance, shrinkage(self.order))
            self._rooms = Rooms(self._series.steps, self.order, inputs, rules)
        return self._rooms

    def advance(self, most: int = 1) -> None:
        """Make one or more steps, at most a number. Raises NoStepError."""
        rooms = self._with_rooms()
        if rooms is None:
            self._advance()
        elif most == 1 or not self._make_free_steps(rooms, most):
            self._advance_by_machine(rooms)

    def _make_free_steps(self, rooms: Rooms, most: int) -> int:
        """Make steps in machine code up to one that ends at or beyond a time that is asked for, or that may be too long;
        returns their number."""
        progress = self._progress
        until = progress.reach(math.inf, (*self._problem.stops, progress.times[len(progress.found)]))
        may_hide = self._examined < _MOST_EXAMINED and not is_polynomial(self._problem.system)
        examined = self._longest if may_hide else math.inf
        made, time, length = rooms.free_steps(most, progress.time, self.step.length, until, self._longest, examined)
        if made:
            limits.charge_steps(made * len(progress.states) * self.order)
            progress.move(made, time, rooms.states_at_begin())
            self._go_on(rooms, length)
        return made

    def _advance_by_machine(self, rooms: Rooms) -> None:
        progress, problem = self._progress, self._problem
        end = progress.reach(self._resolved(), problem.stops)
        while True:
            lapse = end - progress.time
            self._check_length(end)
            limits.charge_steps(len(progress.states) * self.order)
            consistent, length = rooms.step(end, lapse)
            if consistent or self._agrees(lapse, end, rooms.states(), *rooms.slopes_at_end()):
                break
            end = progress.time + lapse / 2
        progress.advance(end, rooms.states(), rooms.states_after)
        rooms.turn()
        self._go_on(rooms, length)

    def _go_on(self, rooms: Rooms, length: float) -> None:
        """Let the next step have a length, which is nan if it is unknown."""
        if length != length:
            sizes = self._problem.sizes(self._progress.states)
            length = step_length(rooms.series(), sizes, self._problem.system.groups, self.order)
        self.step = TaylorStep(PieceSeries((), ()), min(self._longest, length))

    def _check_length(self, end: float) -> None:
        """Raise NoStepError for the end of a step that is too small."""
        time = self._progress.time
        if not abs(end - time) > SHORTEST * abs(time) and end != self._progress.times[-1]:
            raise NoStepError

    def _advance(self) -> None:
        progress, expansion = self._progress, self.step.expansion
        end = progress.reach(self._resolved(), self._problem.stops)
        lapse = end - progress.time
        crossing = self._crossing(self.step)
        if crossing is not None and abs(crossing.lapse) > abs(lapse):
            crossing = None
        if crossing is not None:
            end = progress.time + crossing.lapse
        while True:
            if crossing is None:
                self._check_length(end)
            # The time is rounded, and the step is as long as the time that it takes.
            lapse = end - progress.time
            states, slopes = values_and_slopes(expansion.states, lapse)
            after = self._verified(lapse, end, states, slopes)
            if after is not None:
                break
            end, crossing = progress.time + lapse / 2, None
        reached: Sequence[float] = states
        if crossing is not None:
            # Where there is no series after the switch, the step is not made, and another method goes through it.
            self._series.cross(crossing)
            before, after = after, self._settled(end, states)
            sides = before.expansion.states, after.expansion.states
            reached = after_switch(self._problem, end, states, *sides, lapse)
            if reached is not states:
                after = self._settled(end, reached)
        progress.advance(end, states, lambda part: values_at(expansion.states, part))
        progress.states = [*reached]
        self.step = after

    def _resolved(self) -> float:
        """The length of the step, shorter where it could step over a peak: series far from one know nothing of it."""
        length, problem, time = self.step.length, self._problem, self._progress.time
        is_long = length >= self._longest and self._examined < _MOST_EXAMINED
        is_blind = (
            has_unseen_exponentials(problem, time, self._progress.states)
            if self._rooms is None
            else self._rooms.has_unseen_exponentials()
        )
        if not is_long and not is_blind:
            return length
        series = self.step.expansion.states if self._rooms is None else self._rooms.series()
        lapse = math.copysign(min(length, abs(self._progress.left)), self._progress.left)
        while abs(lapse) > self._longest * SHORTEST_PART:
            if is_blind and becomes_active(problem, time, series, lapse):
                lapse /= 2
            elif is_long and hides(problem, time, series, lapse):
                lapse /= 2
                self._examined += 1
            else:
                break
        return abs(lapse)

    def _verified(
        self, lapse: float, end: float, states: Sequence[float], slopes: Sequence[float]
    ) -> TaylorStep | None:
        """The step that follows in the same piece; None where the right side at the end belies the slopes."""
        try:
            after = self._series.at(self.order, end, states)
        except NoStepError:
            return None
        if not self._agrees(lapse, end, states, slopes, [coefficients[1] for coefficients in after.states]):
            return None
        return self._step(after, self._problem.sizes(states))

    def _agrees(
        self, lapse: float, end: float, states: Sequence[float], slopes: Sequence[float], rates: Sequence[float]
    ) -> bool:
        """Return whether the slopes of the series at the end of a step are the rates of the right side there, up to the
        tolerance or to the rounding of the rates."""
        most, sizes = MOST_DEFECT * self.tolerance, self._problem.sizes(states)
        apart = [
            i
            for i, (slope, rate, size) in enumerate(zip(slopes, rates, sizes))
            if not abs(lapse * (slope - rate)) <= most * max(abs(lapse * slope), size)
        ]
        if not apart:
            return True
        changed = self._series.rates_rounded_otherwise(end, states)
        return all(abs(slopes[i] - rates[i]) <= abs(changed[i] - rates[i]) for i in apart)


def values_at(series: Series, lapse: float) -> list[float]:
    """The sums of power series."""
    found = []
    for coefficients in series:
        total = 0.0
        for c in reversed(coefficients):
            total = total * lapse + c
        found.append(total)
    return found


def values_and_slopes(series: Series, lapse: float) -> tuple[list[float], list[float]]:
    """The sums of power series and of their derivatives."""
    values, slopes = [], []
    for coefficients in series:
        total = slope = 0.0
        for c in reversed(coefficients):
            slope = slope * lapse + total
            total = total * lapse + c
        values.append(total)
        slopes.append(slope)
    return values, slopes


def step_length(series: Series, sizes: Sequence[float], groups: Sequence[Sequence[int]], order: int) -> float:
    """The length of a step, infinite if the series end, 0 if they are not finite."""
    shrink = shrinkage(order)
    length = shrink * _radius([pair for pair in zip(series, sizes) if pair[1]], order)
    for group in groups:
        if not any(sizes[i] for i in group):
            # States that begin with 0 have the size that they come to.
            lapse = length if length < math.inf else 1.0
            size = max(max(abs(series[i][1]) * lapse, abs(series[i][2]) * lapse**2) for i in group)
            if size:
                length = min(length, shrink * _radius([(series[i], size) for i in group], order))
    return length


def _resolving(margins: Series, length: float, order: int) -> float:
    """The length of a step, shorter where the series of margins, which may change faster than states, are not accurate over
    it."""
    # Those of the rates end an order before.
    known = min([order, *(len(c) - 1 for c in margins)])
    sized = [(c, max(abs(a) * length**k for k, a in enumerate(c[:3]))) for c in margins]
    return min(length, shrinkage(order) * _radius(sized, known)) if length > 0 and known > 1 else length


def _radius(sized: Sequence[tuple[Sequence[float], float]], order: int) -> float:
    """The radius of convergence of series, each of a state with a size, by their last two coefficients."""
    radius = math.inf
    for j in (order - 1, order):
        quotient = math.inf
        for coefficients, size in sized:
            c = abs(coefficients[j])
            if not c < math.inf:
                return 0.0
            if c:
                quotient = min(quotient, size / c)
        radius = min(radius, quotient ** (1 / j))
    return radius
