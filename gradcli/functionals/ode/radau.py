"""Collocation at Radau's points, an implicit method for stiff systems (E. Hairer and G. Wanner, "Solving Ordinary
Differential Equations II", chapters IV.5 and IV.8), with 9 stages and thus of order 17.

Newton's method has the exact Jacobian at each stage. The equations of derivatives are linear, with the same matrix, and
are solved after those of the states that they are derivatives of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from gradcli import arrays, limits
from gradcli.functionals.ode.hidden_peaks import PLACES, SHORTEST_PART, active_within, has_unseen_exponentials
from gradcli.functionals.ode.right_sides import RightSides
from gradcli.functionals.ode.solver_progress import NoStepError, SolverProblem, SolverProgress
from gradcli.functionals.ode.transitions import PiecewiseSides
from gradcli.named_tuples import NamedTuple

_STAGES = 9
_MOST_ITERATIONS = 12
# Newton's method ends at this part of the tolerance, and the error of a step is this part of it.
_NEWTON, _SAFETY = 0.01, 0.3
# Errors of this part of the tolerance and more are compared with rounding, that of states being so large.
_NOTED, _ROUNDING = 1e-3, 2.0**-51
# The part of a state that rounding may change in a step that is shorter than a part of the time.
_MOST_NOISE, _SHORT = 1e-7, 1e-8
# The first step as a part of the time to go, where the sizes of states say nothing; and the least one after a switch, as
# a part of the step that led there.
_FIRST, _LEAST_AFTER = 1e-6, 1e-6
_GROWTH, _SHRINK = 8.0, 0.1
# The number of places in a step at which margins of its piece are examined, and bisections that locate the end of it, as
# closely as this part of the step; the number of steps that are tried to it, and the part of a step before its end by which
# the slope of a margin is found. A margin is 0 at the begin of a step if it is this part of its largest value there.
_EXAMINED, _BISECTIONS, _NEAR, _MOST_LOCATED, _NEARBY, _ZERO = 33, 60, 1e-12, 12, 1e-3, 1e-10
# The length of a step, relative to the time to go, that is too small, and a size that stands for 0.
_SHORTEST, _SMALLEST = 1e-20, 1e-300
# The last Legendre coefficient of bounded slopes, relative to the largest one.
_DECREASED = 1e-3
# The magnitudes of exponents above which an exponential is negligible, and below which it is seen at some stage of a step.
_EXPONENTS = 15.0, 5.0


class Tableau(NamedTuple):
    """Radau's points on 0..1, the integrals of the polynomials that are 1 at one of them, and the matrix from values at
    the points to Legendre coefficients."""

    points: Any
    integrals: Any
    to_legendre: Any


@cache
def tableau() -> Tableau:
    """Those of the method."""
    np = arrays.numpy_namespace()
    legendre = np.polynomial.legendre
    # The zeros of P_s - P_(s-1), of which 1 is the last.
    polynomial = np.zeros(_STAGES + 1)
    polynomial[-2:] = -1.0, 1.0
    zeros = np.sort(legendre.legroots(polynomial).real)
    slope = legendre.legder(polynomial)
    for _ in range(3):
        zeros = zeros - legendre.legval(zeros, polynomial) / legendre.legval(zeros, slope)
    zeros[-1] = 1.0
    points = 0.5 * (zeros + 1)
    to_legendre = np.linalg.inv(legendre.legvander(zeros, _STAGES - 1))
    return Tableau(points, _integrals(points) @ to_legendre, to_legendre)


class _Step(NamedTuple):
    """A step: its lapse, and the Legendre coefficients of the slopes, [coefficients, states]."""

    lapse: float
    coefficients: Any

    def after(self, start: Any, lapses: Any) -> Any:
        """The states some lapses after the start, [lapses, states]."""
        return start + self.lapse * _integrals(lapses / self.lapse) @ self.coefficients


class _End(NamedTuple):
    """The end of a piece inside a step: its lapse, 0 where it is the begin, and the numbers of the margins."""

    lapse: float
    margins: Sequence[int]


class RadauStepper:
    """Makes the steps of a problem."""

    def __init__(self, problem: SolverProblem, progress: SolverProgress) -> None:
        self._problem, self._progress = problem, progress
        self._piecewise = PiecewiseSides(problem, progress.time, progress.states)
        np = arrays.numpy_namespace()
        first, *further = problem.system.levels
        self._first = np.array(first[0])
        # The numbers of the states, [states, groups]: each group has the derivatives of the first states.
        self._further = [np.array(level).T for level in further]
        # The Legendre coefficients of the slopes in the step before, and its length.
        self._before: tuple[Any, float] | None = None
        # How large the margins of conditions were.
        self._margin_sizes: dict[int, float] = {}
        # The matrix of the last step's equations.
        self._matrix: Any = None
        # True if the right side has no value at the begin, which may be a removable singularity.
        self._begins_singular = False
        # True if the error would allow a next step that is `_GROWTH` times as long as the last one.
        self.grows = True
        self._length = self._first_length()

    @property
    def _sides(self) -> RightSides:
        return self._piecewise.sides

    def _first_rates(self) -> Sequence[float]:
        """The rates at the begin of a step, or beside it where they have no value: no stage is there."""
        progress = self._progress
        try:
            return self._sides.rates(progress.time, progress.states)
        except NoStepError:
            self._begins_singular = True
        beside = [s + _FIRST * (abs(s) or 1.0) for s in progress.states]
        return self._sides.rates(progress.time + _FIRST * progress.left, beside)

    def _first_length(self, least: float = 0.0) -> float:
        progress = self._progress
        sizes, rates = self._problem.sizes(progress.states), self._first_rates()
        longest = min((size / abs(rate) for size, rate in zip(sizes, rates) if size and rate), default=0.0)
        left = abs(progress.left)
        return min(left, max(0.01 * longest, least) or _FIRST * left)

    def advance(self) -> None:
        """Make a step. Raises NoStepError where it becomes too small."""
        progress = self._progress
        step, end = self._step(progress.reach(self._length, self._problem.stops)), None
        while self._steps_over(step):
            step = self._step(progress.time + step.lapse / 2)
            self._length = min(self._length, abs(step.lapse))
        if self._piecewise.has_margins:
            step, end = self._until_end(step)
        if end is None or end.lapse:
            self._go(step)
            self._piecewise.settle()
        if end is not None:
            progress.states = [*self._piecewise.cross(end.margins, progress.time, progress.states)]
            self._before, self._length = None, self._first_length(_LEAST_AFTER * abs(step.lapse))

    def _steps_over(self, step: _Step) -> bool:
        """Return whether an exponential, or the like, that is negligible at the start of a step may become significant
        within it."""
        progress, np = self._progress, arrays.numpy_namespace()
        is_blind = has_unseen_exponentials(self._problem, progress.time, progress.states, _EXPONENTS[0])
        if not is_blind or abs(step.lapse) <= SHORTEST_PART * abs(progress.left):
            return False
        start, lapses = np.array(progress.states), step.lapse * np.linspace(0.0, 1.0, PLACES)
        given, times = np.array(self._problem.given)[:, None], np.array([progress.time])
        found = active_within(
            self._problem.system, given, times, start[:, None], lambda: step.after(start, lapses).T[:, :, None],
            np.array([step.lapse]), *_EXPONENTS,
        )  # fmt: skip
        return bool(found[0])

    def _go(self, step: _Step) -> None:
        progress, np = self._progress, arrays.numpy_namespace()
        start = np.array(progress.states)

        def after(lapse: float) -> Sequence[float]:
            found: Sequence[float] = step.after(start, np.array([lapse]))[0].tolist()
            return found

        progress.advance(progress.time + step.lapse, after(step.lapse), after)
        self._begins_singular = False
        self._before = step.coefficients, step.lapse

    def _step(self, end: float) -> _Step:
        """A step of sufficient accuracy to a time or less far. Raises NoStepError."""
        progress = self._progress
        while True:
            lapse = end - progress.time
            if end != progress.times[-1] and not abs(lapse) > max(
                _SHORTEST * abs(progress.left), 1e-15 * abs(progress.time)
            ):
                raise NoStepError
            slopes = self._slopes(lapse)
            if slopes is None:
                self._length = abs(lapse) / 4
            else:
                coefficients = tableau().to_legendre @ slopes
                error = self._error(coefficients, lapse)
                if error > (_NOTED if self._further else 1.0):
                    noise = self._noise(slopes, lapse)
                    error = math.inf if self._is_lost(lapse, noise) else self._error(coefficients, lapse, noise)
                factor = (_SAFETY / error) ** (1 / _STAGES) if error else _GROWTH
                self.grows = factor >= _GROWTH
                self._length = abs(lapse) * min(_GROWTH, max(_SHRINK, factor))
                if error <= 1:
                    if not self._begins_singular or _are_bounded(coefficients):
                        return _Step(lapse, coefficients)
                    self._length = abs(lapse) / 4
            end = progress.reach(min(self._length, abs(lapse)), self._problem.stops)

    # --- ends of pieces

    def _until_end(self, step: _Step) -> tuple[_Step, _End | None]:
        """A step that ends with its piece, if that ends within the step; and the end."""
        time = self._progress.time
        for _ in range(_MOST_LOCATED):
            end = self._end(step)
            if end is None or not end.lapse:
                return step, end
            located = self._step(time + end.lapse)
            if abs(located.lapse) < abs(end.lapse) * (1 - _NEAR):
                # A shorter step is more accurate.
                step = located
                continue
            beyond = self._beyond(located, end.margins)
            located = self._step(time + located.lapse - beyond)
            if abs(self._beyond(located, end.margins)) <= _NEAR * abs(located.lapse) + 1e-15 * abs(time):
                return located, _End(located.lapse, end.margins)
            step = located
        raise NoStepError

    def _end(self, step: _Step) -> _End | None:
        """The first end of the piece within a step."""
        np = arrays.numpy_namespace()
        lapses = step.lapse * np.linspace(0.0, 1.0, _EXAMINED)
        margins = self._margins(step, lapses)
        if not np.isfinite(margins).all():
            margins = np.where(np.isfinite(margins), margins, -np.inf)
        sizes = np.abs(np.where(np.isfinite(margins), margins, 0.0)).max(axis=0)
        outside = margins < 0
        # What begins with 0, but for the error of the place, has the sign of what follows.
        conditions = self._piecewise.conditions
        sizes = np.maximum(sizes, [self._margin_sizes.get(c, 0.0) for c in conditions])
        near = np.abs(margins[0]) <= _ZERO * sizes
        outside &= ~near | (margins < -_ZERO * sizes)
        outside[0] |= near & outside[1]
        self._margin_sizes.update(zip(conditions, sizes.tolist()))
        if not outside.any():
            return None
        k = int(outside.any(axis=1).argmax())
        numbers = np.flatnonzero(outside[k]).tolist()
        if not k:
            return _End(0.0, numbers)
        roots = [self._bisected(step, lapses[k - 1], lapses[k], n) for n in numbers]
        first = min(map(abs, roots))
        together = [n for n, root in zip(numbers, roots) if abs(root) <= first + _NEAR * abs(step.lapse)]
        return _End(math.copysign(first, step.lapse), together)

    def _margins(self, step: _Step, lapses: Any) -> Any:
        """The margins in a step, [lapses, margins]."""
        np, time = arrays.numpy_namespace(), self._progress.time
        states = step.after(np.array(self._progress.states), lapses)
        return np.array([self._piecewise.margins(time + s, row) for s, row in zip(lapses.tolist(), states.tolist())])

    def _bisected(self, step: _Step, inside: float, outside: float, number: int) -> float:
        np = arrays.numpy_namespace()
        for _ in range(_BISECTIONS):
            middle = 0.5 * (inside + outside)
            if self._margins(step, np.array([middle]))[0, number] >= 0:
                inside = middle
            else:
                outside = middle
        return 0.5 * (inside + outside)

    def _beyond(self, step: _Step, numbers: Sequence[int]) -> float:
        """The time from the end of the piece to the end of a step."""
        np = arrays.numpy_namespace()
        before, at_end = self._margins(step, step.lapse * np.array([1 - _NEARBY, 1.0]))[:, numbers[0]]
        slope = (at_end - before) / (_NEARBY * step.lapse)
        return float(at_end / slope) if slope else 0.0

    # --- the equations of a step

    def _error(self, coefficients: Any, lapse: float, noise: Any = _SMALLEST) -> float:
        """The error of the polynomial, in units of the tolerance or of the `noise` of each state, by extrapolation of
        its last coefficients."""
        np = arrays.numpy_namespace()
        sizes = np.array(self._problem.sizes(self._progress.states))
        # What begins with 0 has a part of the size that it comes to.
        part = self._problem.atol / self._problem.rtol * abs(self._progress.left)
        lapses = np.where(sizes > 0, abs(lapse), max(abs(lapse), part))
        size = np.maximum(self._problem.rtol * np.maximum(sizes, np.abs(lapses * coefficients[0])), noise)
        last, before = (np.abs(lapse * coefficients[k]) / size for k in (-1, -2))
        ratio = min(1.0, float(last.max()) / max(float(before.max()), _SMALLEST))
        return float(last.max()) * ratio / (2 * _STAGES)

    def _slopes(self, lapse: float) -> Any:
        """The slopes at the stages, [stages, states]; None where Newton's method fails."""
        np = arrays.numpy_namespace()
        progress, first = self._progress, self._first
        times = progress.time + lapse * tableau().points
        start, slopes = np.array(progress.states), self._guess(lapse)
        spread = lapse * tableau().integrals
        size = np.maximum(self._problem.rtol * np.array(self._problem.sizes(progress.states))[first], _SMALLEST)
        try:
            matrix = self._matrix = self._converge(times, start[first], slopes, spread, size)
            for groups in self._further if matrix is not None else ():
                rates = self._sides.all_rates(times, start + spread @ slopes)
                slopes[:, groups] += _solved(matrix, (rates - slopes)[:, groups])
        except (NoStepError, np.linalg.LinAlgError):
            return None
        return slopes if matrix is not None and np.isfinite(slopes).all() else None

    def _noise(self, slopes: Any, lapse: float) -> Any:
        """The change of the states when the times of the stages, the states and the right side are rounded in another
        way, which no shorter step reduces: where a slope is a difference of large numbers, so is its derivative, which
        is larger by the stiffness."""
        np = arrays.numpy_namespace()
        progress, found = self._progress, np.full(slopes.shape[1], _SMALLEST)
        times, spread = progress.time + lapse * tableau().points, lapse * tableau().integrals
        states = np.array(progress.states) + spread @ slopes
        other_times, rounded = times * (1 + 0.5 * _ROUNDING * (-1.0) ** np.arange(_STAGES)), states.copy()
        rounded[:, self._first] *= 1 + _ROUNDING * (-1.0) ** np.arange(_STAGES)[:, None]
        try:
            changes = self._sides.all_rates(other_times, rounded) - self._sides.all_rates(times, states)
            changes[:, self._first] += self._sides.base_rounding(times, states[:, self._first])
            for groups in (self._first[:, None], *self._further):
                found[groups] = np.abs(np.tensordot(spread, _solved(self._matrix, changes[:, groups]), 1)).max(axis=0)
        except (NoStepError, np.linalg.LinAlgError):
            return _SMALLEST
        return np.maximum(found, _SMALLEST)

    def _is_lost(self, lapse: float, noise: Any) -> bool:
        """Return whether rounding changes the first states by a part of their sizes in a short step: so close to a pole,
        it may go over it."""
        np, progress = arrays.numpy_namespace(), self._progress
        if abs(lapse) > _SHORT * max(abs(progress.time), abs(progress.left)):
            return False
        return bool((noise > _MOST_NOISE * np.array(self._problem.sizes(progress.states)))[self._first].any())

    def _converge(self, times: Any, start: Any, slopes: Any, spread: Any, size: Any) -> Any:
        """Solve the equations of the first states by Newton's method; returns the matrix at the solution, or None."""
        np, first, sides = arrays.numpy_namespace(), self._first, self._sides
        before = math.inf
        for _ in range(_MOST_ITERATIONS):
            limits.charge_steps(8 * _STAGES * len(first))
            states = start + spread @ slopes[:, first]
            jacobians = sides.jacobians(times, states)
            # [stage, state, stage, state]
            matrix = -spread[:, None, :, None] * jacobians[:, :, None, :]
            count = _STAGES * len(first)
            matrix = np.eye(count) + matrix.reshape(count, count)
            change = _solved(matrix, (sides.base_rates(times, states) - slopes[:, first])[:, :, None])[:, :, 0]
            slopes[:, first] += change
            # What begins with 0 has the size that it comes to.
            sizes = np.maximum(size, self._problem.rtol * np.abs(spread[-1] @ slopes[:, first]))
            moved = float(np.max(np.abs(spread @ change) / sizes))
            if moved <= _NEWTON or 0.1 * before < moved < 1:
                return matrix
            if not moved < 10 * before:
                return None
            before = moved
        return None

    def _guess(self, lapse: float) -> Any:
        """The slopes at the stages by the polynomial of the step before."""
        np = arrays.numpy_namespace()
        if self._before is None:
            return np.tile(self._first_rates(), (_STAGES, 1))
        coefficients, length = self._before
        places = 1 + 2 * tableau().points * (lapse / length)
        return np.polynomial.legendre.legvander(places, _STAGES - 1) @ coefficients


def _are_bounded(coefficients: Any) -> bool:
    """Return whether slopes with some Legendre coefficients, [coefficients, states], stay bounded at the ends of a
    step: near an infinite value the coefficients hardly decrease."""
    sizes = abs(coefficients)
    return bool((sizes[-1] <= _DECREASED * sizes.max(axis=0)).all())


def _solved(matrix: Any, right: Any) -> Any:
    """The solutions of linear equations for right sides of shape [stages, states, number]."""
    np = arrays.numpy_namespace()
    return np.linalg.solve(matrix, right.reshape(len(matrix), -1)).reshape(right.shape)


def _integrals(places: Any) -> Any:
    """The integrals of the Legendre polynomials on 0..1 from 0 to some places, [places, polynomials]."""
    np = arrays.numpy_namespace()
    basis = np.polynomial.legendre.legvander(2 * places - 1, _STAGES)
    numbers = np.arange(1, _STAGES)
    further = (basis[..., 2:] - basis[..., :-2]) / (2 * (2 * numbers + 1))
    return np.concatenate([places[:, None], further], -1)
