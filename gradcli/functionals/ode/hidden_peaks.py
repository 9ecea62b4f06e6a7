"""Decides by bounds whether a right side may have a peak within a step that the series at its begin does not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.integrals.quadrature import nodes_between, resolving_panels, sampled
from gradcli.functionals.interval_bounds import NoBoundsError, Range, has_ranges, ranges
from gradcli.functionals.ode.ode_system import System
from gradcli.functionals.ode.right_sides import function
from gradcli.functionals.ode.solver_progress import SolverProblem
from gradcli.loops.rolled_loop import BodyPath
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries import arithmetic, powers
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import needed_variables, optimise

# A slope that could exceed those of the series by this multiple may hide a peak, if it would change a state by more than
# this part of its size.
_LEAVING, _HIDDEN = 10.0, 1e-6
# The places in a step at which the series is evaluated.
PLACES = 9
# A series does not show exponentials and the like whose exponents have a magnitude above this, and its length allows for
# those with one below this: its terms have the size of the exponential, times powers of the slope of the exponent.
UNSEEN, _ACTIVE = 100.0, 50.0
# Steps are made shorter to this part for peaks that they might step over.
SHORTEST_PART = 2.0**-16
# The number of parts of the time in which narrow peaks of functions of the time are looked for first, and the part of
# their integral that may be missed.
_PARTS, _MISSED = 64, 1e-9
# A function has a peak in a part if it is farther from a line there than this share of its range there, and if that
# range is more than this share of its largest magnitude.
_BENT, _LEAST_RANGE = 0.1, 1e-9
# Powers up to this one have no narrow peaks that those of lower powers do not show.
_WIDE_POWER = 8


def hides(problem: SolverProblem, time: float, series: Sequence[Sequence[float]], lapse: float) -> bool:
    """Return whether a step from a time may step over a peak of the right side."""
    np = arrays.numpy_namespace()
    if is_polynomial(problem.system):
        return False
    given = np.array(problem.given)[:, None]
    found = hides_each(problem.system, given, np.array([time]), np.array(series)[:, :, None], np.array([lapse]))
    return bool(found[0])


def hides_each(system: System, given: Any, times: Any, series: Any, lapses: Any) -> Any:
    """The same for many problems, by the last axis; `series` is of shape [states, orders, problems]."""
    np = arrays.numpy_namespace()
    base = system.base or system
    if is_polynomial(system):
        return np.zeros(len(times), bool)
    states, slopes = _states_and_slopes(series[: base.states], lapses)
    ends = Range(np.minimum(times, times + lapses), np.maximum(times, times + lapses))
    inputs = [ends, *map(Range, states.min(axis=1), states.max(axis=1)), *(Range(g, g) for g in given)]
    try:
        with arrays.using_namespace(None):
            bounds = ranges(base.body.program, inputs)[: base.states]
    except NoBoundsError:
        return np.zeros(len(times), bool)
    found = np.zeros(len(times), bool)
    for (least, most), slope, size in zip(bounds, slopes, np.abs(states).max(axis=1)):
        beyond = np.maximum(most - slope.max(axis=0), slope.min(axis=0) - least)
        leaves = (beyond > _LEAVING * np.abs(slope).max(axis=0)) & (beyond * np.abs(lapses) > _HIDDEN * size)
        found |= leaves & np.isfinite(beyond)
    return found


def has_unseen_exponentials(
    problem: SolverProblem, time: float, states: Sequence[float], negligible: float = UNSEEN
) -> bool:
    """Return whether an exponential or the like of states is so small or large at a place that no series there shows
    it."""
    body = _kind(problem.system).exponents
    if body is None:
        return False
    try:
        found = function(body)(time, *states[: body.bound - 1], *problem.given[: body.reads])
    except (ArithmeticError, ValueError):
        return True
    return any(abs(exponent) > negligible for exponent in found)


def becomes_active(problem: SolverProblem, time: float, series: Sequence[Sequence[float]], lapse: float) -> bool:
    """Return whether a series may show such an exponential within a step that begins without it."""
    np = arrays.numpy_namespace()
    given = np.array(problem.given)[:, None]
    found = become_active(problem.system, given, np.array([time]), np.array(series)[:, :, None], np.array([lapse]))
    return bool(found[0])


def become_active(system: System, given: Any, times: Any, series: Any, lapses: Any) -> Any:
    """The same for many problems, as `hides_each`."""
    return active_within(
        system, given, times, series[:, 0], lambda: _states_and_slopes(series, lapses)[0], lapses, UNSEEN, _ACTIVE
    )


def active_within(
    system: System,
    given: Any,
    times: Any,
    start: Any,
    states_within: Callable[[], Any],
    lapses: Any,
    negligible: float,
    active: float,
) -> Any:
    """A mask of the problems in which some exponent has a magnitude above `negligible` at the start of a step, and may
    have one below `active` within the step.

    `start` has the states at the start, [states, problems]; `states_within` computes those at places within the step,
    [states, places, problems].
    """
    np = arrays.numpy_namespace()
    body = _kind(system).exponents
    found = np.zeros(len(times), bool)
    if body is None:
        return found
    count = body.bound - 1
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        before = stepwise.outputs(body.program, [times, *start[:count], *given[: body.reads]])
        here = [np.abs(exponent) > negligible for exponent in before]
        if not any(map(np.any, here)):
            return found
        states = states_within()[:count]
        ends = Range(np.minimum(times, times + lapses), np.maximum(times, times + lapses))
        inputs = [
            ends,
            *map(Range, states.min(axis=1), states.max(axis=1)),
            *(Range(g, g) for g in given[: body.reads]),
        ]
        for (least, most), was in zip(ranges(body.program, inputs), here):
            found |= was & (least < active) & (most > -active)
    return found


def _states_and_slopes(series: Any, lapses: Any) -> tuple[Any, Any]:
    """The values and the slopes of series at places in steps, [states, places, problems]."""
    np = arrays.numpy_namespace()
    orders = np.arange(series.shape[1])
    places = np.linspace(0.0, 1.0, PLACES)[:, None, None]
    # [places, orders, problems]
    powers = (places * lapses) ** orders[:, None]
    coefficients = series[:, None]
    return (
        (coefficients * powers).sum(axis=2),
        (coefficients[:, :, 1:] * orders[1:, None] * powers[:, :-1]).sum(axis=2),
    )


def is_polynomial(system: System) -> bool:
    """Return whether a right side computes polynomials, which have no narrow peaks."""
    return _kind(system).polynomial


def has_peaks(system: System) -> bool:
    """Return whether the right side may have narrow peaks as a function of the time alone."""
    return _kind(system).forcing is not None


def peaks(system: System, given: Sequence[float], end: float) -> list[float]:
    """Times from 0 to `end` at and beside narrow peaks that the right side has as a function of the time alone.

    Far from such a peak it is 0 with all its derivatives, so that no series shows it, but steps that end there.
    """
    forcing = _kind(system).forcing
    if forcing is None:
        return []
    np = arrays.numpy_namespace()
    count = len(forcing.outputs)

    def values_at(t: Any, row: Any) -> Any:
        values = stepwise.outputs(forcing, [t, *given])
        # Truth values are 0 and 1.
        return np.array([np.broadcast_to(v, t.shape) for v in values], float)[row, np.arange(len(t))]

    def bounds(low: Any, high: Any, row: Any) -> tuple[Any, Any]:
        try:
            found = ranges(forcing, [Range(low, high), *(Range(g, g) for g in given)])
        except NoBoundsError:
            return np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
        least, most = (np.array([np.broadcast_to(b[k], low.shape) for b in found]) for k in (0, 1))
        return least[row, np.arange(len(low))], most[row, np.arange(len(low))]

    edges = np.linspace(min(end, 0.0), max(end, 0.0), _PARTS + 1)
    parts = np.repeat(np.arange(count), _PARTS), np.tile(edges[:-1], count), np.tile(edges[1:], count)
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        row, low, high = resolving_panels(values_at, bounds, *parts, _MISSED)
        nodes, values = nodes_between(low, high), sampled(values_at, row, low, high)
    first, last = values[:, :1], values[:, -1:]
    line = first + (last - first) * (nodes - nodes[:, :1]) / (nodes[:, -1:] - nodes[:, :1])
    spread, bend = np.ptp(values, axis=1), np.abs(values - line)
    whole = np.zeros(count)
    np.maximum.at(whole, row, np.abs(values).max(axis=1))
    peaked = (bend.max(axis=1) > _BENT * spread) & (spread > _LEAST_RANGE * whole[row])
    places = nodes[np.arange(len(row)), bend.argmax(axis=1)]
    return sorted({*places[peaked].tolist(), *low[peaked].tolist(), *high[peaked].tolist()})


class _Kind(NamedTuple):
    """The functions in a right side.

    `polynomial` is True if all are polynomials, which have no narrow peaks. `forcing` computes those of the time alone
    that may have narrow peaks, from the time and the given values; `exponents` computes the exponents of exponentials
    and the like that depend on states, from the time and the states. Each is None where there are none.
    """

    polynomial: bool
    forcing: Program | None
    exponents: Body | None


_kinds: WeakKeyDictionary[System, _Kind] = WeakKeyDictionary()


def _kind(system: System) -> _Kind:
    base = system.base or system
    found = _kinds.get(base)
    if found is None:
        if all(map(_is_polynomial, base.body.program.equations)):
            found = _Kind(True, None, None)
        else:
            found = _Kind(False, _forcing(_with_clocks(base)), _exponents(base.body))
        _kinds[base] = found
    return found


def _with_clocks(system: System) -> Body:
    """The right side as it is where states that have constant slopes are functions of the time."""
    body, count = system.body, system.states
    needed = [needed_variables(body.program.equations, [rate]) for rate in body.program.outputs[:count]]
    clocks = [k for k in range(count) if needed[k].isdisjoint(body.program.inputs[: body.bound])]
    if not clocks:
        return body

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        time, *rest = inputs
        starts = stepwise.outputs(system.start.program, rest[count:])
        rates = stepwise.outputs(program, inputs)
        for k in clocks:
            rest[k] = starts[k] + rates[k] * time
        return stepwise.outputs(program, [time, *rest])

    return body.derived(run, body.bound, body.reads)


def _is_polynomial(equation: Equation) -> bool:
    primitive = equation.primitive
    return primitive in _POLYNOMIAL or (primitive is powers.whole_power and equation.params["n"] >= 0)


def _forcing(body: Body) -> Program | None:
    program = body.program
    time, *states = program.inputs[: body.bound]
    timed, moved = {time}, {*states}
    peaked: set[Atom] = set()
    # Multiples of the time, plus a number, and of a function of that which rises or falls all the time.
    lines: set[Atom] = {time}
    monotone: set[Atom] = set()
    used: list[Atom] = [*program.outputs]
    for equation in program.equations:
        primitive, inputs, _, output = equation
        read = {a for a in inputs if isinstance(a, Variable)}
        if not timed.isdisjoint(read) and not _is_wide(equation):
            peaked.add(output)
        for kind in (timed, moved, peaked):
            if not kind.isdisjoint(read):
                kind.add(output)
        if output in moved:
            used += read
        numbers = timed.isdisjoint(inputs[1:]) or (primitive in _COMMUTATIVE and timed.isdisjoint(inputs[:1]))
        if numbers and not lines.isdisjoint(read) and primitive in _LINEAR:
            lines.add(output)
        divides = primitive is arithmetic.divide and timed.isdisjoint(inputs[:1])
        rises = primitive.name in _MONOTONE or divides
        if (rises and not lines.isdisjoint(read)) or (
            numbers and not monotone.isdisjoint(read) and primitive in _LINEAR
        ):
            monotone.add(output)
    outputs = tuple(dict.fromkeys(a for a in used if isinstance(a, Variable) and a in peaked - moved - monotone))
    if not outputs:
        return None
    return optimise(Program((time, *program.inputs[body.bound :]), program.equations, outputs))


def _is_wide(equation: Equation) -> bool:
    """Return whether an operation has no narrow peaks but those of its operands."""
    primitive, inputs, params, _ = equation
    if primitive is powers.whole_power:
        return bool(0 <= params["n"] <= _WIDE_POWER)
    if primitive is arithmetic.divide:
        return not isinstance(inputs[1], Variable)
    return primitive in _POLYNOMIAL or primitive.name in _WIDE


def exponents_of_states(program: Program, states: int) -> list[tuple[Variable, bool]]:
    """The exponents of exponentials and the like that depend on states. With True, the exponent is the square of the
    variable."""
    moved = {*program.inputs[1 : 1 + states]}
    found = []
    for primitive, inputs, _, output in program.equations:
        exponent = inputs[-1]
        if primitive.name in _VANISHING and isinstance(exponent, Variable) and exponent in moved:
            found.append((exponent, primitive.name in _OF_SQUARES))
        if not moved.isdisjoint(a for a in inputs if isinstance(a, Variable)):
            moved.add(output)
    return list(dict.fromkeys(found))


def _exponents(body: Body) -> Body | None:
    """The exponents that depend on states of a right side, if bounds of them are known."""
    program = body.program
    squares: list[Equation] = []
    found = []
    for exponent, is_root in exponents_of_states(program, body.bound - 1):
        if is_root:
            squares.append(Equation(arithmetic.multiply, (exponent, exponent), {}, Variable((), "float64")))
        found.append(squares[-1].output if is_root else exponent)
    exponents = optimise(Program(program.inputs, (*program.equations, *squares), tuple(found)))
    return Body([BodyPath(exponents, ())], exponents, body.bound) if found and has_ranges(exponents) else None


_POLYNOMIAL = frozenset({arithmetic.add, arithmetic.subtract, arithmetic.negative, arithmetic.multiply})
_COMMUTATIVE = frozenset({arithmetic.add, arithmetic.multiply})
_LINEAR = _POLYNOMIAL | {arithmetic.divide}
# Functions without narrow peaks, and monotone functions, which may have a singularity that limits steps.
_WIDE = frozenset({
    "sin", "cos", "log", "log1p", "log2", "log10", "abs", "sign", "floor", "ceil", "trunc", "round", "remainder",
    "floor_divide", "fmod", "maximum", "minimum", "where", "less", "less_equal", "greater", "greater_equal", "equal",
    "not_equal", "logical_and", "logical_or", "logical_not",
})  # fmt: skip
_MONOTONE = frozenset({"exp", "sqrt", "log", "reciprocal"})
# Functions whose derivative is the exponential of a square, and functions that are 0, or constant, outside of some
# range.
_OF_SQUARES = frozenset({"erf", "erfc"})
_VANISHING = _OF_SQUARES | {"exp", "expm1", "sinh", "cosh", "tanh", "sech", "sigmoid", "logsigmoid", "pow"}
