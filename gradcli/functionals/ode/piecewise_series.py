"""The Taylor coefficients of a solution whose right side bends or jumps: those of the piece that it is in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli.functionals.ode import taylor_machine_code, taylor_python_code
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.recurrences import Recurrences, recurrences
from gradcli.functionals.ode.right_sides import rounded_otherwise
from gradcli.functionals.ode.smooth_pieces import Decisions, Margin, decisions_at, piece, switching
from gradcli.functionals.ode.solver_progress import NoStepError, SolverProblem
from gradcli.named_tuples import NamedTuple

Series = Sequence[Sequence[float]]


class PieceSeries(NamedTuple):
    """The series of the states, and those of the margins, which are positive up to the end of the piece."""

    states: Series
    margins: Series


class Crossing(NamedTuple):
    """The end of a piece: how long after the begin of a step it is, and the margins that become 0 there, by number."""

    lapse: float
    margins: Sequence[int]


# The number of expansions after which machine code is made: Python computes as many in the time of compiling. That is the
# time of some expansions, and of loading the compiler, in which as many recurrences as the last number are expanded.
_MOST_INTERPRETED, _COMPILING, _LOADING = 300, 24, 19_000


class _Code:
    """The functions of a piece: of numbers, and as machine code once it is worth it."""

    def __init__(self, system: Recurrences, margins: Sequence[Margin], groups: Sequence[Sequence[int]]) -> None:
        self.margins = margins
        # The code of whole steps, where no piece ends.
        self.steps: taylor_machine_code.Machine | None = None
        self._groups = groups
        self._system = system
        self._python = taylor_python_code.coefficients(system)
        self._machine: taylor_machine_code.Coefficients | None = None
        # Where there is no machine code, the function for the order of most calls.
        self._unrolled: taylor_python_code.Coefficients | None = None
        self._order = 0
        self._calls = 0
        self._worth = min(_MOST_INTERPRETED, _COMPILING + _LOADING // max(1, len(system.recurrences)))

    def coefficients(self, order: int, *inputs: float) -> Series:
        """The coefficients of the states and margins. Raises ArithmeticError or ValueError."""
        self._calls += 1
        if self._calls == self._worth:
            if self.margins:
                self._machine = taylor_machine_code.coefficients(self._system)
            else:
                self.steps = taylor_machine_code.machine(self._system, self._groups)
            if self._machine is None and self.steps is None:
                self._order, self._unrolled = order, taylor_python_code.unrolled(self._system, order)
        machine = self._machine if self.steps is None else self.steps.series
        if machine is not None:
            try:
                found: Series = machine(order, *inputs)
                return found
            except ValueError:
                # Python tells where a value is at fault.
                pass
        if self._unrolled is not None and order == self._order:
            return self._unrolled(order, *inputs)
        return self._python(order, *inputs)

    def rates_rounded_otherwise(self, inputs: Sequence[float], states: int) -> list[float]:
        """The rates where `states` of the inputs after the time, and all results, are rounded in another way."""
        program = self._system.program._replace(outputs=tuple(self._system.rates))
        return rounded_otherwise(program, inputs, states)


class _Pieces:
    """The code of the pieces of a system."""

    def __init__(self, system: System) -> None:
        self.program, self.states, self.groups = system.body.program, system.states, system.groups
        self.switching = switching(self.program, 1 + self.states)
        self._codes: dict[Hashable, _Code] = {}

    def code(self, decisions: dict[int, Any]) -> _Code:
        """The code of the piece where equations are decided so. Raises NoRecurrenceError."""
        key = tuple(decisions.items())
        found = self._codes.get(key)
        if found is None:
            program, margins = piece(self.program, decisions, self.states) if decisions else (self.program, ())
            found = _Code(recurrences(program, self.states), margins, self.groups)
            self._codes[key] = found
        return found


_known: WeakKeyDictionary[System, _Pieces] = WeakKeyDictionary()


class PiecewiseSeries:
    """The series of the solution of a problem, from one place to the next. Raises NoRecurrenceError."""

    def __init__(self, problem: SolverProblem, time: float, states: Sequence[float]) -> None:
        system = problem.system
        self._given = problem.given
        self._pieces = _known.get(system) or _known.setdefault(system, _Pieces(system))
        numbers = self._pieces.switching
        self._decisions = decisions_at(self._pieces.program, numbers, [time, *states, *self._given]) if numbers else {}
        self._code = self._pieces.code(self._decisions)

    @property
    def steps(self) -> taylor_machine_code.Machine | None:
        """The machine code of steps, if it is made."""
        return self._code.steps

    def at(self, order: int, time: float, states: Sequence[float]) -> PieceSeries:
        """The series at a place in the piece. Raises NoStepError where there are none."""
        try:
            found = self._code.coefficients(order, time, *states, *self._given)
        except (ArithmeticError, ValueError):
            raise NoStepError from None
        return PieceSeries(found[: len(states)], found[len(states) :])

    def rates_rounded_otherwise(self, time: float, states: Sequence[float]) -> list[float]:
        """The rates of the states where the states, and the result of each operation, are rounded in another way."""
        return self._code.rates_rounded_otherwise([time, *states, *self._given], len(states))

    def crossing(self, expansion: PieceSeries, lapse: float) -> Crossing | None:
        """The first end of the piece in a step; None if there is none."""
        sign = 1.0 if lapse >= 0 else -1.0
        found = []
        for number, margin in enumerate(expansion.margins):
            root = first_root([c * sign**k for k, c in enumerate(margin)], abs(lapse))
            if root is not None:
                found.append((root, number))
        if not found:
            return None
        first = min(found)[0]
        # What depends on one condition switches at once.
        return Crossing(first * sign, [n for root, n in found if root <= first + 1e-12 * abs(lapse)])

    @property
    def decisions(self) -> Decisions:
        """The results of the equations that switch, in the piece, by their numbers."""
        return {**self._decisions}

    def cross(self, crossing: Crossing) -> None:
        """Go over to the next piece."""
        for number in crossing.margins:
            equation, beyond = self._code.margins[number]
            self._decisions[equation] = beyond
        self._code = self._pieces.code(self._decisions)


# Halvings of the interval until a root is located.
_MOST_HALVINGS = 60
# Newton steps that follow, and how far they go at most, as a part of the interval.
_NEWTON_STEPS, _MOST_POLISHED = 2, 1e-9
# A constant coefficient is rounding if it is this part of what the others sum up to.
_ROUNDING = 1e-12


def first_root(coefficients: Sequence[float], end: float) -> float | None:
    """The first t from 0 to `end` at which a power series that begins positive becomes negative; None if there is none.

    If it begins with 0, but for rounding, its sign is that of what follows, and 0.0 is returned if that is negative.
    """
    scaled = [c * end**k for k, c in enumerate(coefficients)]
    size = sum(map(abs, scaled[1:]))
    if scaled[0] > size:
        return None
    while len(scaled) > 1 and abs(scaled[0]) <= _ROUNDING * sum(map(abs, scaled)):
        scaled = scaled[1:]
    if scaled[0] < 0:
        return 0.0
    place = _first(_bernstein(scaled), 0.0, 1.0, _MOST_HALVINGS)
    return None if place is None else _polished(scaled, place) * end


def _polished(coefficients: Sequence[float], place: float) -> float:
    """A root of a polynomial between 0 and 1 to the last bits, which Bernstein coefficients of a high degree lack."""
    for _ in range(_NEWTON_STEPS):
        value = slope = 0.0
        for c in reversed(coefficients):
            slope = slope * place + value
            value = value * place + c
        step = value / slope if slope else 0.0
        # A double root is where bisection has found it.
        if abs(step) > _MOST_POLISHED or not 0.0 < place - step <= 1.0:
            break
        place -= step
    return place


def _bernstein(coefficients: Sequence[float]) -> list[float]:
    n = len(coefficients) - 1
    return [sum(math.comb(j, k) / math.comb(n, k) * coefficients[k] for k in range(j + 1)) for j in range(n + 1)]


def _first(values: list[float], low: float, high: float, halvings: int) -> float | None:
    """The first place at which a polynomial with these Bernstein coefficients on low..high becomes negative."""
    if min(values) >= 0:
        return None
    middle = 0.5 * (low + high)
    if values[0] < 0:
        return low
    if not halvings or not low < middle < high:
        return high
    left, right = _halves(values)
    found = _first(left, low, middle, halvings - 1)
    return _first(right, middle, high, halvings - 1) if found is None else found


def _halves(values: list[float]) -> tuple[list[float], list[float]]:
    """The Bernstein coefficients on both halves of the interval."""
    left, right = [], []
    while values:
        left.append(values[0])
        right.append(values[-1])
        values = [0.5 * (a + b) for a, b in itertools.pairwise(values)]
    return left, right[::-1]
