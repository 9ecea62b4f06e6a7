"""The solution of a system: its flow over a time, with derivatives by the states it begins with and by parameters,
followed over its jumps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import BindingError, EvaluationError, UsageError
from gradcli.functionals.body import Body
from gradcli.functionals.functional_calls import ATOL, RTOL
from gradcli.functionals.ode.ode_system import System, initial_value_problem
from gradcli.functionals.ode.trajectory import trajectory
from gradcli.functionals.tracing import traced
from gradcli.language.differential_equations import DifferentialEquations, Jump
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.syntax import tree
from gradcli.language.syntax.derivative_marks import readable
from gradcli.models.ode.row_functions import Array, RowFunctions, ValueExpansion, constants, joined
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.indexing import index


class Dose(NamedTuple):
    """An amount that is added to a state at a time."""

    time: float
    state: str
    amount: float


class _Stop(NamedTuple):
    """A time at which the solution jumps; its derivatives by the variables, as those of a lapse `[1]` that is 0, or
    None where the time is fixed; and what happens."""

    time: float
    moves: ValueExpansion | None
    does: Jump | Dose


class Trajectories:
    """The solutions of a system by the variables `wrt`, states at the start and parameters.

    `shared` are the values of names that are no variables; `columns` are names that are none and differ between
    solutions.
    """

    def __init__(
        self,
        equations: DifferentialEquations,
        wrt: Sequence[str],
        shared: Mapping[str, Any],
        method: str = "auto",
        rtol: float = RTOL,
        columns: Sequence[str] = (),
    ) -> None:
        self.equations = equations
        self.wrt = tuple(wrt)
        self.shared = dict(shared)
        self.columns = tuple(columns)
        self.parameters = tuple(name for name in (*wrt, *columns) if name not in equations.states)
        self.flow = Flow(equations, self.parameters, shared, method, rtol)
        # The names that functions of a solution read.
        self.names = (equations.time, *equations.states, *self.parameters)
        self._rates: RowFunctions | None = None
        self._jumped: dict[int, RowFunctions] = {}

    def functions(self, programs: Sequence[tree.Module], further: Sequence[str] = ()) -> RowFunctions:
        """Programs of time, states and parameters as functions of `names`, followed by `further` ones that are no
        variables."""
        if is_exact():
            # Imported here as it needs FLINT.
            from gradcli.models.ode.proved_columns import ProvedFunctions

            return ProvedFunctions(programs, self.names, self.shared)
        return RowFunctions(programs, (*self.names, *further), self.shared, (*self.columns, *further))

    @property
    def rates(self) -> RowFunctions:
        """The derivatives of the states by time."""
        if self._rates is None:
            self._rates = self.functions([self.equations.rate(name) for name in self.equations.rates])
        return self._rates

    def at(self, values: Mapping[str, float], times: Array, order: int, doses: Sequence[Dose] = ()) -> ValueExpansion:
        """The states `[t, n]` at times `[t]`, the first of which is the start, with derivatives by `wrt`.

        `doses` are added to what the equations say. A state at the time of a jump is that after it.
        """
        start, parameters = self._begun(values, order)
        stops = self._stops(values, times, order, doses)
        if stops and times[-1] < times[0]:
            raise UsageError("jumps are for times that ascend", hint="let the times begin with the smaller end")
        origin, state, done = times[0], start, 0
        parts: list[ValueExpansion] = []
        for stop in (*stops, None):
            until = len(times) if stop is None else int(np.searchsorted(times, stop.time))
            inside = times[done:until]
            ends = [] if stop is None else [stop.time]
            # With neither, the last stop is at the last time.
            moments = _numbers([origin, *inside, *ends])
            if len(moments) > 1:
                found = self._flowed(state, parameters, moments, order, begins=state is start)
                parts.append(found.taken(slice(1, 1 + len(inside))))
                state = found.taken(-1)
            if stop is not None:
                state = self._after(stop, state, parameters, order)
                origin, done = stop.time, until
        return joined(parts, 0)

    def _begun(self, values: Mapping[str, float], order: int) -> tuple[ValueExpansion, ValueExpansion]:
        """The states at the start `[n]`, and the parameters `[p]`."""

        def variables(names: Sequence[str]) -> ValueExpansion:
            found = constants(_numbers([values[name] for name in names]), len(self.wrt), order)
            if found.first is not None:
                for i, name in enumerate(names):
                    if name in self.wrt:
                        found.first[i, self.wrt.index(name)] = 1
            return found

        return variables(self.equations.states), variables(self.parameters)

    def _flowed(
        self, state: ValueExpansion, parameters: ValueExpansion, times: Array, order: int, begins: bool
    ) -> ValueExpansion:
        """The states at later times; where they are those that the solution begins with, few of them are variables."""
        n = len(self.equations.states)
        by = [i for i, name in enumerate(self.equations.states) if not begins or name in self.wrt]
        by += [n + i for i, name in enumerate(self.parameters) if name in self.wrt]
        found = self.flow.at(state.value[None], parameters.value[None], times, order, by).taken(0)
        return found.of(joined([state, parameters]))

    @staticmethod
    def point(time: ValueExpansion, state: ValueExpansion, parameters: ValueExpansion) -> ValueExpansion:
        """The values of `names`."""
        return joined([time, state, parameters])

    @staticmethod
    def composed(functions: RowFunctions, point: ValueExpansion) -> ValueExpansion:
        """Functions of `names` at a point that depends on variables."""
        return functions.at(point.value, point.order).of(point)

    def along(self, times: Array, states: ValueExpansion, values: Mapping[str, float]) -> ValueExpansion:
        """The values of `names` `[t, names]` along a solution."""
        order, count = states.order, len(times)
        _, parameters = self._begun(values, order)
        shape = (count, len(self.parameters))
        q = len(self.wrt)
        held = ValueExpansion(
            np.broadcast_to(parameters.value, shape),
            None if parameters.first is None else np.broadcast_to(parameters.first, (*shape, q)),
            None if parameters.second is None else np.broadcast_to(parameters.second, (*shape, q, q)),
        )
        return self.point(constants(times[:, None], q, order), states, held)

    # --- jumps

    def _stops(self, values: Mapping[str, float], times: Array, order: int, doses: Sequence[Dose]) -> list[_Stop]:
        """The jumps between the first of the times and the last one, in their order."""
        first, low, high = times[0], min(times), max(times)
        found = [_Stop(dose.time, None, dose) for dose in doses]
        for jump in self.equations.jumps:
            items = jump.times.items if isinstance(jump.times, tree.List) else (jump.times,)
            for item in items:
                found += self._moments(jump, item, values, order)
        if is_exact():
            from gradcli.models.ode.proved_columns import check_order

            check_order(times, [stop.time for stop in found])
        early = next((s for s in found if s.time < first), None)
        if early is not None and isinstance(early.does, Dose):
            raise BindingError(
                f"a dose at {early.time:g} is before the start, {self.equations.time} = {first:g}",
                hint="let the times begin with it",
            )
        return sorted((s for s in found if low <= s.time <= high), key=lambda s: s.time)

    def _moments(self, jump: Jump, item: tree.Expression, values: Mapping[str, float], order: int) -> list[_Stop]:
        program = self.equations.program(item)
        start, parameters = self._begun(values, order)
        now = constants(_numbers([math.nan]), len(self.wrt), order)
        # States are not known before the jump, and nan shows where the time depends on them.
        nowhere = start._replace(value=np.full(len(start.value), math.nan))
        found = self.composed(self.functions([program]), self.point(now, nowhere, parameters))
        if not _is_finite(found.value[0]):
            raise EvaluationError(
                "the time of a jump is a number that depends on no state",
                span=item.span,
                source=self.equations.source,
            )
        fixed = all(part is None or not part.any() for part in found[1:])
        return [_Stop(found.value[0], None if fixed else found._replace(value=_numbers([0.0])), jump)]

    def _after(self, stop: _Stop, state: ValueExpansion, parameters: ValueExpansion, order: int) -> ValueExpansion:
        """The states just after a jump."""
        if isinstance(stop.does, Dose):
            value = state.value.copy()
            value[self.equations.states.index(stop.does.state)] += stop.does.amount
            return state._replace(value=value)
        point = self.point(constants(_numbers([stop.time]), len(self.wrt), order), state, parameters)
        if stop.moves is not None:
            point = self.shifted(point, stop.moves)
        key = id(stop.does)
        if key not in self._jumped:
            programs = [self.equations.jumped(stop.does, name) for name in self.equations.states]
            self._jumped[key] = self.functions(programs)
        after = self.composed(self._jumped[key], point)
        if stop.moves is None:
            return after
        back = ValueExpansion(*(None if part is None else -part for part in stop.moves))
        point = self.point(point.taken(slice(0, 1)), after, parameters)
        return self.shifted(point, back).taken(slice(1, 1 + len(after.value)))

    # --- times that move with the variables

    def shifted(self, point: ValueExpansion, lapse: ValueExpansion) -> ValueExpansion:
        """The values of `names` a `lapse` `[1]` later along the solution, which is 0 but for its derivatives."""
        return self.with_time(point).of(with_variables(lapse))

    def with_time(self, point: ValueExpansion) -> ValueExpansion:
        """The values of `names` by the variables and, as the last one, by the time that passes."""
        rate = self.rates.at(point.value, point.order - 1)
        size, n, q = len(point.value), len(rate.value), len(self.wrt)
        first = np.zeros((size, q + 1), point.value.dtype)
        first[:, :q] = point.first
        first[0, q] = 1
        first[1 : 1 + n, q] = rate.value
        if point.second is None:
            return ValueExpansion(point.value, first)
        second = np.zeros((size, q + 1, q + 1), point.value.dtype)
        second[:, :q, :q] = point.second
        # The derivatives of the rates by the variables, and along the solution.
        changes = rate.first @ first
        second[1 : 1 + n, q, :] = changes
        second[1 : 1 + n, :, q] = changes
        return ValueExpansion(point.value, first, second)


def with_variables(lapse: ValueExpansion) -> ValueExpansion:
    """The variables, whose values do not matter, followed by a lapse `[1]`."""
    q = lapse.first.shape[-1]
    found = constants(np.zeros(q + 1, lapse.first.dtype), q, lapse.order)
    found.first[:q] = np.eye(q, dtype=lapse.first.dtype)
    found.first[q:] = lapse.first
    if found.second is not None:
        found.second[q:] = lapse.second
    return found


def _numbers(values: Sequence[Any]) -> Array:
    """Numbers as an array: floats, or balls where digits are proved."""
    if not is_exact():
        return np.array([float(v) for v in values])
    from gradcli.models.ode.proved_columns import numbers

    return numbers(values)


def _is_finite(value: Any) -> bool:
    if not is_exact():
        return math.isfinite(value)
    from gradcli.models.ode.proved_columns import is_finite

    return is_finite(value)


def check_starts(equations: DifferentialEquations, values: Mapping[str, Any]) -> None:
    """Raise BindingError for a state without a start."""
    for state in equations.states:
        if state not in values:
            shown = readable(state)
            raise BindingError(f"the state '{shown}' has no start", hint=f"give its value at the first time: {shown}=1")


class Flow:
    """The flow of equations; `parameters` are the names that it may be differentiated by or that differ between
    problems, `shared` the values of all others."""

    def __init__(
        self,
        equations: DifferentialEquations,
        parameters: Sequence[str],
        shared: Mapping[str, Any],
        method: str,
        rtol: float,
    ) -> None:
        self.equations = equations
        self.parameters = tuple(parameters)
        self.method = method
        self.rtol = rtol
        self._shared = dict(shared)
        self._slopes = equations.slopes
        self._reads = scope.free_names(self._slopes)
        self._systems: dict[Any, System] = {}

    def at(
        self, start: Array, parameters: Array, times: Array, order: int, by: Sequence[int] | None = None
    ) -> ValueExpansion:
        """The states `[g, t, n]` of g problems, which start with `start` `[g, n]` at the first of the times `[t]`.

        Their derivatives are by the n states at the start, followed by the `parameters` `[g, p]`; those by others than the
        numbers `by` of these are not computed, and 0. Raises EvaluationError where a solution does not exist up to the
        last time.
        """
        base = self._system(times[0] if is_exact() else float(times[0]))
        n, count = base.states, base.given
        by = range(count) if by is None else by
        # What the derivatives of each order are, as the numbers of the states of the system.
        system, first = base, None
        if order > 0:
            system, column = base.sensitivities_by(by)
            first = np.array(column, int).reshape(len(by), n).T
        second = None
        if order > 1:
            # The number of the derivative by a given value of each state of the first derivatives.
            every = system.states
            system, column = system.sensitivities_by(by)
            second = np.array(column, int).reshape(len(by), every)[:, first].transpose(1, 2, 0)
        given: Any = np.concatenate([start, parameters], axis=1)
        moments: Any = np.broadcast_to(times, (len(given), len(times)))
        params = {"system": system, "method": self.method, "rtol": self.rtol, "atol": ATOL, "breaks": ()}
        if is_exact():
            operands = (arrays.in_default_namespace(x) for x in (given, moments))
            found = bind(trajectory, tuple(operands), params).numbers
        else:
            with arrays.using_namespace(None):
                found = np.asarray(bind(trajectory, (given, moments), params))
        parts = [None if part is None else found[..., part] for part in (first, second)]
        if len(by) < count:
            for k, part in enumerate(parts):
                if part is not None:
                    whole: Any = np.zeros((*part.shape[: part.ndim - k - 1], *[count] * (k + 1)), part.dtype)
                    whole[(..., *np.ix_(*[by] * (k + 1)))] = part
                    parts[k] = whole
        return ValueExpansion(found[..., :n], *parts)

    def _system(self, origin: Any) -> System:
        """The system of the lapse since an origin of time, which matters where the equations read the time."""
        key = origin if self.equations.time in self._reads else 0.0
        if is_exact() and key not in self._systems:
            self._systems[key] = self._traced(arrays.in_default_namespace(key))
        if key not in self._systems:
            self._systems[key] = self._traced(key)
        return self._systems[key]

    def _traced(self, origin: Any) -> System:
        names = (*self.equations.states, *self.parameters)
        n = len(self.equations.states)

        def slopes(lapse: Any, *values: Any) -> list[Any]:
            known = {self.equations.time: lapse + origin, **dict(zip(names, values))}
            read = {k: v for k, v in known.items() if k in self._reads}
            found = evaluate(self._slopes, {**self._shared, **read}).value
            if arrays.is_complex(found):
                raise EvaluationError(
                    "the derivative of a real state is complex", hint="write its start as a complex number, as in 1+0j"
                )
            return [index(found, k) for k in range(n)]

        with nullcontext() if is_exact() else arrays.using_namespace(None):
            body = traced(slopes, [()] * (1 + len(names))).body
        # The parameters are given values, and not varied by a step.
        held = Body(body.paths, body.program, 1 + n)
        return initial_value_problem(held, [None] * n)
