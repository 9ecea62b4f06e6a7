"""Solutions of initial value problems in ball arithmetic, by Taylor's method with enclosed remainders.

A step sums the Taylor series from the centre of the set of states, with Cauchy's bound of what the series leaves out.
The distances from the centre are multiplied by the enclosed derivatives of the step by the states at its begin. They
are kept in coordinates that turn with the solution, so that boxes do not wrap the set again and again (R. J. Lohner,
"Enclosing the solutions of ordinary initial and boundary value problems", in "Computerarithmetic", 1987; N. S.
Nedialkov, K. R. Jackson and G. F. Corliss, Applied Mathematics and Computation 105 (1999), 21).

The bound is that of a disc of complex time around a place on which the solution is known to exist. If |f| <= g on the
box of all states that are at most b from the start, then |y(s) - y(0)| <= b for |s| <= r if g*r <= b. Discs are made
larger step by step, each with the slopes on its box. By Cauchy's estimate the coefficient of order k of a solution is
at most b/r**k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from operator import mul
from typing import Any, NoReturn

import numpy as np
from flint import acb, arb, arb_mat, fmpq

from gradcli import limits
from gradcli.arrays.flint.balls import Balls, UndecidedError, exact, is_nan, precision
from gradcli.arrays.flint.flint_matrices import identity_matrix
from gradcli.errors import BackendError, EvaluationError, LimitError
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.complex_programs import ComplexProgram
from gradcli.functionals.complex_rules import UNDEFINED_BALL, Rule
from gradcli.functionals.integrals.ball_integrals import RULES_OF_INTEGRANDS
from gradcli.functionals.ode.ode_system import System, slopes_by_states
from gradcli.functionals.ode.recurrences import NoRecurrenceError, Recurrences, recurrences
from gradcli.functionals.ode.taylor_python_code import SeriesWriter
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Atom, Equation, Program, Variable

# The cost of an operation, in eighths of a step.
_OPERATION = 2
# Accurate bits of a ball from which no other bound is computed.
_THIN = 20


class WideProgram(ComplexProgram):
    """A program of an equation. Raises BackendError for a function that has no complex balls."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, _rule_of)

    def all_values(self, inputs: Sequence[acb], *, analytic: bool) -> list[Any]:
        """The values of all variables, and of the constants."""
        return self.values(inputs, analytic=analytic, cost=_OPERATION * len(self.variables))


def _rule_of(equation: Equation) -> Rule:
    rule = _RULES.get(equation.primitive.name)
    if rule is None:
        raise BackendError(f"'{equation.primitive.called}' has no proved digits inside a differential equation")
    return rule


def _divided(_analytic: bool, x: acb, y: acb) -> acb:
    near = y.abs_lower()
    return _within(x / y, x.abs_upper() / near) if near > 0 else UNDEFINED_BALL


def _reciprocal(_analytic: bool, x: acb) -> acb:
    near = x.abs_lower()
    return _within(1 / x, 1 / near) if near > 0 else UNDEFINED_BALL


def _within(x: acb, size: arb) -> acb:
    """A ball that is known to be of at most a size."""
    if x.is_finite() and (x.real.abs_upper() < size and x.imag.abs_upper() < size):
        return x
    around = arb(0, size)
    if not x.is_finite():
        return acb(around, around)
    return acb(x.real.intersection(around), x.imag.intersection(around))


def _power(analytic: bool, x: acb, y: acb) -> acb:
    """A power, by the polar form of a wide ball to the right of the imaginary axis."""
    exponent = y.real
    if x.real.rel_accuracy_bits() > _THIN or not (x.real > 0 and y.imag.is_zero()) or exponent.is_integer():
        return RULES_OF_INTEGRANDS["pow"](analytic, x, y)
    angle = (x.arg() * exponent).abs_upper()
    if not angle < 1.5:
        return RULES_OF_INTEGRANDS["pow"](analytic, x, y)
    sizes = x.abs_lower() ** exponent, x.abs_upper() ** exponent
    far = sizes[0].union(sizes[1])
    return acb(far * arb(angle).cos().union(arb(1)), far.abs_upper() * arb(0, arb(angle).sin().abs_upper()))


# Wide balls need bounds of their magnitude, which those of both parts exceed.
_RULES: dict[str, Rule] = {
    **RULES_OF_INTEGRANDS,
    "divide": _divided,
    "reciprocal": _reciprocal,
    "pow": _power,
    "hypot": lambda analytic, x, y: _power(analytic, x * x + y * y, acb(0.5)),
}


# The products of coefficients that an eighth of a step pays for.
_PRODUCTS = 8


class BallSeries:
    """The series of some states, and of further outputs of a body."""

    def __init__(self, body: Body, states: int) -> None:
        system = recurrences(body.program, states)
        self._recurrences = len(system.recurrences)
        self._program = WideProgram(system.program)
        self._function = _BallWriter(system, self._program.variables).function()

    def at(self, order: int, time: arb, states: Sequence[arb], given: Sequence[arb]) -> list[list[arb]]:
        """The coefficients up to `order` of the states, and up to one order less of the further outputs.

        They are not finite where the right side has none.
        """
        limits.charge_steps(order * order * self._recurrences // (2 * _PRODUCTS))
        found = self._program.all_values([acb(x) for x in (time, *states, *given)], analytic=False)
        numbers = [x.real if type(x) is acb else x for x in found]
        try:
            series = self._function(order, numbers)
        except (ZeroDivisionError, TypeError):
            # A condition is not decided, or a divisor may be 0.
            return [[arb("nan")] * (order + 1)] * len(states)
        return [[arb(c) for c in coefficients] for coefficients in series]


class _BallWriter(SeriesWriter):
    """The order-0 values are given as a list; constants are balls."""

    def __init__(self, system: Recurrences, variables: Sequence[Variable]) -> None:
        super().__init__(system)
        self.known["decided"] = _decided
        self.names = {v: f"numbers[{i}]" for i, v in enumerate(variables)}

    def function(self) -> Any:
        return self.written("numbers", [])

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Variable):
            return self.names[atom]
        return repr(atom) if type(atom) is bool else self._constant(arb(_number(atom)))

    def number(self, atom: Atom) -> str:
        return self._atom(atom)

    def _constant(self, number: arb) -> str:
        name = f"number{len(self.known)}"
        self.known[name] = number
        return name

    def _choose(self, operands: Sequence[Atom], _output: Variable) -> str:
        condition, a, b = operands
        return f"{self._last(a)} if decided({self._atom(condition)}) else {self._last(b)}"

    def _power(self, operands: Sequence[Atom], output: Variable) -> str:
        return self._power_of_nonzero(operands, output)


def _decided(condition: bool | None) -> bool:
    if condition is None:
        raise TypeError
    return condition


def _number(atom: Any) -> Any:
    return atom.numbers if type(atom) is Balls else exact(atom)


class ComplexField:
    """The slopes of the states, or other outputs of a body, on boxes of complex numbers."""

    def __init__(self, body: Body, outputs: int) -> None:
        self._program = WideProgram(body.program)
        self._outputs = self._program.outputs[:outputs]

    def sizes(self, time: acb, states: Sequence[acb], given: Sequence[acb]) -> list[arb]:
        """Bounds of the magnitudes; not finite where an output is not known to be analytic on the box."""
        found = self._program.all_values([time, *states, *given], analytic=True)
        return [_size(found[o]) for o in self._outputs]


def _size(number: acb) -> arb:
    return number.abs_upper() if number.is_finite() else arb.pos_inf()


def with_jacobian(system: System) -> Body:
    """The right side of a system, followed by its derivatives by the states, row by row."""
    states = system.states

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        slopes, others = slopes_by_states(program, inputs, states)
        return [*stepwise.outputs(program, inputs)[:states], *slopes, *others]

    return system.body.derived(run, system.body.bound, system.given)


# Bounds on the number of discs at one place, and of attempts at one of them.
_MOST_DISCS, _MOST_ATTEMPTS = 40, 10
# The factor by which a disc adds more radius than the last.
_GROWTH = 1.25
# The width of the first box that is tried, relative to the movement by the slopes before it.
_ALLOWANCE = 1.25


class Disc(NamedTuple):
    """A radius, bounds of how far each state moves on the disc, and the box of states and of time there."""

    radius: arb
    moves: Sequence[arb]
    time: acb
    box: Sequence[acb]


def discs(field: ComplexField, time: arb, states: Sequence[arb], given: Sequence[arb], first: float) -> Iterator[Disc]:
    """Discs around a place, each larger than the one before, which begin with a radius of about `first` or less."""
    reads = [acb(g) for g in given]
    radius, moves = arb(0), [arb(0)] * len(states)
    slopes = field.sizes(acb(time), [acb(y) for y in states], reads)
    if not all(s.is_finite() for s in slopes):
        return
    more = first
    for _ in range(_MOST_DISCS):
        for attempt in range(_MOST_ATTEMPTS):
            wider = radius + arb(more)
            allowed = [(m + _ALLOWANCE * more * s).upper() for m, s in zip(moves, slopes)]
            place, box = _around(time, wider), [_around(y, a) for y, a in zip(states, allowed)]
            found = field.sizes(place, box, reads)
            moved = [(m + more * s).upper() for m, s in zip(moves, found)]
            if all(m <= a for m, a in zip(moved, allowed)):
                break
            # States that begin to move have boxes that are too small before they have any.
            finite = all(s.is_finite() for s in found)
            slopes = found if finite else slopes
            if attempt % 2 or not finite:
                more /= 2
        else:
            return
        radius, moves, slopes = wider.mid() if wider.is_exact() else wider.lower(), moved, found
        yield Disc(radius, moves, place, box)
        more *= _GROWTH


def _around(number: arb, distance: arb) -> acb:
    return acb(number + arb(0, distance), arb(0, distance))


# The order of a step, for each bit of the working precision.
_ORDER_PER_BIT, _LEAST_ORDER = 0.36, 8
# The order of the derivatives by the states at the begin of a step, which need few digits, and the radius of the disc that
# bounds them, in lengths of the step.
_DERIVATIVE_ORDER, _DERIVATIVE_DISC = 12, 4
# The largest number of states whose distances are kept in turning coordinates: these cost the cube of it.
_MOST_TURNED = 16
# The first disc that is tried, as a part of that of the last step, and the largest part of a disc that a step goes.
_FIRST_DISC, _LARGEST_SHARE = 1 / 4, 0.5
# Wider discs are tried as long as the step is longer by this factor.
_WORTH_WIDENING = 1.04
# A step that is this small, as a part of the whole time, and the number of steps, that end the attempt.
_SHORTEST, _MOST_STEPS = 1e-9, 100_000
# How often weights of states are improved, and the least size of a state.
_WEIGHINGS, _TINY = 8, 1e-200
# A set of states that is this wide, relative to them, needs more digits.
_WIDE = 1e-3


def solve(given: Any, times: Any, system: System) -> Balls:
    """The states, of shape [..., times, states], for `given` values [..., given] and `times` [..., times].

    Raises EvaluationError where a solution does not exist up to the last time, or cannot be enclosed, with the time that
    was reached, and UndecidedError where the precision does not suffice.
    """
    given, times = (np.asarray(x.numbers if type(x) is Balls else x, object) for x in (given, times))
    lanes = np.broadcast_shapes(given.shape[:-1], times.shape[:-1])
    rows, moments = (
        np.broadcast_to(x, (*lanes, x.shape[-1])).reshape(math.prod(lanes), x.shape[-1]) for x in (given, times)
    )
    found = np.empty((*moments.shape, system.states), object)
    for row, (values, at) in enumerate(zip(rows, moments)):
        found[row] = _solved(system, [exact(v) for v in values], [exact(t) for t in at])
    return Balls(found.reshape(*lanes, times.shape[-1], system.states))


def key(numbers: Any) -> Hashable:
    """A key that is equal for equal balls."""
    flat = [exact(x) for x in np.asarray(numbers.numbers if type(numbers) is Balls else numbers, object).ravel()]
    return tuple(
        str(x) if type(x) is fmpq else (x.mid().man_exp(), x.rad().man_exp()) if x.is_finite() else str(x) for x in flat
    )


def _solved(system: System, given: Sequence[Any], times: Sequence[Any]) -> Sequence[Sequence[Any]]:
    if any(map(is_nan, (*given, *times))):
        return [[arb("nan")] * system.states] * len(times)
    start = [exact(s.numbers if type(s) is Balls else s) for s in system.start(*map(Balls, given))]
    lapses = [t - times[0] for t in times]
    _check_order(lapses)
    if not all(arb(x).is_finite() for x in (*given, *lapses, *start)):
        raise EvaluationError("a differential equation is solved between finite times, from finite states")
    return _Solver(system, given, start, times[0], lapses).solved()


def _check_order(lapses: Sequence[Any]) -> None:
    pairs = [*itertools.pairwise(lapses)]
    if any(b < a for a, b in pairs) and any(b > a for a, b in pairs):
        raise EvaluationError("times go back", hint="they have to ascend, or to descend, from the first one")


class _Systems(NamedTuple):
    """The programs that are derived from a system."""

    series: BallSeries
    field: ComplexField
    # None where there are too many states.
    derivatives: BallSeries | None
    jacobian: ComplexField | None


def _systems(system: System) -> _Systems:
    try:
        return _made(system)
    except NoRecurrenceError as error:
        raise BackendError(f"'{error}' has no proved digits inside a differential equation") from None


def _made(system: System) -> _Systems:
    series, field = BallSeries(system.body, system.states), ComplexField(system.body, system.states)
    if system.states > _MOST_TURNED:
        return _Systems(series, field, None, None)
    whole = with_jacobian(system)
    count = system.states * (1 + system.states)
    return _Systems(series, field, BallSeries(whole, system.states), ComplexField(whole, count))


class _Set:
    """States inside `hull` whose distances from `centre` are `turned @ offsets` where they are `moving`.

    Others are known exactly, and stay as they are.
    """

    def __init__(self, hull: Sequence[arb], moving: Sequence[int]) -> None:
        self.hull = hull
        self.centre = [y.mid() for y in hull]
        self.moving = moving
        self.offsets = arb_mat(len(moving), 1, [hull[i] - self.centre[i] for i in moving])
        self.turned = identity_matrix(len(moving))

    @property
    def is_wide(self) -> bool:
        """True if the set is so wide that it may not stand for a solution."""
        size = max(abs(y).upper() for y in self.hull)
        return not all(y.rad() <= _WIDE * size for y in self.hull)


class _Step(NamedTuple):
    """The series from the centre, the derivatives by the states, and what bounds the remainders of both."""

    series: Sequence[Sequence[arb]]
    disc: Disc
    derivatives: Sequence[arb_mat]
    # The radius of convergence and the bounds of the derivatives by the states there.
    radius: arb
    bounds: arb_mat
    length: arb


class _Solver:
    """Solves one problem; `lapses` are the times after the first one, whose number is `origin`."""

    def __init__(
        self, system: System, given: Sequence[Any], start: Sequence[Any], origin: Any, lapses: Sequence[Any]
    ) -> None:
        self._systems = _systems(system)
        self._given = [arb(g) for g in given]
        self._start, self._origin, self._lapses = start, origin, lapses
        last = arb(lapses[-1])
        self._sign = -1 if last < 0 else 1
        self._horizon = abs(last).upper()
        self._order = max(_LEAST_ORDER, math.ceil(_ORDER_PER_BIT * precision()))
        self._time = arb(0)
        self._first = float(self._horizon) or 1.0
        self._found: list[Sequence[Any] | None] = [None] * len(lapses)

    def solved(self) -> Sequence[Sequence[Any]]:
        """The states at all times."""
        state, begun, steps = _Set([arb(s) for s in self._start], range(len(self._start))), 0, 0
        while True:
            # States at the begin are those that are given.
            while begun < len(self._lapses) and self._lapses[begun] == 0:
                self._found[begun], begun = self._start, begun + 1
            ahead = [
                k for k in range(begun, len(self._lapses)) if not self._elapsed(k).upper() <= 0 or not self._found[k]
            ]
            if not ahead:
                return self._found  # type: ignore[return-value]
            steps += 1
            try:
                state, step = self._step(state, steps)
            except LimitError as error:
                raise LimitError(f"{error.message}; {self._reached()}", hint=error.hint) from None
            end = self._time + step.length
            for k in ahead:
                self._note(state, step, k)
            state, self._time = self._after(state, step, step.length), end

    def _elapsed(self, k: int) -> arb:
        """The time from here to a time that is asked for, which is positive if it lies ahead."""
        return arb(self._lapses[k]) * self._sign - self._time

    def _note(self, state: _Set, step: _Step, k: int) -> None:
        """Join the states at the part of a time that lies in a step to those that are found."""
        elapsed = self._elapsed(k)
        low, high = elapsed.lower(), elapsed.upper()
        if high < 0 or low > step.length:
            return
        inside = _between(low if low > 0 else arb(0), high if high < step.length else step.length)
        found = self._at(state, step, inside)[0] if low < 0 or high > step.length else self._at(state, step, elapsed)[0]
        known = self._found[k]
        self._found[k] = found if known is None else [a.union(b) for a, b in zip(known, found)]

    def _step(self, state: _Set, steps: int) -> tuple[_Set, _Step]:
        """The next step, and the set that it begins with, in coordinates of the states that move."""
        here = self._sign * self._time
        around, best, length = self._discs(state, here)
        if steps > _MOST_STEPS or not length > _SHORTEST * self._horizon:
            self._refuse(state)
        length = arb(float(length))
        self._first = float(best.radius) * _FIRST_DISC
        moving = [i for i, (y, move) in enumerate(zip(state.hull, best.moves)) if move > 0 or not y.is_exact()]
        if moving != [*state.moving]:
            state = _Set(state.hull, moving)
        centred = self._systems.derivatives is not None
        series = self._systems.series.at(self._order, here, state.centre if centred else state.hull, self._given)
        derivatives, radius, bounds = self._derivatives(state, here, around, length)
        return state, _Step(series, best, derivatives, radius, bounds, length)

    def _discs(self, state: _Set, here: arb) -> tuple[Sequence[Disc], Disc, arb]:
        """Discs around a place, the one that allows the longest step, and its length."""
        first = self._first
        while first > _SHORTEST * float(self._horizon) / 64:
            found, best, length = [], None, arb(0)
            for disc in discs(self._systems.field, here, state.hull, self._given, first):
                found.append(disc)
                possible = self._length(disc, found[0], state)
                enough = possible < _WORTH_WIDENING * length
                if possible > length:
                    best, length = disc, possible
                if enough:
                    break
            if best is not None:
                return found, best, length
            first /= 8
        return self._refuse(state)

    def _length(self, disc: Disc, smallest: Disc, state: _Set) -> arb:
        """The longest step on a disc that has a remainder below the tolerance."""
        # States of the size 0 that stay 0 have no remainder.
        shares = [
            float((abs(y) + small) / move)
            for y, small, move in zip(state.centre, smallest.moves, disc.moves)
            if move > 0
        ]
        share = (min(shares, default=1.0) ** (1 / (self._order + 1))) * 2.0 ** (-precision() / (self._order + 1))
        return disc.radius * min(_LARGEST_SHARE, share)

    def _refuse(self, state: _Set) -> NoReturn:
        if state.is_wide:
            raise UndecidedError("the solution cannot be enclosed: its balls grow too wide")
        raise EvaluationError(
            f"{self._reached()}, where the steps become too small",
            hint="it leaves to infinity, is stiff, or its right side jumps or bends there; leave out --digits",
        )

    def _reached(self) -> str:
        return f"the solution is enclosed up to t = {float(arb(self._origin) + self._sign * self._time):.8g} only"

    # --- derivatives by the states at the begin of a step

    def _derivatives(
        self, state: _Set, here: arb, around: Sequence[Disc], length: arb
    ) -> tuple[Sequence[arb_mat], arb, arb_mat]:
        """The matrices of the derivatives' series, and a radius with bounds of the derivatives there."""
        n, systems = len(state.hull), self._systems
        if systems.derivatives is None or systems.jacobian is None:
            return [], arb(1), arb_mat(0, 0)
        found = systems.derivatives.at(_DERIVATIVE_ORDER, here, state.hull, self._given)[n:]
        places = [i * n + j for i in state.moving for j in state.moving]
        m = len(state.moving)
        slopes = [
            arb_mat(m, m, [found[p][k] if k < len(found[p]) else 0 for p in places]) for k in range(_DERIVATIVE_ORDER)
        ]
        series = [identity_matrix(m)]
        for k in range(_DERIVATIVE_ORDER):
            total = slopes[0] * series[k]
            for j in range(1, k + 1):
                total += slopes[j] * series[k - j]
            series.append(total * (arb(1) / (k + 1)))
        disc = next((d for d in around if d.radius > _DERIVATIVE_DISC * length), around[-1])
        sizes = systems.jacobian.sizes(disc.time, disc.box, [acb(g) for g in self._given])[n:]
        rows = [[sizes[i * n + j] for j in state.moving] for i in state.moving]
        weights = _weights(
            rows, [float((abs(state.hull[i]) + disc.moves[i]).upper()) for i in state.moving], disc.radius
        )
        # By Gronwall's inequality, in the norm that is weighted by the sizes of the states.
        norms = [sum(map(mul, row, weights)) / w for row, w in zip(rows, weights)]
        growth = (max(norms, default=arb(0)).upper() * disc.radius).exp()
        return series, disc.radius, arb_mat(m, m, [growth * a / b for a in weights for b in weights])

    # --- the end of a step

    def _at(self, state: _Set, step: _Step, lapse: arb) -> tuple[list[arb], list[arb], arb_mat | None]:
        """The states some time after the begin of a step; those from the centre alone, and the derivatives by the
        offsets."""
        time = lapse * self._sign
        share = (abs(lapse).upper() / step.disc.radius).upper()
        if not share < 1:
            raise UndecidedError("the solution cannot be enclosed: its times are too wide")
        rest = (share ** (self._order + 1) / (1 - share)).upper()
        point = [
            _polynomial(series, time) + arb(0, (rest * move).upper())
            for series, move in zip(step.series, step.disc.moves)
        ]
        if not step.derivatives:
            return point, point, None
        m = len(state.moving)
        total = step.derivatives[-1]
        for matrix in reversed(step.derivatives[:-1]):
            total = total * time + matrix
        share = (abs(lapse).upper() / step.radius).upper()
        if not share < 1:
            raise UndecidedError("the solution cannot be enclosed: its times are too wide")
        rest = (share ** len(step.derivatives) / (1 - share)).upper()
        total += arb_mat(m, m, [arb(0, (rest * b).upper()) for b in step.bounds.entries()])
        turned = total * state.turned
        hull = [*state.hull]
        for i, moved in zip(state.moving, (turned * state.offsets).entries()):
            hull[i] = point[i] + moved
        return hull, point, turned

    def _after(self, state: _Set, step: _Step, lapse: arb) -> _Set:
        """The set at the end of a step."""
        hull, point, turned = self._at(state, step, lapse)
        if not all(y.is_finite() for y in hull):
            raise UndecidedError("the solution cannot be enclosed: its balls grow too wide")
        found = _Set(hull, state.moving)
        if turned is None:
            return found
        coordinates = _coordinates(turned, state.offsets, [hull[i] for i in state.moving])
        if coordinates is None:
            return found
        turned_again, back = coordinates
        for i in state.moving:
            found.centre[i] = point[i].mid()
        errors = arb_mat(len(state.moving), 1, [point[i] - found.centre[i] for i in state.moving])
        found.turned, found.offsets = turned_again, (back * turned) * state.offsets + back * errors
        return found


def _weights(rows: Sequence[Sequence[arb]], sizes: Sequence[float], radius: arb) -> list[arb]:
    """Weights of states by which the derivatives of their slopes, bounded by `rows`, have a small norm.

    They are near the eigenvector of the largest eigenvalue, as sizes that no slope changes much in the time of a radius.
    """
    if not sizes:
        return []
    matrix = np.array([[float(x) for x in row] for row in rows])
    found = np.array(sizes) / max(max(sizes), _TINY) + _TINY
    for _ in range(_WEIGHINGS):
        found = found + float(radius) * matrix @ found
        found = found / found.max()
    if not np.isfinite(found).all():
        return [arb(1)] * len(sizes)
    return [arb(w) for w in found]


def _coordinates(turned: arb_mat, offsets: arb_mat, hull: Sequence[arb]) -> tuple[arb_mat, arb_mat] | None:
    """Orthogonal coordinates, in units of the states, whose first axis is along the longest side of a set; and the
    inverse. None where there are none."""
    n = len(hull)
    sizes = [abs(y).upper() for y in hull]
    largest = max(sizes, default=arb(0))
    units = [float(s / largest) or 1.0 for s in sizes] if largest > 0 else [1.0] * n
    widths = [abs(o).upper() for o in offsets.entries()]
    widest = max(widths, default=arb(0))
    if not widest > 0:
        return None
    sides = np.array([[float(x.mid()) for x in row] for row in turned.tolist()])
    sides = sides / np.array(units)[:, None] * np.array([float(w / widest) for w in widths])
    if not np.isfinite(sides).all():
        return None
    order = np.argsort(-np.linalg.norm(sides, axis=0))
    axes = np.linalg.qr(sides[:, order])[0] * np.array(units)[:, None]
    found = arb_mat(n, n, axes.ravel().tolist())
    try:
        return found, found.inv()
    except ZeroDivisionError:
        return None


def _between(low: arb, high: arb) -> arb:
    return low.union(high)


def _polynomial(series: Sequence[arb], time: arb) -> arb:
    total = series[-1]
    for c in reversed(series[:-1]):
        total = total * time + c
    return total
