"""Initial value problems, and those of their derivatives: the variational equations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from gradcli.arrays.mathematical_constants import working_precision
from gradcli.executors import stepwise
from gradcli.functionals.body import Body
from gradcli.functionals.real_parts import in_real_parts
from gradcli.kinds.jets import Jet
from gradcli.loops.rolled_loop import BodyPath
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import constant
from gradcli.program import program_constants
from gradcli.program.builder import frozen
from gradcli.program.ir import Atom, Program, Variable

# A derivative of a state: the number of the state, and the numbers of the given values by which it is differentiated,
# in ascending order.
Label = tuple[int, tuple[int, ...]]


def _unchanged(body: Body) -> Body:
    return body


class Sensitivities(NamedTuple):
    """The system of the states and their derivatives by given values.

    `column[p][i]` is the number there of the derivative of state `i` by the given value at place `p` of those that are
    differentiated by.
    """

    system: System
    column: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class System:
    """y' = f(t, y, given), y = start(given) at t = 0.

    The bound variables of `body` are t and the states; it reads all given values. Those are the reads of `start`, too,
    which has no bound variables. States that are derivatives of others have `labels`; others are in `blocks` of one scale
    each. `base` is the system whose derivatives those with labels are, `origin` the one that is no derivative. Compared by
    identity, so that it can be a parameter of a primitive.
    """

    body: Body
    start: Body
    labels: Sequence[Label] = ()
    blocks: int = 1
    base: System | None = None
    origin: System | None = None
    # The order of the derivatives of the origin, and how such of another function of time, states and given values are
    # found as those of the right side are.
    order: int = 0
    lift: Callable[[Body], Body] = _unchanged
    # The numbers of neighbouring states that have one scale, where they are neither labels nor blocks.
    scales: Sequence[int] = ()
    _series: dict[int, System] = field(default_factory=dict, init=False)
    _sensitivities: dict[tuple[int, ...], Sensitivities] = field(default_factory=dict, init=False)

    @property
    def states(self) -> int:
        """The number of states."""
        return self.body.bound - 1

    @property
    def given(self) -> int:
        """The number of given values."""
        return self.body.reads

    @property
    def is_derivative(self) -> bool:
        """True if some states are derivatives of others."""
        return bool(self.labels) or self.blocks > 1

    @cached_property
    def groups(self) -> Sequence[Sequence[int]]:
        """The numbers of the states that have one scale: those of derivatives by the same given values."""
        if self.scales:
            ends = [*itertools.accumulate(self.scales)]
            return [range(end - count, end) for count, end in zip(self.scales, ends) if count]
        found: dict[Hashable, list[int]] = {}
        for k in range(self.states):
            found.setdefault(self.labels[k][1] if self.labels else k * self.blocks // self.states, []).append(k)
        return [*found.values()]

    @cached_property
    def levels(self) -> Sequence[Sequence[Sequence[int]]]:
        """The groups by their order of differentiation. The equations of a group are linear in it, with the Jacobian of
        the first group, if those of lower orders are known."""
        if not self.labels:
            return [[[*range(self.states)]]]
        found: dict[int, list[Sequence[int]]] = {}
        for group in self.groups:
            found.setdefault(len(self.labels[group[0]][1]), []).append(sorted(group, key=lambda k: self.labels[k][0]))
        return [found[order] for order in sorted(found)]

    @cached_property
    def jacobian(self) -> Body:
        """The derivatives of the right side by the states, row by row."""
        states = self.states

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            slopes, others = slopes_by_states(program, inputs, states)
            return [*slopes, *others]

        return self.body.derived(run, self.body.bound, self.given)

    @property
    def sensitivities(self) -> Sensitivities:
        """The variational equations by all given values."""
        return self.sensitivities_by(range(self.given))

    def sensitivities_by(self, given: Sequence[int]) -> Sensitivities:
        """The variational equations by the given values of these numbers, of which derivatives that are equal by
        symmetry are one state."""
        key = tuple(given)
        found = self._sensitivities.get(key)
        if found is None:
            found = self._sensitivities[key] = self._varied(key)
        return found

    def _varied(self, given: Sequence[int]) -> Sensitivities:
        labels: list[Label] = [*(self.labels or [(i, ()) for i in range(self.states)])]
        # The number of each state there, and of which state and given value it is the derivative.
        number = {label: k for k, label in enumerate(labels)}
        origin: list[tuple[int, int]] = []
        column: dict[int, list[int]] = {}
        for p in given:
            column[p] = []
            for i, (state, by) in enumerate(labels[: self.states]):
                label = state, tuple(sorted((*by, p)))
                if label not in number:
                    number[label] = len(labels)
                    labels.append(label)
                    origin.append((i, p))
                column[p].append(number[label])

        def derived(body: Body) -> Body:
            return body.derived(
                lambda program, x: self._slopes(program, x, column, origin), 1 + len(labels), self.given
            )

        start = self.start.derived(lambda program, x: self._start_slopes(program, x, origin), 0, self.given)
        system = System(
            derived(self.body), start, labels, base=self.base or self, origin=self.origin or self,
            order=self.order + 1, lift=lambda body: derived(self.lift(body)),
        )  # fmt: skip
        return Sensitivities(system, [*column.values()])

    def _slopes(
        self,
        program: Program,
        inputs: Sequence[Any],
        column: Mapping[int, Sequence[int]],
        origin: Sequence[tuple[int, int]],
    ) -> list[Any]:
        given = inputs[-self.given :] if self.given else []
        time, *states = inputs[: len(inputs) - self.given]
        results = stepwise.outputs(program, [time, *states[: self.states], *given])
        tangents = {}
        for p in {p for _, p in origin}:
            jets = [Jet([states[i], states[column[p][i]]], 1) for i in range(self.states)]
            varied = [Jet([g, 1.0], 1) if k == p else g for k, g in enumerate(given)]
            tangents[p] = stepwise.outputs(program, [time, *jets, *varied])
        found = [coefficient_of(tangents[p][i], 1) for i, p in origin]
        return [*results[: self.states], *found, *map(constant, results[self.states :])]

    def _start_slopes(self, program: Program, given: Sequence[Any], origin: Sequence[tuple[int, int]]) -> list[Any]:
        results = stepwise.outputs(program, given)
        tangents = {}
        for p in {p for _, p in origin}:
            tangents[p] = stepwise.outputs(program, [Jet([g, 1.0], 1) if k == p else g for k, g in enumerate(given)])
        return [*results, *(coefficient_of(tangents[p][i], 1) for i, p in origin)]

    def series(self, order: int) -> System:
        """The system of the Taylor coefficients of the states up to `order` along a curve of the given values.

        Its states, and its given values, are the coefficients of order 0 of all of them, then those of order 1, and so
        on.
        """
        found = self._series.get(order)
        if found is None:
            found = self._series[order] = self._of_series(order)
        return found

    def _of_series(self, order: int) -> System:
        terms, states, given = order + 1, self.states, self.given

        def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
            time, rest = inputs[0], inputs[1:]
            coefficients, reads = rest[: states * terms], rest[states * terms :]
            jets = [Jet(coefficients[i::states], order) for i in range(states)]
            results = stepwise.outputs(program, [time, *jets, *(Jet(reads[i::given], order) for i in range(given))])
            found = [coefficient_of(r, k) for k in range(terms) for r in results[:states]]
            return [*found, *map(constant, results[states:])]

        def begin(program: Program, reads: Sequence[Any]) -> list[Any]:
            results = stepwise.outputs(program, [Jet(reads[i::given], order) for i in range(given)])
            return [coefficient_of(r, k) for k in range(terms) for r in results]

        def derived(body: Body) -> Body:
            return body.derived(run, 1 + states * terms, given * terms)

        return System(
            derived(self.body), self.start.derived(begin, 0, given * terms), blocks=self.blocks * terms,
            origin=self.origin or self, order=self.order + order, lift=lambda body: derived(self.lift(body)),
        )  # fmt: skip


def slopes_by_states(program: Program, inputs: Sequence[Any], states: int) -> tuple[list[Any], list[Any]]:
    """The derivatives of a right side by the states, row by row, and its further outputs."""
    columns = []
    for k in range(states):
        jet = Jet([inputs[1 + k], 1.0], 1)
        columns.append(stepwise.outputs(program, [*inputs[: 1 + k], jet, *inputs[2 + k :]]))
    slopes = [coefficient_of(column[i], 1) for i in range(states) for column in columns]
    return slopes, [*map(constant, columns[0][states:])]


def coefficient_of(value: Any, k: int) -> Any:
    """The coefficient of order `k` of a series, or of a number as one."""
    found = value.coefficient(k) if isinstance(value, Jet) else None if k else value
    return 0.0 if found is None else found


# Systems by what they compute, so that a program that is run again finds the derivatives and the code of the last run.
_made: dict[Hashable, System] = {}
_MOST_KEPT = 64
_lock = Lock()


def initial_value_problem(body: Body, starts: Sequence[Any]) -> System:
    """The system of a body that reads some values, whose states start at constants, or at given values where None.

    The values at which states start are given before those that the body reads.
    """
    body = in_real_parts(body, "a differential equation is solved")
    # The constants of derivatives have the precision of the balls that the system is for.
    key = (
        *(_form(path.program) for path in body.paths),
        *(p.holds for p in body.paths),
        body.bound,
        *(None if s is None else program_constants.key(s) for s in starts),
        working_precision(),
    )
    found = _made.get(key)
    if found is None:
        with _lock:
            found = _made[key] = _initial_value_problem(body, starts)
            while len(_made) > _MOST_KEPT:
                del _made[next(iter(_made))]
    return found


def _form(program: Program) -> Hashable:
    """A key that is equal for programs that differ in their variables alone."""
    number = {variable: k for k, variable in enumerate(program.inputs)}

    def form(atom: Atom) -> Hashable:
        return ("variable", number[atom]) if isinstance(atom, Variable) else program_constants.key(atom)

    found = []
    for primitive, inputs, params, output in program.equations:
        found.append((primitive, *map(form, inputs), frozen(params)))
        number[output] = len(number)
    return (len(program.inputs), *found, *map(form, program.outputs))


def _initial_value_problem(body: Body, starts: Sequence[Any]) -> System:
    count = sum(s is None for s in starts)
    begins = [Variable((), "float64", f"start{k}") for k in range(count)]

    def widened(program: Program) -> Program:
        bound, reads = program.inputs[: body.bound], program.inputs[body.bound :]
        return program._replace(inputs=(*bound, *begins, *reads))

    paths = [BodyPath(widened(program), holds) for program, holds in body.paths]
    names = iter(begins)
    outputs = tuple(next(names) if s is None else s for s in starts)
    start = Program((*begins, *body.program.inputs[body.bound :]), (), outputs)
    return System(Body(paths, widened(body.program), body.bound), Body([BodyPath(start, ())], start, 0))
