"""A request for the solution of an initial value problem, its times, and the table and the chart that answer it."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.calculus.accuracy import digits_of, digits_text
from gradcli.calculus.complex_derivatives import names_of_parts
from gradcli.errors import BackendError, BindingError, EvaluationError, GradcliError, UsageError, did_you_mean
from gradcli.evaluation.constant_expressions import constant
from gradcli.evaluation.nested_lists import unreadable
from gradcli.functionals.functional_calls import RTOL
from gradcli.language.differential_equations import DifferentialEquations, located, unknown_parameter
from gradcli.language.names import scope
from gradcli.language.names.resolution import resolve
from gradcli.language.syntax import tree
from gradcli.language.syntax.derivative_marks import PRIME, readable
from gradcli.models.complex_inputs import AppendedSource, made_of_parts, showing, taken_apart, with_parts
from gradcli.models.ode import stops
from gradcli.models.ode.row_functions import Array, RowFunctions, ValueExpansion
from gradcli.models.ode.trajectories import Trajectories, check_starts
from gradcli.models.plotting.charts import Chart, Polyline
from gradcli.named_tuples import NamedTuple

METHODS = ("auto", "taylor", "radau")
_HIGHEST_ORDER = 2
_MARK = ".."
# The relative difference of two solutions from which on a number has few right digits, the part of the largest state, or
# derivative of a state, below which a difference does not matter, and the number of columns that a warning names.
_FEW_DIGITS, _NEGLIGIBLE, _MOST_TOLD = 1e-6, 1e-11, 3
# The cost of a time, in array elements.
_ELEMENTS = 400


class InitialValueRequest(NamedTuple):
    """A request: the `values` of states at the start and of parameters, and the `times`, the first of which is the start.

    `show` are expressions whose values are columns too, and `stop` is an equation at which the solution ends.
    """

    equations: DifferentialEquations
    values: Mapping[str, Any]
    times: Array
    wrt: Sequence[str] = ()
    order: int = 1
    show: Sequence[str] = ()
    stop: str | None = None
    method: str = "auto"


class Solution(NamedTuple):
    """The columns of a solution, and the time of its end `{"t": …, "d_t_a": …}` where that is an event.

    Columns of proved digits are texts; `complete` says whether all of them have as many as were asked for. `jumped` is a
    condition that jumps over 0 at the end. `losses` are warnings of columns with few right digits.
    """

    columns: dict[str, Array]
    stop: dict[str, float] | None = None
    complete: bool = True
    jumped: str | None = None
    losses: Sequence[str] = ()

    @property
    def warnings(self) -> list[str]:
        """That the condition is not met, and which columns have few right digits, or numbers that are not finite."""
        floats = {name: column for name, column in self.columns.items() if column.dtype != object}
        bad = {name: int((~np.isfinite(column)).sum()) for name, column in floats.items()}
        over = [f"{self.jumped} is jumped over, and not met"] if self.jumped else []
        return [*over, *self.losses] + [
            f"'{name}' is not finite in {n:,} row{'s' * (n != 1)}" for name, n in bad.items() if n
        ]


def solve(asked: InitialValueRequest) -> Solution:
    """The solution as a table.

    Raises BindingError for names without a value, UsageError for options that there are not, EvaluationError where the
    solution does not exist up to the last time or does not meet the condition to stop at.
    """
    of_parts = _in_real_numbers(asked)
    with showing(asked.equations.source, of_parts.equations.source):
        _check(of_parts)
        found = _solution(of_parts)
        return found._replace(losses=_losses(of_parts, found))


def _losses(asked: InitialValueRequest, found: Solution) -> list[str]:
    """Which columns have few right digits, as another solution shows, whose tolerance is 10 times larger: errors grow
    where neighbouring solutions part, and derivatives of stiff systems have been much larger than they are at the end."""
    try:
        with limits.optional_budget():
            other = _solution(asked, 10 * RTOL).columns
    except GradcliError:
        return []
    time = asked.equations.time
    states = [readable(name) for name in asked.equations.states]
    groups: list[tuple[list[str], float]] = [(states, math.inf), *(([text], math.inf) for text in asked.show)]
    for order in range(1, asked.order + 1):
        for leaves in itertools.combinations_with_replacement(asked.wrt, order):
            suffix = "_".join(map(readable, leaves))
            groups.append(([f"d_{s}_{suffix}" for s in states], math.prod(abs(asked.values[n]) for n in leaves)))
    told = []
    for group, size in groups:
        numbers, others = (np.stack([columns[name] for name in group], 1) for columns in (found.columns, other))
        if numbers.shape != others.shape:
            continue
        with np.errstate(all="ignore"):
            apart, largest = np.abs(numbers - others), np.abs(numbers).max(axis=1, keepdims=True)
            # A derivative by the logarithms of what has the size `size` is compared with the states, too: it is exactly
            # 0 where a condition fixes a state.
            around = np.abs(np.stack([found.columns[s] for s in states], 1)).max(axis=1, keepdims=True) / (
                size or math.inf
            )
            lost = np.where(apart > _NEGLIGIBLE * np.maximum(largest, around), apart / np.abs(numbers), 0.0)
        rows = np.argmax(np.nan_to_num(lost), axis=0)
        for k, name in enumerate(group):
            part = float(lost[rows[k], k])
            if part > _FEW_DIGITS:
                place = f"{time} = {found.columns[time][rows[k]]:g}"
                told.append(f"'{name}' has {digits_text(digits_of(part))} at {place}")
    more = f", {len(told) - _MOST_TOLD} other columns few" if len(told) > _MOST_TOLD else ""
    return [", ".join(told[:_MOST_TOLD]) + more + "; a solution with another tolerance differs"] if told else []


def _in_real_numbers(asked: InitialValueRequest) -> InitialValueRequest:
    """A request for the real and imaginary parts of complex states, with derivatives by those of complex parameters."""
    states = _complex_states(asked.equations, asked.values)
    others = [n for n in asked.wrt if n not in asked.equations.states and _is_complex_number(asked.values[n])]
    if not states and not others:
        return asked
    named = (*states, *others)
    return asked._replace(
        equations=_of_real_numbers(asked.equations, states, others),
        values=_values_of_parts(asked.values, named),
        wrt=tuple(_in_parts(asked.wrt, named)),
    )


def _is_complex_number(value: Any) -> bool:
    return arrays.is_complex(value) and not arrays.shape(value)


def prove(request: Callable[[], InitialValueRequest], digits: int, most: int) -> Solution:
    """The solution with proved digits, within `digits.computing`; `request` is made anew at each working precision.

    Raises what `solve` raises, and BackendError for what has no proved digits.
    """
    # Imported here as it needs FLINT.
    from gradcli.arrays.flint.balls import Balls
    from gradcli.models.ode import proved_columns

    asked = _in_real_numbers(request())
    if asked.stop is not None:
        raise BackendError("there are no proved digits of a time to stop at", hint="leave out --digits or --stop")
    with showing(request().equations.source, asked.equations.source):
        _check(asked._replace(times=np.array([float(Balls(t)) for t in asked.times])))
        found = proved_columns.table(lambda: _solution(_in_real_numbers(request())).columns, digits, most)
    return Solution(found.columns, complete=found.complete)


def _solution(asked: InitialValueRequest, rtol: float = RTOL) -> Solution:
    equations, order = asked.equations, asked.order if asked.wrt else 0
    shared = {name: value for name, value in asked.values.items() if name not in (*asked.wrt, *equations.states)}
    solver = Trajectories(equations, asked.wrt, shared, asked.method, rtol)
    shown = {text: _function(solver, asked, text) for text in asked.show}
    with located(equations.source):
        if asked.stop is None:
            return Solution(_columns(solver, asked, asked.times, solver.at(asked.values, asked.times, order), shown))
        return _stopped(solver, asked, order, shown)


def _stopped(
    solver: Trajectories, asked: InitialValueRequest, order: int, shown: Mapping[str, RowFunctions]
) -> Solution:
    assert asked.stop is not None
    if re.search(r"[<>!≤≥≠]|^\s*=|=\s*$", asked.stop):
        raise UsageError(f"--stop {asked.stop} is no equation", hint="write where it is met first: 'y = 0'")
    condition = _function(solver, asked, _difference(asked.stop), asked.stop)
    equations = asked.equations
    shared = {name: value for name, value in asked.values.items() if name not in equations.states}
    signs = stops.SignTimes(equations, _difference(asked.stop), shared, asked.method)
    end = stops.met(solver, condition, signs, asked.values, asked.times, order)
    if end is None:
        raise EvaluationError(
            f"{asked.stop} is not met up to {asked.equations.time} = {asked.times[-1]:g}",
            hint="let the times go further, or change the condition",
        )
    last = float(end.time.value[0])
    before = asked.times[asked.times < last] if asked.times[-1] > asked.times[0] else asked.times[asked.times > last]
    found = solver.at(asked.values, before, order)
    columns = _columns(solver, asked, before, found, shown, moves=order > 0)
    point = solver.along(np.array([last]), _row(end.states), asked.values)
    moving = _with_time(point, end.time)
    final = _columns_of(solver, asked, moving, shown, moves=order > 0)
    time = asked.equations.time
    told = {n: float(c[0]) for n, c in final.items() if n == time or n.startswith(f"d_{time}_")}
    jumped = asked.stop if end.jumps else None
    return Solution({n: np.concatenate([columns[n], final[n]]) for n in columns}, told, jumped=jumped)


def _row(states: ValueExpansion) -> ValueExpansion:
    return ValueExpansion(*(None if part is None else part[None] for part in states))


def _with_time(point: ValueExpansion, time: ValueExpansion) -> ValueExpansion:
    """A point whose time has derivatives."""
    for part, of in zip(point, time):
        if part is not None and of is not None:
            part[0, 0] = of[0]
    return point


def _columns(
    solver: Trajectories,
    asked: InitialValueRequest,
    times: Array,
    states: ValueExpansion,
    shown: Mapping[str, RowFunctions],
    moves: bool = False,
) -> dict[str, Array]:
    return _columns_of(solver, asked, solver.along(times, states, asked.values), shown, moves)


def _columns_of(
    solver: Trajectories,
    asked: InitialValueRequest,
    point: ValueExpansion,
    shown: Mapping[str, RowFunctions],
    moves: bool,
) -> dict[str, Array]:
    """The columns of values of names `[t, names]`; where the time `moves`, it has derivatives too."""
    equations = asked.equations
    names = [readable(name) for name in (equations.time, *equations.states)]
    parts = [(name, point, i) for i, name in enumerate(names)]
    parts += [(text, solver.composed(function, point), 0) for text, function in shown.items()]
    columns = {name: of.value[:, i] for name, of, i in parts}
    by = [readable(name) for name in asked.wrt]
    for name, of, i in parts:
        if of.first is not None and (moves or name != equations.time):
            columns |= {f"d_{name}_{a}": of.first[:, i, k] for k, a in enumerate(by)}
    for name, of, i in parts:
        if of.second is not None and (moves or name != equations.time):
            pairs = [(j, k) for j in range(len(by)) for k in range(j, len(by))]
            columns |= {f"d_{name}_{by[j]}_{by[k]}": of.second[:, i, j, k] for j, k in pairs}
    return columns


def _function(solver: Trajectories, asked: InitialValueRequest, text: str, written: str | None = None) -> RowFunctions:
    """An expression of the states as a function. Raises UnknownNameError for a name without a value."""
    with located(written or text):
        value = asked.equations.expression(text)
        program = asked.equations.with_expression(text)
        known = {*asked.values, asked.equations.time}
        alone = tree.Module(value.span, text, (tree.Evaluate(value.span, value),))
        defined = resolve(asked.equations.slopes).bound
        scope.check_names(alone, [*known, *defined])
        for name, read in scope.free_names(alone).items():
            if name not in known and name not in defined and name not in scope.CONSTANTS:
                raise scope.unknown_name(name, known, text, read.span)
    return solver.functions([program])


def _difference(condition: str) -> str:
    """The expression that is 0 where an equation `left = right` holds."""
    left, equals, right = condition.partition("=")
    return f"({left.strip()}) - ({right.strip(' =')})" if equals else condition


def _check(asked: InitialValueRequest) -> None:
    equations = asked.equations
    if asked.method not in METHODS:
        hint = did_you_mean(asked.method, METHODS, f"the methods are {', '.join(METHODS)}")
        raise UsageError(f"there is no method {asked.method!r}", hint=hint)
    if not 0 <= asked.order <= _HIGHEST_ORDER:
        raise UsageError(
            f"derivatives of order {asked.order} are not computed", hint=f"--order is 0 to {_HIGHEST_ORDER}"
        )
    check_starts(equations, asked.values)
    reads = equations.parameters
    for name, span in reads.items():
        if name not in asked.values and name not in scope.CONSTANTS:
            raise unknown_parameter(equations, name, span)
    for name, value in asked.values.items():
        if name not in equations.states and name not in reads and name not in _further(asked):
            known = [readable(n) for n in (*equations.states, *reads)]
            hint = did_you_mean(readable(name), known, f"they read {', '.join(known)}")
            raise BindingError(f"the equations do not read '{readable(name)}'", hint=hint)
        if (name in equations.states or name in asked.wrt) and arrays.shape(value):
            raise BindingError(f"'{readable(name)}' is one number", hint=f"{readable(name)}=1")
        if (name in equations.states or name in asked.wrt) and arrays.is_complex(value):
            raise BindingError(f"'{readable(name)}' is complex", hint="write the equations of real and imaginary parts")
        if name in equations.states and not math.isfinite(float(value)):
            raise BindingError(f"the start of '{readable(name)}' is {float(value):g}", hint="starts are finite numbers")
    if not len(asked.times):
        raise BindingError("there are no times", hint=f"{equations.time}=0..20")
    if not np.isfinite(asked.times).all():
        raise BindingError("a time is not finite", hint="times are numbers in order")
    steps = np.diff(asked.times)
    if (steps > 0).any() and (steps < 0).any():
        place = int(np.argmax(np.sign(steps) == -np.sign(steps[steps != 0][0])))
        raise BindingError(
            f"the times go back: {asked.times[place + 1]:g} is after {asked.times[place]:g}",
            hint="they ascend, or descend, from the first one, which is the start",
        )


def _further(asked: InitialValueRequest) -> set[str]:
    """The names that only further expressions read."""
    found: set[str] = set()
    for text in (*asked.show, *((_difference(asked.stop),) if asked.stop else ())):
        try:
            value = asked.equations.expression(text)
        except GradcliError:
            continue
        found |= {node.id for node in tree.walk(value) if isinstance(node, tree.Name)}
    return found


def chart(asked: InitialValueRequest, found: Solution, phase: str | None) -> Chart:
    """The chart of a solution; `phase` are the names of the axes of a phase plane. Raises UsageError for other names."""
    equations = _in_real_numbers(asked).equations
    names = [*map(readable, equations.states), *asked.show]
    if phase is None:
        time = found.columns[equations.time]
        return Chart([Polyline(name, time, found.columns[name]) for name in names], equations.time, ", ".join(names))
    axes = [name.strip() for name in phase.split(",")]
    if len(axes) != 2 or not set(axes) <= set(names):
        raise UsageError(f"--phase {phase} does not name two columns", hint=f"two of {', '.join(names)}")
    x, y = axes
    return Chart([Polyline(f"{y} over {x}", found.columns[x], found.columns[y])], x, y)


def _complex_states(equations: DifferentialEquations, values: Mapping[str, Any]) -> list[str]:
    """The states that are complex: those of which one, or one of its derivatives, starts with a complex number."""
    bases = {s.rstrip(PRIME) for s in equations.states if s in values and arrays.is_complex(values[s])}
    return [state for state in equations.states if state.rstrip(PRIME) in bases]


def _of_real_numbers(
    equations: DifferentialEquations, states: Collection[str], parameters: Collection[str] = ()
) -> DifferentialEquations:
    """The equations of the parts of the complex `states`, which read the parts of the complex `parameters`."""
    source = AppendedSource(equations.source)
    made = [made_of_parts(name, source) for name in (*states, *parameters)]
    # The derivatives that are no states themselves.
    rates = [rate for state, rate in zip(equations.states, equations.rates) if state in states and rate not in states]
    apart = [statement for rate in rates for statement in taken_apart(rate, source)]
    jumps = [
        dataclasses.replace(jump, statements=(*jump.statements, *(s for x in states for s in taken_apart(x, source))))
        for jump in equations.jumps
    ]
    return dataclasses.replace(
        equations,
        source=source.source,
        states=tuple(_in_parts(equations.states, states)),
        rates=tuple(_in_parts(equations.rates, {*states, *rates})),
        statements=(*made, *equations.statements, *apart),
        jumps=tuple(jumps),
        differentiated=equations.bases,
    )


def _values_of_parts(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The values by name, with those of the parts of complex states and parameters."""
    of_names = {name: arrays.asarray(value, "complex128") for name, value in values.items() if name in names}
    return with_parts({**values, **of_names}, names)


def _in_parts(names: Iterable[str], states: Collection[str]) -> Iterator[str]:
    """The names, with those of their parts in place of complex ones."""
    for name in names:
        yield from names_of_parts(name) if name in states else (name,)


class TimeRange(NamedTuple):
    """The times from `first` to `last`, which may be the smaller one."""

    first: Any
    last: Any


def times_value(text: str, dtype: str, whole: str, offset: int = 0) -> Any:
    """The range or the times of a text that starts at `offset` of `whole`. Raises BindingError, with its place."""
    if _MARK not in text:
        return constant(text, dtype, whole, offset)
    low, _, high = text.partition(_MARK)
    if not low.strip() or not high.strip() or high.startswith("."):
        raise unreadable("this is no range of times", text, offset, whole, "write t=0..20")
    ends = [constant(low, dtype, whole, offset), constant(high, dtype, whole, offset + len(low) + len(_MARK))]
    if any(arrays.shape(end) for end in ends) or not all(math.isfinite(float(end)) for end in ends):
        raise unreadable("an end of a range is a finite number", text, offset, whole, "write t=0..20")
    return TimeRange(*ends) if is_exact() else TimeRange(float(ends[0]), float(ends[1]))


def moments(given: Any, points: int, name: str) -> Array:
    """The times: `points` of them from one end of a range to the other, or those of a vector."""
    if isinstance(given, TimeRange):
        # A time is several numbers in the table and in the solution.
        limits.charge(_ELEMENTS * points)
        if is_exact():
            step = (given.last - given.first) / float(points - 1)
            return _proved([given.first + step * float(k) for k in range(points - 1)] + [given.last])
        return np.linspace(given.first, given.last, points)
    if len(arrays.shape(given)) != 1:
        raise BindingError(
            f"the times '{name}' are a range or a list", hint=f"{name}=0..20, or {name}=[0,1,5] with the start first"
        )
    if is_exact():
        return _proved([given[k] for k in range(arrays.shape(given)[0])])
    return np.asarray(arrays.to_numpy(given), float)


def _proved(times: Sequence[Any]) -> Array:
    """Times as numbers of FLINT."""
    from gradcli.models.ode.proved_columns import numbers

    return numbers(times)
