"""The derivatives of a solution at a time at which its right side switches.

Where the time of a switch moves with a parameter, so does the time from which the solution follows the right side that
comes after it. At the time of the switch for the given parameters, the transition maps the states to which the right
side before it leads, to those from which the right side after it goes on:

1. along the right side before the switch to where the margin of its piece is 0, which is some lapse s away,
2. along the right side after it by -s.

At the switch itself s is 0 and the states stay as they are, but not their derivatives. Truncated after s**n, the
transition has the same derivatives up to order n. That of order 1 is the jump (f_before - f_after)*ds of E. Hairer, S.
Nørsett and G. Wanner, "Solving Ordinary Differential Equations I", chapter II.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.errors import DifferentiationError
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.ode.ode_system import System, coefficient_of
from gradcli.functionals.ode.piecewise_series import Series
from gradcli.functionals.ode.right_sides import Bodies, RightSides, bodies, function
from gradcli.functionals.ode.smooth_pieces import Decisions, Margin, decisions_at, piece, sliding_error, switching
from gradcli.functionals.ode.solver_progress import SolverProblem
from gradcli.kinds.jets import Jet
from gradcli.loops.rolled_loop import BodyPath
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Program

# How far from a switch both sides are examined: this part of the step that ends there, and of the time.
_PART_OF_STEP, _PART_OF_TIME = 1e-9, 2.0**-46
# Multiples of that distance, up to the first one at which the sides differ.
_WIDER = (1.0, 1e3, 1e6)
# Conditions that switch at once are one if the derivatives differ by no more than this part.
_SAME = 1e-8

T = TypeVar("T")


class _Kept(Generic[T]):
    """What is made of systems once for each key, and kept as long as they are."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[System, dict[Hashable, T]] = WeakKeyDictionary()

    def of(self, system: System, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept of a system with a key; made by `make` at first."""
        found = self._found.setdefault(system, {})
        if key not in found:
            found[key] = make()
        return found[key]


class Switch(NamedTuple):
    """A condition that changes at a switch: the decisions of all conditions before and after it, and the number of the
    margin of the piece before that becomes 0."""

    before: Decisions
    after: Decisions
    margin: int

    @property
    def key(self) -> Hashable:
        return tuple(self.before.items()), tuple(self.after.items()), self.margin


_transitions: _Kept[Body] = _Kept()


def after_switch(
    problem: SolverProblem, time: float, states: Sequence[float], before: Series, after: Series, lapse: float
) -> Sequence[float]:
    """The states after a switch, from those before, the series on both sides, and the step that ended there.

    Raises DifferentiationError as `through`.
    """
    if not problem.system.is_derivative:
        return states
    origin = problem.system.origin or problem.system
    least = max(_PART_OF_STEP * abs(lapse), _PART_OF_TIME * abs(time))
    found: list[Switch] = []
    for factor in _WIDER:
        distance = math.copysign(least * factor, lapse)
        sides = [
            [time + part, *_nearby(series[: origin.states], part), *problem.given[: origin.given]]
            for series, part in ((before, -distance), (after, distance))
        ]
        found = _switches(origin, *sides)
        # Near a singularity the time of a switch is less accurate, so that the sides may differ farther away only.
        if found:
            break
    try:
        return through(problem, time, states, found)
    except DifferentiationError:
        if problem.system.order == 1 and _has_equal_slopes(before, after, origin.states):
            return states
        raise


def _has_equal_slopes(before: Series, after: Series, count: int) -> bool:
    """Return whether the first states have the same slopes on both sides of a switch, so that first derivatives go on."""
    pairs = [(a[1], b[1]) for a, b in zip(before[:count], after[:count])]
    return all(abs(a - b) <= _SAME * (abs(a) + abs(b)) for a, b in pairs)


def through(
    problem: SolverProblem, time: float, states: Sequence[float], switches: Sequence[Switch]
) -> Sequence[float]:
    """The states after all `switches` at a time, from those before.

    Raises DifferentiationError where the solution touches the switch, and where several switch at once that move in
    different ways.
    """
    system = problem.system
    if not (switches and system.is_derivative):
        return states
    first, *others = (_applied(system, s, time, states, problem.given) for s in switches)
    for other in others:
        sizes = [abs(a) + abs(b) for a, b in zip(first, states)]
        if any(abs(a - b) > _SAME * size for a, b, size in zip(first, other, sizes)):
            raise DifferentiationError(
                f"the right side switches in several ways at t = {problem.origin + time:.8g}, and derivatives by what "
                "moves one of them are not defined"
            )
    # What is no derivative is the same on both sides.
    count = (system.origin or system).states
    return [*states[:count], *first[count:]]


def _nearby(series: Series, lapse: float) -> list[float]:
    """The states after a short lapse, to second order."""
    return [math.fsum(c * lapse**k for k, c in enumerate(coefficients[:3])) for coefficients in series]


def _switches(origin: System, before: Sequence[float], after: Sequence[float]) -> list[Switch]:
    """The conditions that differ at two places, and on which the right side depends at the first one."""
    program = origin.body.program
    numbers = switching(program, 1 + origin.states)
    first, second = (decisions_at(program, numbers, place) for place in (before, after))
    return switches_between(first, second, piece(program, first, origin.states).margins) if first != second else []


def switches_between(before: Decisions, after: Decisions, margins: Sequence[Margin]) -> list[Switch]:
    """The conditions that differ between a piece with these `margins` and another one."""
    found: dict[int, int] = {}
    for number, margin in enumerate(margins):
        beyond = after[margin.equation]
        if before[margin.equation] != beyond and (isinstance(beyond, bool) or beyond == margin.beyond):
            found.setdefault(margin.equation, number)
    return [Switch(before, after, number) for number in found.values()]


def _applied(
    system: System, switch: Switch, time: float, states: Sequence[float], given: Sequence[float]
) -> list[float]:
    """The states of a system after a switch. Raises DifferentiationError where the solution touches the
    switch."""
    body = _transitions.of(
        system, switch.key, lambda: system.lift(_transition(system.origin or system, switch, system.order))
    )
    try:
        found = function(body)(time, *states, *given)
    except (ArithmeticError, ValueError):
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise DifferentiationError("the solution touches a place where its right side switches")
    return found


def _transition(origin: System, switch: Switch, order: int) -> Body:
    """The states after a switch as a function of time, those before, and given values."""
    program, count = origin.body.program, origin.states
    before, after = (piece(program, decisions, count) for decisions in (switch.before, switch.after))
    smooth = before.program._replace(outputs=before.program.outputs[:count])

    def run(_program: Program, inputs: Sequence[Any]) -> list[Any]:
        time, states, given = inputs[0], inputs[1 : 1 + count], inputs[1 + count :]
        series = _series(before.program, time, states, given, order)
        jets = [Jet([time, 1.0], order), *(Jet(c, order) for c in series)]
        margin = stepwise.outputs(before.program, [*jets, *given])[count + switch.margin]
        lapse = _root([coefficient_of(margin, k) for k in range(order + 1)])
        moved = [_polynomial(c, lapse) for c in series]
        back = _series(after.program, time + lapse, moved, given, order)
        return [_polynomial(c, -lapse) for c in back]

    return Body([BodyPath(smooth, ())], smooth, 1 + count).derived(run, 1 + count, origin.given)


def _series(
    program: Program, time: Any, states: Sequence[Any], given: Sequence[Any], order: int
) -> Sequence[Sequence[Any]]:
    """The Taylor coefficients of a solution up to an order."""
    found = [[y] for y in states]
    for k in range(order):
        jets = [Jet([time, 1.0], k), *(Jet(c, k) for c in found)] if k else [time, *states]
        rates = stepwise.outputs(program, [*jets, *given])
        for coefficients, rate in zip(found, rates):
            coefficients.append(coefficient_of(rate, k) * (1 / (k + 1)))
    return found


def _root(coefficients: Sequence[Any]) -> Any:
    """The root of a polynomial next to 0, by as many Newton steps as its coefficients are accurate for."""
    slopes = [k * c for k, c in enumerate(coefficients)][1:]
    found = -coefficients[0] / coefficients[1]
    for _ in range(math.ceil(math.log2(len(coefficients))) - 1):
        found = found - _polynomial(coefficients, found) / _polynomial(slopes, found)
    return found


def _polynomial(coefficients: Sequence[Any], x: Any) -> Any:
    """The value of a polynomial by Horner's scheme; the coefficient of order 0 comes first."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# Bound on the pieces that are tried at one place.
_MOST_TRIED = 10


class _Piece(NamedTuple):
    """A piece: its right sides, its margins, and the function of their values, None where nothing is decided."""

    bodies: Bodies
    values: Body | None
    margins: Sequence[Margin]


_pieces: _Kept[_Piece] = _Kept()


def _piece(system: System, decisions: Decisions) -> _Piece:
    return _pieces.of(system, tuple(decisions.items()), lambda: _made(system, decisions))


def _made(system: System, decisions: Decisions) -> _Piece:
    if not decisions:
        return _Piece(bodies(system), None, ())
    origin, base = system.origin or system, system.base or system
    program, margins = piece(origin.body.program, decisions, origin.states)
    smooth, values = (
        Body([BodyPath(part, ())], part, origin.body.bound)
        for part in (
            program._replace(outputs=program.outputs[: origin.states]),
            program._replace(outputs=program.outputs[origin.states :]),
        )
    )
    return _Piece(Bodies(system.lift(smooth), System(base.lift(smooth), base.start)), values, margins)


class PiecewiseSides:
    """The right sides of a problem in the piece of a place, which may be its end."""

    def __init__(self, problem: SolverProblem, time: float, states: Sequence[float]) -> None:
        self._problem = problem
        self._origin = problem.system.origin or problem.system
        program = self._origin.body.program
        numbers = switching(program, 1 + self._origin.states)
        place = self._place(time, states)
        self._decisions = decisions_at(program, numbers, place) if numbers else {}
        self._tried: list[Decisions] = []
        self._enter()

    def _enter(self) -> None:
        self._piece = _piece(self._problem.system, self._decisions)
        self.sides = RightSides(self._piece.bodies, self._problem.given)

    def _place(self, time: float, states: Sequence[float]) -> list[float]:
        """The time, and the states and given values of the origin."""
        return [time, *states[: self._origin.states], *self._problem.given[: self._origin.given]]

    @property
    def conditions(self) -> Sequence[int]:
        """The number of the equation that each margin is of."""
        return [margin.equation for margin in self._piece.margins]

    @property
    def has_margins(self) -> bool:
        """True if the piece ends somewhere."""
        return bool(self._piece.margins)

    def margins(self, time: float, states: Sequence[float]) -> Any:
        """The margins of the piece, `[margins]`: positive inside of it, nan where they have no value."""
        np = arrays.numpy_namespace()
        assert self._piece.values is not None
        try:
            return np.array(function(self._piece.values)(*self._place(time, states)))
        except (ArithmeticError, ValueError):
            return np.full(len(self._piece.margins), np.nan)

    def settle(self) -> None:
        """Note that the solution goes on inside the piece."""
        self._tried = []

    def cross(self, numbers: Sequence[int], time: float, states: Sequence[float]) -> Sequence[float]:
        """Go over to the piece behind some margins; returns the states there. Raises EvaluationError where pieces
        follow each other at one place."""
        before, margins = self._decisions, self._piece.margins
        self._tried.append(before)
        program = self._origin.body.program
        # What the piece did not depend on may have changed since it was decided.
        fresh = decisions_at(program, [*before], self._place(time, states))
        kept = {margin.equation: before[margin.equation] for margin in margins}
        self._decisions = {**fresh, **kept, **{margins[n].equation: margins[n].beyond for n in numbers}}
        if self._decisions in self._tried or len(self._tried) > _MOST_TRIED:
            raise sliding_error(self._problem.origin + time)
        after = through(self._problem, time, states, switches_between(before, self._decisions, margins))
        self._enter()
        return after
