"""Places at which an integrand jumps or bends, as functions of what it reads, and the integrand between them.

An integral whose integrand switches where t = c has a derivative by c that the derivative of the integrand does not
have. Split at the places of the switches, each part is smooth, and its limits have derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO, is_exact
from gradcli.autograd.engine import grad
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.executors import stepwise
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body
from gradcli.functionals.interval_bounds import NoBoundsError, Range, ranges
from gradcli.functionals.roots.root_primitives import implicit_derivative
from gradcli.kinds.jets import Jet
from gradcli.loops.body_tracing import frozen
from gradcli.loops.rolled_loop import BodyPath
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, bind, concrete, constant
from gradcli.primitives.entries.arithmetic import (
    absolute,
    ceil,
    copysign,
    floor,
    floor_divide,
    fmod,
    heaviside,
    negative,
    remainder,
    round_to_even,
    sign,
    subtract,
    trunc,
)
from gradcli.primitives.entries.comparisons import (
    clip_between,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    not_equal,
    where,
)
from gradcli.primitives.entries.elementwise.trigonometric import atan2, hypot
from gradcli.primitives.entries.exponential import exp, expm1, relu
from gradcli.primitives.entries.special_functions.special import elu, leaky_relu, lgamma
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import needed_variables, optimise

# The number of places between the limits at which switches are looked for, and of bisections that locate one.
_EXAMINED, _BISECTIONS = 1_000, 80
# The number of golden sections that locate an extreme between three of these places, to about a unit in the last place.
_SECTIONS = 60
# A bound on the number of places to which these are refined.
_MOST_EXAMINED = 2**20
# A bound on the number of parts of an integral between switches: each takes about a millisecond.
_MOST_PIECES = 2_000
# The integrand as a part of its largest value that is negligible, where not each of the whole numbers between two places
# is looked for, and a bound on how many are.
_NEGLIGIBLE, _MOST_NUMBERS = 2.0**-60, 2_000
# The number of integrals whose switches are looked for at once, which bounds the memory.
_ROWS_AT_ONCE = 256
# The number of parts of an interval of which each has bounds.
_PARTS = 256
# Leaves are moved by shares of this, relative and absolute, that are multiples of the golden ratio modulo 1.
_MOVED = 1e-7
# The difference of operands that switch at a limit, relative to the largest one at a limit, and the least one beside it.
_AT_LIMIT, _BESIDE_LIMIT = 2.0**-48, 1e-11
# Newton steps that make the place of a switch as accurate as its equation is.
_NEWTON_STEPS = 3

_COMPARISONS = frozenset({less, less_equal, greater, greater_equal, equal, not_equal})
# Those that hold, or fail, at single points alone, which an integral does not see, unless another switch makes operands
# equal.
_AT_POINTS = frozenset({equal, not_equal})
_ORDERED = frozenset({maximum, minimum})
_CONTINUOUS = _ORDERED | {absolute, relu}
_STEPS = frozenset({floor, ceil})
# The operations whose switches can be found.
_FOUND = _COMPARISONS | _CONTINUOUS | _STEPS | {sign}


class IntegralPiece(NamedTuple):
    """A part of an integral: its limits, the integrand without its switches, and samples of the limits and of all reads, as
    `samples` gives them; in ball arithmetic there are none."""

    low: Any
    high: Any
    body: Body
    sampled: Sequence[float] = ()


def moved_switches(body: Body, *, jumps: bool, operands: Sequence[Any] = ()) -> frozenset[int]:
    """The inputs, by number, on which it depends where a body switches along its bound variable.

    With `jumps`, only where it may jump, not where it bends. Of an integral with some `operands`, limits and reads, only
    where bounds do not exclude that it bends between the limits.
    """
    left = _AT_POINTS | _CONTINUOUS if jumps else _AT_POINTS
    if jumps and not body.is_derivative:
        # It bends where both operands are 0, and its derivatives jump there, but cannot be told from others.
        left |= {hypot}
    found = [e for e in _switching(body.program) if e.primitive not in left]
    if any(e.primitive is hypot for e in found):
        numbers = [*map(number_of, operands)]
        found = [e for e in found if e.primitive is not hypot or not _is_apart_from_0(body.program, e, numbers)]
    return _moving(body, found)


def _is_apart_from_0(program: Program, equation: Equation, operands: Sequence[float | None]) -> bool:
    """Return whether bounds exclude that the result of an equation, which is 0 or more, is 0 between two limits; both and
    the reads are the `operands`."""
    if not operands or None in operands:
        return False
    np = arrays.numpy_namespace()
    low, high, *reads = operands
    first, last = sorted([low, high])  # type: ignore[type-var]
    parts = _PARTS if math.isfinite(last - first) else 1  # type: ignore[operator]
    edges = np.array([first, last]) if parts == 1 else np.linspace(first, last, parts + 1)
    inputs = [Range(edges[:-1], edges[1:]), *(Range(r, r) for r in reads)]
    equations = program.equations[: program.equations.index(equation)]
    try:
        (found,) = ranges(Program(program.inputs, (*equations, equation), (equation.output,)), inputs)
    except NoBoundsError:
        return False
    return bool((found.low > 0).all())


def _moving(body: Body, switching: Iterable[Equation]) -> frozenset[int]:
    """The inputs, by number, on which the places of switches depend."""
    program = body.program
    found: set[int] = set()
    for equation in switching:
        read = needed_variables(program.equations, [a for a in equation.inputs if isinstance(a, Variable)])
        if program.inputs[0] in read:
            found |= {i for i, v in enumerate(program.inputs) if v in read}
    return frozenset(found - {0})


def pieces(body: Body, low: Any, high: Any, reads: Sequence[Any]) -> list[IntegralPiece] | None:
    """The parts of the integral of a body between the switches; None where their places do not matter or are unknown, or
    are too many.

    That no switch was missed is not proved.
    """
    if not _moving(body, _switching(body.program)):
        return None
    numbers = [n for n in map(number_of, (low, high, *reads)) if n is not None]
    if len(numbers) < 2 + len(reads):
        return None
    first, last, *given = numbers
    places = _places(body.program, first, last, given)
    if places is None:
        return None
    at_limits = first, last
    first, last, *moved = samples([low, high, *reads])
    _report_switches_at_limits(at_limits, (first, last), body.program, given, moved)
    moved_places = [_found(None, p.at, *moved, body=_body_of(body, p)) for p in places]
    # A switch that is where a limit is, and moves with it, is at no place between.
    ends_of = [(low, at_limits[0], first), (high, at_limits[1], last)]
    known = [(p, to, differentiable(body, p, reads)) for p, to in zip(places, moved_places)]
    inner = [
        (p, to, edge)
        for p, to, edge in known
        if not any(
            _is_same(p.at, at) and _is_same(to, end) and _is_constant_apart(edge, limit) for limit, at, end in ends_of
        )
    ]
    edges = [low, *(edge for _, _, edge in inner), high]
    ends = [at_limits[0], *(p.at for p, _, _ in inner), at_limits[1]]
    sampled = [first, *(to for _, to, _ in inner), last]
    return [
        IntegralPiece(edges[i], edges[i + 1], between(body, ends[i], ends[i + 1], given), [*sampled[i : i + 2], *moved])
        for i in range(len(edges) - 1)
    ]


def _is_constant_apart(edge: Any, limit: Any) -> bool:
    """Return whether the difference of two values has no derivatives along a series, which no samples tell."""
    apart = edge - limit
    if not isinstance(apart, Jet):
        return True
    return all(
        c is None or abs(constant(c)) <= _BESIDE_LIMIT for c in map(apart.coefficient, range(1, apart.order + 1))
    )


def _is_same(a: float, b: float) -> bool:
    return abs(a - b) <= _AT_LIMIT * min(abs(a), abs(b))


def _report_switches_at_limits(
    limits: Sequence[float],
    moved_limits: Sequence[float],
    program: Program,
    reads: Sequence[float],
    moved: Sequence[float],
) -> None:
    """Report a limit at which a program switches, if it does not where all are moved: on one side, the switch is inside."""
    with arrays.using_namespace(None), arrays.quiet():
        for equation, crossing in _crossings(program):
            if equation.primitive not in _FOUND - _AT_POINTS:
                continue
            values = [float(stepwise.outputs(crossing, [limit, *reads])[0]) for limit in limits]
            size = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
            for limit, other, value in zip(limits, moved_limits, values):
                if not math.isfinite(limit) or not math.isfinite(value):
                    continue
                level = round(value) if equation.primitive in _STEPS else 0
                after = float(stepwise.outputs(crossing, [other, *moved])[0])
                if abs(value - level) <= _AT_LIMIT * size and abs(after - level) > _BESIDE_LIMIT * size:
                    shortfalls.report_switch("integrate", limit)


def number_or_ball_of(value: Any) -> Any:
    """The number or ball of a real value that is no batch and no recording, else None."""
    while type(value) in (Tensor, Jet):
        value = value.inner
    return None if isinstance(value, Kind) or arrays.shape(value) or arrays.is_complex(value) else value


def number_of(value: Any) -> float | None:
    """The number of a real value that is no batch and no recording, else None."""
    found = number_or_ball_of(value)
    return None if found is None else float(found)


def samples(values: Sequence[Any]) -> list[float]:
    """The numbers of values, to first order, where each element of the leaves of their graphs is moved by another share."""
    np = arrays.numpy_namespace()
    leaves = [*{id(leaf): leaf for value in values for leaf in _leaves(value)}.values()]
    moves, count = [], 0
    for leaf in leaves:
        numbers = arrays.to_numpy(concrete(leaf))
        shares = (np.arange(count + 1, count + 1 + numbers.size) * GOLDEN_RATIO % 1.0).reshape(numbers.shape)
        moves.append(_MOVED * shares * (1.0 + np.abs(numbers)))
        count += numbers.size
    return [_number_moved(value, leaves, moves) for value in values]


def _number_moved(value: Any, leaves: Sequence[Tensor], moves: Sequence[Any]) -> float:
    number = number_of(value)
    assert number is not None
    if not (isinstance(value, Tensor) and value.requires_grad):
        return number
    slopes = grad([value], leaves, allow_unused=True, retain_graph=True)
    # Complex leaves are moved by real numbers, for which the real parts of the slopes tell the change.
    return number + sum(
        float((arrays.to_numpy(concrete(s)).real * move).sum()) for s, move in zip(slopes, moves) if s is not None
    )


def _leaves(value: Any) -> list[Tensor]:
    """The leaves of the graph of a value by which is differentiated."""
    if not (isinstance(value, Tensor) and value.requires_grad):
        return []
    found, seen, left = [], set(), [value.grad_fn or value]
    while left:
        target = left.pop()
        if id(target) in seen:
            continue
        seen.add(id(target))
        if isinstance(target, Node):
            left += [edge[0] for edge in target.edges if edge is not None]
        else:
            found.append(target)
    return found


class Place(NamedTuple):
    """A place where a body switches, and the program whose output is 0 there."""

    # A float, or a ball.
    at: Any
    crossing: Program


class Switch(NamedTuple):
    """A switch along the bound variable: where `crossing` is 0, or a whole number if it is a `step`."""

    crossing: Program
    step: bool


def _switching(program: Program) -> Iterator[Equation]:
    """The equations that switch, among them those whose places cannot be found."""
    for equation in program.equations:
        primitive = equation.primitive
        # A complex number has no sign that changes along a line, and its modulus bends nowhere but at 0.
        if any(map(arrays.is_complex, equation.inputs)):
            continue
        if primitive in _COMPARISONS | _CONTINUOUS or primitive.jumps or primitive.smooth is not None:
            yield equation


def _crossings(program: Program) -> Iterator[tuple[Equation, Program]]:
    """The equations that switch along the bound variable, with the program of the difference of their operands."""
    for equation in _switching(program):
        operands = [*equation.inputs, 0.0][:2]
        output = Variable((), "float64")
        difference = Equation(subtract, tuple(operands), {}, output)
        if program.inputs[0] in needed_variables([*program.equations, difference], [output]):
            yield equation, optimise(Program(program.inputs, (*program.equations, difference), (output,)))


def all_switches(program: Program) -> list[Switch]:
    """All switches along the bound variable whose places can be found."""
    return [Switch(c, e.primitive in _STEPS) for e, c in _crossings(program) if e.primitive in _FOUND]


def switches(body: Body) -> bool:
    """Return whether a body switches anywhere along its bound variable."""
    return any(True for _ in _crossings(body.program))


def is_smooth(body: Body, low: float, high: float, reads: Sequence[float]) -> bool:
    """Return whether bounds exclude that a body switches where its bound variable is between two numbers."""
    return all(e.primitive in _FOUND for e, _ in _crossings(body.program)) and keeps_branches(body, low, high, reads)


def keeps_branches(body: Body, low: float, high: float, reads: Sequence[float]) -> bool:
    """Return whether bounds exclude that a body takes another branch where its bound variable is between two numbers:
    that a comparison, a sign or a step changes there."""
    inputs = [Range(low, high), *(Range(r, r) for r in reads)]
    for equation, crossing in _crossings(body.program):
        if equation.primitive not in _FOUND:
            continue
        try:
            least, most = map(float, ranges(crossing, inputs)[0])
        except NoBoundsError:
            return False
        if not (least > 0 or most < 0) or (equation.primitive in _STEPS and least // 1 != most // 1):
            return False
    return True


def _places(program: Program, first: float, last: float, reads: Sequence[float]) -> list[Place] | None:
    """The places of all switches, from the first limit to the last; None where they are too many."""
    np = arrays.numpy_namespace()
    found: list[Place] = []
    line = _line(np, first, last)[None]
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        for crossing, step in all_switches(program):
            _, places = _changes(np, program, crossing, step, line, [np.array([r]) for r in reads])
            if len(found) + len(places) >= _MOST_PIECES:
                return None
            for at in places.tolist():
                value = float(stepwise.outputs(crossing, [at, *reads])[0]) if step else 0.0
                # At a pole a function takes all whole numbers, and no one of them.
                if math.isfinite(value):
                    found.append(Place(at, minus(crossing, float(round(value)))))
    return sorted(found, key=lambda place: place.at, reverse=first > last)


def places_of_rows(body: Body, low: Any, high: Any, reads: Sequence[Any]) -> tuple[Any, Any]:
    """The places between the limits of many integrals at which a body switches: the numbers of the integrals, and the
    places."""
    np = arrays.numpy_namespace()
    rows, places = [np.zeros(0, int)], [np.zeros(0)]
    found = all_switches(body.program)
    for start in range(0, len(low) if found else 0, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, len(low)))
        lines = [_line(np, low[n], high[n]) for n in numbers]
        # Lines with an infinite end are shorter.
        line = np.array([np.pad(t, (0, _EXAMINED - len(t)), mode="edge") for t in lines])
        for crossing, step in found:
            row, place = _changes(np, body.program, crossing, step, line, [r[numbers] for r in reads])
            rows.append(numbers[row])
            places.append(place)
    return np.concatenate(rows), np.concatenate(places)


def _changes(
    np: Any, program: Program, crossing: Program, step: bool, line: Any, reads: Sequence[Any]
) -> tuple[Any, Any]:
    """The rows of `line`, [rows, places], in which the crossing of a switch of `program` changes its sign or its whole
    number, and where."""
    state = np.floor if step else np.sign

    def states_at(t: Any, given: Sequence[Any]) -> Any:
        return state(np.broadcast_to(stepwise.outputs(crossing, [t, *given])[0], t.shape))

    with np.errstate(all="ignore"):
        columns = [r[:, None] for r in reads]
        line, changes = _resolved(
            np,
            line,
            lambda t: np.diff(states_at(t, columns)),
            lambda t: np.abs(np.broadcast_to(stepwise.outputs(program, [t, *columns])[0], t.shape)),
        )
        states = states_at(line, columns)
        row, column = np.nonzero(changes)
        level = np.maximum(states[row, column], states[row, column + 1])
        if step and len(row):
            sizes = np.abs(np.broadcast_to(stepwise.outputs(program, [line, *columns])[0], line.shape))
            row, column, level = _each_number(np, states, sizes, row, column)
        before, after, left = line[row, column], line[row, column + 1], states[row, column] >= level
        if not step:
            number, ends = _beyond_extremes(np, crossing, line, reads)
            row, level = np.concatenate([row, number]), np.concatenate([level, np.zeros(len(number))])
            before, after = (np.concatenate(pair) for pair in zip((before, after), ends))
            left = np.concatenate([left, states_at(ends[0], [r[number] for r in reads]) >= 0.0])
        given = [r[row] for r in reads]
        for _ in range(_BISECTIONS if len(row) else 0):
            middle = 0.5 * (before + after)
            same = (states_at(middle, given) >= level) == left
            before, after = np.where(same, middle, before), np.where(same, after, middle)
    return row, 0.5 * (before + after)


def _beyond_extremes(np: Any, crossing: Program, line: Any, reads: Sequence[Any]) -> tuple[Any, tuple[Any, Any]]:
    """The rows of `line` in which a crossing changes its sign twice between three neighbouring places, as that of
    abs(t - 0.3) < 1e-7 does, and the pairs of places between which it does so once: an extreme, and those on its sides.
    """
    columns = [r[:, None] for r in reads]
    values = np.broadcast_to(stepwise.outputs(crossing, [line, *columns])[0], line.shape)
    sizes, signs = np.abs(values), np.sign(values)
    inner = np.isfinite(sizes[:, :-2]) & np.isfinite(sizes[:, 2:]) & (signs[:, :-2] == signs[:, 2:])
    inner &= (signs[:, 1:-1] == signs[:, 2:]) & (sizes[:, 1:-1] < sizes[:, :-2]) & (sizes[:, 1:-1] <= sizes[:, 2:])
    row, column = np.nonzero(inner)
    sign, first, last = signs[row, column], line[row, column], line[row, column + 2]
    given = [r[row] for r in reads]

    def heights(t: Any) -> Any:
        return sign * np.broadcast_to(stepwise.outputs(crossing, [t, *given])[0], t.shape)

    low, high = first, last
    for _ in range(_SECTIONS if len(row) else 0):
        one, other = high - GOLDEN_RATIO * (high - low), low + GOLDEN_RATIO * (high - low)
        lower = heights(one) < heights(other)
        low, high = np.where(lower, low, one), np.where(lower, other, high)
    extreme = 0.5 * (low + high)
    beyond = heights(extreme) < 0.0
    row, first, extreme, last = (a[beyond] for a in (row, first, extreme, last))
    return np.concatenate([row, row]), (np.concatenate([first, extreme]), np.concatenate([extreme, last]))


def _resolved(np: Any, line: Any, changes_at: Callable[[Any], Any], sizes_at: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The places [rows, places], with one more in each distance until no more changes are found, and the changes from each
    to the next one; where more are found, those at which a function of some sizes is negligible are left out."""
    found, finer = _finite(np, changes_at(line)), _with_halves(np, line)
    changes = _finite(np, changes_at(finer))
    if (_count(found) == _count(changes)).all():
        return line, found
    kept = _finite(np, found * _matter(np, sizes_at(line)))
    changes = changes * _matter(np, sizes_at(finer))
    if (_count(kept) == _count(changes)).all():
        return line, found
    while 2 * finer.size <= _MOST_EXAMINED and (_count(kept) != _count(changes)).any():
        kept, finer = changes, _with_halves(np, finer)
        changes = _finite(np, changes_at(finer)) * _matter(np, sizes_at(finer))
    return finer, changes


def _with_halves(np: Any, line: Any) -> Any:
    """The places [rows, places] and one between each two, irregularly, so that switches do not hide between places that
    follow their period."""
    shares = 0.25 + 0.5 * (np.arange(1, line.shape[1]) * GOLDEN_RATIO % 1.0)
    between = line[:, :-1] + shares * np.diff(line)
    return np.concatenate([np.stack([line[:, :-1], between], -1).reshape(len(line), -1), line[:, -1:]], axis=1)


def _finite(np: Any, changes: Any) -> Any:
    """Changes between numbers, 0 for others."""
    return np.where(np.isfinite(changes), changes, 0.0)


def _count(changes: Any) -> Any:
    """How many whole numbers, or signs, are passed in each row."""
    return abs(changes).sum(axis=1)


def _matter(np: Any, sizes: Any) -> Any:
    """Whether a function of some sizes [rows, places] is not negligible beside a change."""
    largest = np.max(sizes, axis=1, where=np.isfinite(sizes), initial=0.0)
    return np.maximum(sizes[:, 1:], sizes[:, :-1]) > _NEGLIGIBLE * largest[:, None]


def _each_number(np: Any, states: Any, sizes: Any, row: Any, column: Any) -> tuple[Any, Any, Any]:
    """The rows and columns of changes, once for each whole number that begins between a place and the next one, and these
    numbers; where a function of these `sizes` is negligible, for the last of the numbers alone."""
    first, last = states[row, column], states[row, column + 1]
    low, high = np.minimum(first, last), np.maximum(first, last)
    beside = np.maximum(sizes[row, column], sizes[row, column + 1])
    largest = np.max(sizes, axis=1, where=np.isfinite(sizes), initial=0.0)[row]
    count = np.where(beside > _NEGLIGIBLE * largest, high - low, 1.0)
    if count.sum() > _MOST_NUMBERS:
        count = np.ones_like(count)
    times = count.astype(int)
    number = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(row, times), np.repeat(column, times), np.repeat(high, times) - number


def minus(program: Program, level: float) -> Program:
    """The program of the difference of its output from a level."""
    output = Variable((), "float64")
    difference = Equation(subtract, (program.outputs[0], level), {}, output)
    return program._replace(equations=(*program.equations, difference), outputs=(output,)) if level else program


def _line(np: Any, first: float, last: float) -> Any:
    """Places between limits, which may be infinite, in the order from the first to the last."""
    # An irregular distance, so that periodic switches do not hide.
    u = np.linspace(0.0, 1.0, _EXAMINED) ** 1.01
    if np.isfinite(first) and np.isfinite(last):
        return first + (last - first) * u
    u = u[1:-1]
    if np.isfinite(first):
        return first + np.sign(last) * (u / (1 - u))
    if np.isfinite(last):
        return last + np.sign(first) * ((1 - u) / u)
    return np.sign(last) * (2 * u - 1) / (u * (1 - u))


def between(body: Body, first: float, last: float, reads: Sequence[float]) -> Body:
    """The body without its switches, as it is between two neighbouring ones."""
    if not switches(body):
        return body
    np = arrays.numpy_namespace()
    line = _line(np, first, last)
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        return without_switches(body, [float(line[len(line) // 2]), *reads])


def without_switches(body: Body, numbers: Sequence[Any]) -> Body:
    """The body without its switches, as it is for some numbers, and between the switches next to these."""
    program = body.program
    meaning: dict[Variable, Atom] = {}
    equations = []
    for (primitive, inputs, params, output), values, result in stepwise.steps(program, numbers):
        atoms = tuple(meaning.get(a, a) if isinstance(a, Variable) else a for a in inputs)
        if primitive in _COMPARISONS | _STEPS | {sign} or _is_constant(atoms, result):
            meaning[output] = result
        elif primitive is where and not isinstance(atoms[0], Variable):
            meaning[output] = atoms[1] if atoms[0] else atoms[2]
        elif primitive in _ORDERED:
            is_first = values[0] >= values[1] if primitive is maximum else values[0] <= values[1]
            meaning[output] = atoms[0] if is_first else atoms[1]
        elif primitive is absolute and not arrays.is_complex(values[0]):
            if values[0] >= 0:
                meaning[output] = atoms[0]
            else:
                equations.append(Equation(negative, atoms, params, output))
        elif primitive is relu:
            meaning[output] = atoms[0] if values[0] > 0 else 0.0
        else:
            equations.append(Equation(primitive, atoms, params, output))
    outputs = tuple(meaning.get(a, a) if isinstance(a, Variable) else a for a in program.outputs)
    smooth = optimise(Program(program.inputs, tuple(equations), outputs))
    return Body([BodyPath(smooth, ())], smooth, body.bound)


def _is_constant(atoms: Sequence[Atom], value: Any) -> bool:
    """Return whether a truth value follows from others that are known."""
    return arrays.dtype_name(value) == "bool" and not any(isinstance(a, Variable) for a in atoms)


def differentiable(body: Body, place: Place, reads: Sequence[Any]) -> Any:
    """A place as a number with derivatives by what the body reads."""
    return bind(crossing_place, (place.at, *reads), {"body": _body_of(body, place)})


def _body_of(body: Body, place: Place) -> Body:
    """The function that is 0 at a place where a body switches."""
    return Body([BodyPath(place.crossing, ())], place.crossing, body.bound)


def _found(_xp: Any, at: Any, *reads: Any, body: Body) -> Any:
    if is_exact():
        return at
    np = arrays.numpy_namespace()
    with arrays.using_namespace(None), np.errstate(all="ignore"):
        for _ in range(_NEWTON_STEPS):
            (value,), (slope,) = body(at, *reads), body.partial(0)(at, *reads)
            step = value / slope if slope else 0.0
            # What is not a simple crossing is where bisection has found it.
            at = at - step if abs(step) <= 1e-6 * (1 + abs(at)) else at
    return at


crossing_place = elementwise(
    "crossing_place", "at, reads, body", "the place near `at` where a body is 0",
    internal="integrate",
    forward=_found,
    vjp=implicit_derivative,
    variadic=True,
    derivative="-g*f_x/f_t, by the implicit function theorem",
)  # fmt: skip


_Forms = Mapping[Primitive, Callable[..., Any]]


def _truncated(x: Any) -> Any:
    # With `ceil`, both would switch at each whole number below 0.
    return floor(x) + where(less(x, 0.0), 1.0, 0.0)


def _with_sign_of(y: Any, x: Any) -> Any:
    return where(less(y, 0.0), negative(x), x)


def _magnitude(x: Any, y: Any) -> Any:
    """The root of a sum of squares, which is an absolute value where one of them is 0 everywhere."""
    for one, other in ((x, y), (y, x)):
        if type(other) is float and other == 0.0:
            return absolute(one)
    return hypot(x, y)


_BY_COMPARISONS: _Forms = {
    heaviside: lambda x, y: where(greater(x, 0.0), 1.0, where(less(x, 0.0), 0.0, y)),
    clip_between: lambda x, low, high: minimum(maximum(x, low), high),
    copysign: lambda x, y: _with_sign_of(y, absolute(x)),
    leaky_relu: lambda x, slope: where(greater(x, 0.0), x, slope * x),
    elu: lambda x, alpha: where(greater(x, 0.0), x, alpha * expm1(x)),
    # Smooth where its first operand is positive.
    atan2: lambda y, x: _with_sign_of(y, atan2(absolute(y), x)),
    hypot: _magnitude,
    # The magnitude by which a norm is scaled: what switches with it moves.
    frozen: lambda x: x,
}


def _number_of(*, ordered: bool) -> Callable[..., Any]:
    """The form of the number of choices or arrangements, which is 0 outside of 0 <= k <= N."""

    def form(n: Any, k: Any) -> Any:
        inside = exp(lgamma(n + 1.0) - lgamma(n - k + 1.0) - (0.0 if ordered else lgamma(k + 1.0)))
        return where(less(k, 0.0), 0.0, where(less(n, k), 0.0, inside))

    return form


# By name, as few programs load these.
_BY_COMPARISONS_LATER: Mapping[str, Callable[..., Any]] = {
    "acot": lambda x: _with_sign_of(x, atan2(1.0, absolute(x))),
    "comb": _number_of(ordered=False),
    "perm": _number_of(ordered=True),
}
_BY_FLOOR: _Forms = {
    # Halves are single points.
    round_to_even: lambda x: floor(x + 0.5),
    trunc: _truncated,
    remainder: lambda x, y: x - y * floor(x / y),
    floor_divide: lambda x, y: floor(x / y),
    fmod: lambda x, y: x - y * _truncated(x / y),
}


def by_comparisons(body: Body) -> Body:
    """The function with comparisons in place of functions that compare."""
    return _written(body, _BY_COMPARISONS)


def by_floor_and_comparisons(body: Body) -> Body:
    """The function with `floor` and comparisons in place of all others that round or compare, equal to it but at single
    points, and up to rounding."""
    return _written(body, {**_BY_COMPARISONS, **_BY_FLOOR})


def _written(body: Body, forms: _Forms) -> Body:
    if not any(_form(e.primitive, forms) for path in body.paths for e in path.program.equations):
        return body

    def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
        known: dict[Variable, Any] = dict(zip(program.inputs, inputs))
        for primitive, atoms, params, output in program.equations:
            values = [known[a] if isinstance(a, Variable) else a for a in atoms]
            form = _form(primitive, forms)
            known[output] = bind(primitive, values, params) if form is None else form(*values)
        return [known[a] if isinstance(a, Variable) else a for a in program.outputs]

    return body.derived(run, body.bound, body.reads)


def _form(primitive: Primitive, forms: _Forms) -> Callable[..., Any] | None:
    return forms.get(primitive) or _BY_COMPARISONS_LATER.get(primitive.name)
