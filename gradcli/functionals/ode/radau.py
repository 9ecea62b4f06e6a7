"""Collocation at Radau's points, an implicit method for stiff systems (E. Hairer and G. Wanner, "Solving Ordinary
Differential Equations II", chapters IV.5 and IV.8), with 9 stages and thus of order 17.

Newton's method has the exact Jacobian at each stage. The equations of derivatives are linear, with the same matrix, and
are solved after those of the states that they are derivatives of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.functionals.ode.progress import NoStepError, Problem, Progress
from gradcli.functionals.ode.right_sides import RightSides

_STAGES = 9
_MOST_ITERATIONS = 12
# Newton's method ends at this part of the tolerance, and the error of a step is this part of it.
_NEWTON, _SAFETY = 0.01, 0.3
# Errors of this part of the tolerance and more are compared with rounding, that of states being so large.
_NOTED, _ROUNDING = 1e-3, 2.0**-51
_FIRST = 1e-6
_GROWTH, _SHRINK = 8.0, 0.1
# The length of a step, relative to the time to go, that is too small, and a size that stands for 0.
_SHORTEST, _SMALLEST = 1e-20, 1e-300


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


class Stepper:
    """Makes the steps of a problem."""

    def __init__(self, problem: Problem, progress: Progress, sides: RightSides) -> None:
        self._problem, self._progress, self._sides = problem, progress, sides
        np = arrays.numpy_namespace()
        first, *further = problem.system.levels
        self._first = np.array(first[0])
        # The numbers of the states, [states, groups]: each group has the derivatives of the first states.
        self._further = [np.array(level).T for level in further]
        self._length = self._first_length()
        # The Legendre coefficients of the slopes in the step before, and its length.
        self._before: tuple[Any, float] | None = None
        # The matrix of the last step's equations.
        self._matrix: Any = None

    def _first_length(self) -> float:
        progress = self._progress
        sizes = self._problem.sizes(progress.states)
        rates = self._sides.rates(progress.time, progress.states)
        longest = min((size / abs(rate) for size, rate in zip(sizes, rates) if size and rate), default=0.0)
        return min(abs(progress.left), 0.01 * longest or _FIRST * abs(progress.left))

    def advance(self) -> None:
        """Make a step. Raises NoStepError where it becomes too small."""
        progress = self._progress
        while True:
            end = progress.reach(self._length, self._problem.stops)
            lapse = end - progress.time
            if end != progress.times[-1] and not abs(lapse) > max(
                _SHORTEST * abs(progress.left), 1e-15 * abs(progress.time)
            ):
                raise NoStepError
            slopes = self._slopes(lapse)
            if slopes is None:
                self._length = abs(lapse) / 4
                continue
            coefficients = tableau().to_legendre @ slopes
            error = self._error(coefficients, lapse)
            if error > _NOTED and self._further:
                error = self._error(coefficients, lapse, self._noise(slopes, lapse))
            factor = (_SAFETY / error) ** (1 / _STAGES) if error else _GROWTH
            self._length = abs(lapse) * min(_GROWTH, max(_SHRINK, factor))
            if error <= 1:
                break
        np = arrays.numpy_namespace()
        start = np.array(progress.states)

        def after(part: float) -> Sequence[float]:
            found: Sequence[float] = (start + lapse * _integrals(np.array([part / lapse]))[0] @ coefficients).tolist()
            return found

        progress.advance(end, after(lapse), after)
        self._before = coefficients, lapse

    def _error(self, coefficients: Any, lapse: float, noise: Any = _SMALLEST) -> float:
        """The error of the polynomial, in units of the tolerance or of the `noise` of each state, by extrapolation of its
        last coefficients."""
        np = arrays.numpy_namespace()
        # What begins with 0 has a part of the size that it comes to.
        share = max(abs(lapse), self._problem.atol / self._problem.rtol * abs(self._progress.left))
        sizes = np.maximum(self._problem.sizes(self._progress.states), np.abs(share * coefficients[0]))
        size = np.maximum(self._problem.rtol * sizes, noise)
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
        """What derivatives change by if the states are rounded in another way, which no shorter step makes smaller: where a
        slope is a difference of large numbers, so is its derivative, and larger by the stiffness."""
        np = arrays.numpy_namespace()
        progress, found = self._progress, np.full(slopes.shape[1], _SMALLEST)
        times, spread = progress.time + lapse * tableau().points, lapse * tableau().integrals
        states = np.array(progress.states) + spread @ slopes
        rounded = states.copy()
        rounded[:, self._first] *= 1 + _ROUNDING * (-1.0) ** np.arange(_STAGES)[:, None]
        try:
            changes = self._sides.all_rates(times, rounded) - self._sides.all_rates(times, states)
            for groups in self._further:
                found[groups] = np.abs(np.tensordot(spread, _solved(self._matrix, changes[:, groups]), 1)).max(axis=0)
        except (NoStepError, np.linalg.LinAlgError):
            return _SMALLEST
        return np.maximum(found, _SMALLEST)

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
            return np.tile(self._sides.rates(self._progress.time, self._progress.states), (_STAGES, 1))
        coefficients, length = self._before
        places = 1 + 2 * tableau().points * (lapse / length)
        return np.polynomial.legendre.legvander(places, _STAGES - 1) @ coefficients


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
