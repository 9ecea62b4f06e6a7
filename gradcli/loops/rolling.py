"""Runs a loop whose round was traced as a rolled loop, with its node in the graph."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli import arrays, garbage, limits
from gradcli.arrays import backends
from gradcli.arrays.shapes import Shape
from gradcli.autograd.modes import recorded_now, recording_program
from gradcli.autograd.node import RELEASED, Node, recorders_now
from gradcli.autograd.primitive_node import fit
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError, NotRecordableError
from gradcli.loops import loop_execution
from gradcli.loops.body_tracing import RoundTrace, Row, Traced, TracedPath, example_of
from gradcli.loops.loop_primitive import Cotangents, elements_of, has_infinite_derivatives, loop_history, padded
from gradcli.loops.part import part
from gradcli.loops.rolled_loop import BodyPath, Layout, LiveValues, RolledLoop, columns_of, joined, shortened
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, bind, constant
from gradcli.primitives.conversions import broadcast_to, cast, reshaped
from gradcli.primitives.entries.arithmetic import multiply, zeros_like
from gradcli.primitives.entries.comparisons import equal, greater, less, not_equal
from gradcli.primitives.entries.reductions import all_, any_
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.primitive import NodeName
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import needed_variables
from gradcli.program.scalarisation import TensorsNeededError, by_element


class LoopResult(NamedTuple):
    """A result of a loop: consecutive `carries`, by number, that make a value of this shape, from column `start` on.

    They are those after the last round or, if it is `stacked`, after all rounds along a new first axis.
    """

    carries: range
    start: int
    shape: Shape
    stacked: bool


def run_loop(
    loop: RolledLoop, numbers: Sequence[Any], sequences: Sequence[Any], results: Sequence[LoopResult], *, last: bool
) -> list[Any]:
    """The results of a loop of given numbers, the carries before the first round and the reads, and of sequences.

    With `last`, only the carries after the last round are kept.
    """
    operands = [*numbers, *sequences]
    edges = [o.edge if isinstance(o, Tensor) and o.requires_grad else None for o in operands]
    recorded = recorded_now() and any(edge is not None for edge in edges)
    if recorded and not any(isinstance(o, Tensor) and o.dual for o in operands):
        inner = [o.inner if isinstance(o, Tensor) else o for o in operands]
        history = _history(loop, inner, len(numbers), last=last)
        node = LoopNode(loop, operands, inner, len(numbers), history, edges, results)
        for record in recorders_now():
            record(node, history)
        return [Tensor(_result(history, r), node, k) for k, r in enumerate(results)]
    history = _history(loop, operands, len(numbers), last=last)
    return [_result(history, r) for r in results]


def _history(loop: RolledLoop, operands: Sequence[Any], count: int, *, last: bool) -> Any:
    return bind(loop_history, loop_operands(operands, count), {"loop": loop, "last": last})


def loop_operands(operands: Sequence[Any], count: int) -> list[Any]:
    """The operands of `loop_history`: the numbers as one vector, then the sequences."""
    sequences = [reshaped(s, (arrays.shape(s)[0], math.prod(arrays.shape(s)[1:]))) for s in operands[count:]]
    return [_packed(operands[:count]), *sequences]


def _packed(values: Sequence[Any]) -> Any:
    if not any(map(arrays.shape, values)):
        return stack(values)
    return concat([reshaped(v, (arrays.size(v),)) for v in values])


def _result(history: Any, result: LoopResult) -> Any:
    rows = slice(1, None) if result.stacked else -1
    if not result.shape:
        return part(history, (rows, result.start))
    found = part(history, (rows, slice(result.start, result.start + math.prod(result.shape))))
    return reshaped(found, (*arrays.shape(found)[:-1], *result.shape))


class LoopNode(Node):
    """A loop whose results are its outputs. Its edges lead to the values of which its numbers consist, then to the
    sequences."""

    __slots__ = ("count", "history", "inner", "loop", "operands", "results", "selects")
    name = NodeName("ForBackward")

    def __init__(
        self,
        loop: RolledLoop,
        operands: Sequence[Any],
        inner: Sequence[Any],
        count: int,
        history: Any,
        edges: Sequence[Any],
        results: Sequence[LoopResult],
    ) -> None:
        super().__init__(edges, len(results))
        self.selects = loop.selects
        self.loop, self.count, self.results = loop, count, results
        self.operands: Sequence[Any] | None = operands
        self.inner, self.history = inner, history

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[object],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool = False,
        mask: Any = None,
        masks: list[Any] | None = None,
    ) -> Sequence[Any]:
        operands, loop, count = self.operands, self.loop, self.count
        if operands is None:
            raise DifferentiationError(RELEASED)
        used = [(r, c) for r, c in zip(self.results, cotangents) if c is not None]
        stacked = any(r.stacked for r, _ in used)
        live = loop.live([k for r, _ in used for k in r.carries], stacked=stacked)
        given = loop_operands(self.inner if lift is None else operands, count)
        y = self.history if lift is None else bind(loop_history, given, {"loop": loop, "last": False})
        after = _of_carries(loop, [(r, c) for r, c in used if not r.stacked], live.carries)
        outside = None
        if stacked:
            every = _of_carries(loop, [(r, c) for r, c in used if r.stacked], live.carries)
            outside = padded(every, 1, loop.rounds + 1)
            last = part(outside, (-1, ...))
            after = last if after is None else after + last
        around = [] if outside is None else [outside]

        def back_through(live: LiveValues, *, rows: bool) -> Cotangents:
            back = loop.reversed(live, *[loop.from_outside(live)] * len(around))
            return Cotangents(loop, live, back, y, after, around, given, rows=rows)

        rows, pulled_live = any(wanted[count:]), live
        if loop.has_arrays:
            # The cotangents of the reads are sums of what may be large: only those that are wanted are computed.
            pulled_live = live._replace(reads=self._wanted_reads(live, wanted))
        if rows and loop.has_arrays:
            # They are not kept for each round.
            of_numbers = back_through(pulled_live.without_elements, rows=False)
            of_rows = back_through(live._replace(reads=()), rows=True)
        else:
            of_numbers = of_rows = back_through(pulled_live if rows else pulled_live.without_elements, rows=rows)
        found = [*self._of_numbers(of_numbers, wanted), *self._of_sequences(of_rows, wanted)]
        pulled = [None if own is None else _like(own, like) for own, like in zip(found, self.inner)]
        if masks is not None and not guarded:
            masks[:] = [True] * len(masks)
        if len(loop.paths) > 1 and not stacked:
            self._drop_untaken(pulled, used, live, y, given, masks)
        return pulled

    def _wanted_reads(self, live: LiveValues, wanted: Sequence[object]) -> tuple[int, ...]:
        """The live reads of which cotangents are wanted."""
        numbers = [want for size, want in zip(self._sizes(), wanted) for _ in range(size)]
        carries = len(self.loop.layout.carries)
        return tuple(k for k in live.reads if numbers[carries + k])

    def _drop_untaken(
        self,
        pulled: list[Any],
        used: Sequence[tuple[LoopResult, Any]],
        live: LiveValues,
        y: Any,
        given: Sequence[Any],
        masks: list[Any] | None,
    ) -> None:
        """Remove cotangents of operands that only paths read that no round took, or mark them where `where` selects."""
        idle = [p is not None and _is_zero(p) for p in pulled]
        if recording_program():
            # Else another recording applies, in which a path that reads the operand is not taken.
            for p, zero in zip(pulled, idle):
                if p is not None and not zero:
                    differs = not_equal(constant(p), 0.0)
                    assume(any_(differs) if arrays.shape(differs) else differs)
        if not any(idle):
            return
        ones = arrays.numpy_namespace().ones
        marks = _of_carries(self.loop, [(r, ones(r.shape)) for r, _ in used], live.carries)
        back, plain = self.loop.taken(live), [*map(constant, given)]
        taken = Cotangents(self.loop, live, back, constant(y), marks, [], plain, rows=any(idle[self.count :]))
        for i, mark in enumerate([*self._of_numbers(taken, idle), *self._of_sequences(taken, idle)]):
            if mark is not None and assume(equal(mark, 0.0)):
                if not self.selects:
                    pulled[i] = None
                elif masks is not None:
                    masks[i] = None

    def _of_numbers(self, found: Cotangents, wanted: Sequence[object]) -> list[Any]:
        """The cotangents of the numbers that are wanted, not yet of their shape; None for the others."""
        sizes = self._sizes()
        starts = itertools.accumulate(sizes, initial=0)
        return [
            found.of_given(range(start, start + size)) if want else None
            for start, size, want in zip(starts, sizes, wanted)
        ]

    def _sizes(self) -> list[int]:
        """The number of carries or reads that each of the numbers makes."""
        return [self.loop.values_of(arrays.shape(value)) for value in self.inner[: self.count]]

    def _of_sequences(self, found: Cotangents, wanted: Sequence[object]) -> list[Any]:
        """The cotangents of the sequences that are wanted, not yet of their shape; None for the others."""
        return [found.of_sequence(i) if want else None for i, want in enumerate(wanted[self.count :])]

    def shape_of(self, number: int) -> Shape:
        result = self.results[number]
        return (self.loop.rounds, *result.shape) if result.stacked else result.shape

    def release(self) -> None:
        self.operands = self.inner = self.history = None  # type: ignore[assignment]

    def is_released(self) -> bool:
        return self.operands is None


def _of_carries(loop: RolledLoop, used: Sequence[tuple[LoopResult, Any]], carries: Sequence[int]) -> Any:
    """The cotangents of carries of these numbers from those of results, all stacked or none; None if there are none."""
    if not used:
        return None
    before = 1 if used[0][0].stacked else 0
    flat = {r.carries.start: reshaped(c, (*arrays.shape(c)[:before], math.prod(r.shape))) for r, c in used}
    zeros = zeros_like(part(next(iter(flat.values())), (..., slice(0, 1))))
    parts, k = [], 0
    counts = {r.carries.start: len(r.carries) for r, _ in used}
    while k < len(carries):
        count = counts.get(carries[k])
        parts.append(_widened(zeros, loop.layout.carries[carries[k]]) if count is None else flat[carries[k]])
        k += count or 1
    return parts[0] if len(parts) == 1 else concat(parts, -1)


def _widened(column: Any, shape: Shape) -> Any:
    """A column once for each element of a shape."""
    return broadcast_to(column, (*arrays.shape(column)[:-1], math.prod(shape))) if shape else column


def _is_zero(cotangent: Any) -> bool:
    """Return whether all numbers of a cotangent are 0 in the run that is recorded."""
    example = example_of(cotangent)
    return not isinstance(example, Kind) and arrays.all_true(example == 0)


def _like(cotangent: Any, operand: Any) -> Any:
    shape = arrays.shape(operand)
    if arrays.shape(cotangent) != shape:
        cotangent = reshaped(cotangent, shape)
    return fit(cotangent, operand)


# Bound on the numbers that a round carries and reads: beyond it, operations on whole arrays are faster.
_MOST_NUMBERS = 256
# Where there is no machine code, a recording of so many operations on arrays is faster than rounds: operations of many
# rounds are joined in it, see `executors.joined_operations`.
_FEW_EQUATIONS = 3_000
# Bound on the execution paths of a round.
_MOST_PATHS = 16
# A loop that ends by a condition is recorded for twice as many rounds as the example takes, and some more.
_MORE_ROUNDS = 16
_MOST_ROUNDS_TRIED = 1_000_000


class TooManyRoundsError(NotRecordableError):
    """A loop that ends by a condition has not ended after this number of `rounds`."""

    def __init__(self, rounds: int) -> None:
        super().__init__("the loop takes too many rounds")
        self.rounds = rounds


class Carried(NamedTuple):
    """A value that rounds pass on: the first one, and its place in a round.

    If it is `stacked`, the values after all rounds are wanted, not only the last one.
    """

    before: Any
    variable: Variable
    stacked: bool = False


class Rounds(NamedTuple):
    """The rounds of a loop: the variable of the counter, and its values.

    With `active`, the carried value of that number is 1 as long as the loop continues, and there may be fewer rounds.
    """

    counter: Variable
    counters: range
    active: int | None = None


def traced_paths(trace: RoundTrace, run: Callable[[], Sequence[Any]]) -> list[TracedPath]:
    """All execution paths of a round, which `run` goes through and of which it returns the results.

    Raises NotRecordableError for too many of them.
    """
    found: dict[tuple[bool, ...], TracedPath] = {}
    known: set[tuple[bool, ...]] = set()
    asked: list[tuple[bool, ...]] = [()]
    while asked:
        prefix = asked.pop()
        if prefix in known:
            continue
        if len(found) == _MOST_PATHS:
            raise NotRecordableError("a round takes one of too many paths")
        trace.begin(prefix)
        path = trace.ended(run())
        found[path.holds] = path
        known.update(path.holds[:i] for i in range(len(path.holds) + 1))
        asked += [(*path.holds[:i], not path.holds[i]) for i in range(len(path.holds))]
    return [found[holds] for holds in sorted(found)]


def needed_places(carried: Sequence[Carried], paths: Sequence[TracedPath], wanted: set[int]) -> list[int]:
    """The places of the carried values on which those that are `wanted` after the last round depend."""
    found, size = {*wanted}, -1
    while size < len(found):
        size = len(found)
        read = {v for path in paths for v in _dependencies(path, [path.outputs[i] for i in found])}
        found |= {i for i, c in enumerate(carried) if c.variable in read}
    return sorted(found)


def _dependencies(path: TracedPath, outputs: Sequence[Any]) -> set[Variable]:
    """The variables of which a round reads the values for some outputs and its conditions."""
    return needed_variables(path.equations, (*outputs, *path.conditions))


class ConstantCarries(NamedTuple):
    """The carried values that are the same for all inputs of the program, as a number that counts rounds.

    If the path of each round `is_fixed`, too, so is their value after the last round.
    """

    variables: set[Variable]
    is_fixed: bool


def constant_carries(trace: RoundTrace, carried: Sequence[Carried], paths: Sequence[TracedPath]) -> ConstantCarries:
    read = {v for _, v in trace.read.values()} | {r.variable for r in trace.rows}
    places = {i for i, c in enumerate(carried) if not isinstance(c.before, Kind)}
    size, varying = -1, read
    while size != len(places):
        size = len(places)
        varying = read | {c.variable for i, c in enumerate(carried) if i not in places}
        places = {i for i in places if all(_reads_none(path, path.outputs[i], varying) for path in paths)}
    is_fixed = all(_reads_none(path, condition, varying) for path in paths for condition in path.conditions)
    return ConstantCarries({carried[i].variable for i in places}, is_fixed)


def _reads_none(path: TracedPath, output: Any, variables: set[Variable]) -> bool:
    return variables.isdisjoint(needed_variables(path.equations, [output]))


def guards_held(trace: RoundTrace, before: Traced) -> Traced:
    """Return whether the guards of the path hold, and `before`, as 1 or 0."""
    found = before
    for guard in dict.fromkeys(trace.guards):
        holds = Traced(trace, guard, arrays.zeros(guard.shape, guard.dtype) if guard.shape else True)
        found = multiply(found, cast(all_(holds) if guard.shape else holds, "float64"))
    return found


class _Round(NamedTuple):
    """A round that was traced: the values that it passes on, its paths, and the values and rows from outside that it
    reads."""

    carried: Sequence[Carried]
    paths: Sequence[TracedPath]
    read: Sequence[tuple[Any, Variable]]
    rows: Sequence[Row]

    @property
    def variables(self) -> list[Variable]:
        """The variables of all that the round is given."""
        return [*(c.variable for c in self.carried), *(v for _, v in self.read), *(r.variable for r in self.rows)]

    @property
    def values(self) -> list[Any]:
        """All values from outside."""
        return [*(c.before for c in self.carried), *(value for value, _ in self.read), *(r.sequence for r in self.rows)]

    @property
    def is_complex(self) -> bool:
        """True if the loop reads or computes complex numbers."""
        equations = [e for path in self.paths for e in path.equations]
        return any(map(arrays.is_complex, (*self.variables, *(a for e in equations for a in (*e.inputs, e.output)))))


def rolled(trace: RoundTrace, rounds: Rounds, carried: Sequence[Carried], paths: Sequence[TracedPath]) -> list[Any]:
    """The carried values after the last round, and of those that are stacked, after all rounds along a new first axis.

    The outputs of each path are the carried values after the round. The last one is 1 as long as the guards of rounds
    held. Raises NotRecordableError where rounds differ in more than their numbers.
    """
    traced = _Round(carried, paths, [*trace.read.values()], trace.rows)
    if not traced.is_complex:
        return _run(trace, rounds, traced)
    from gradcli.loops import complex_rounds

    places = complex_rounds.split_places(traced.variables)
    variables = [c.variable for c in carried]
    split = _Round(
        [c._replace(before=b, variable=v) for c in carried for b, v in places.of(c.before, c.variable)],
        [complex_rounds.with_split_outputs(path, places, variables) for path in paths],
        [part for value, variable in traced.read for part in places.of(value, variable)],
        [part for row in traced.rows for part in places.of_row(row)],
    )
    if rounds.active is not None:
        rounds = rounds._replace(active=rounds.active + sum(v in places.parts for v in variables[: rounds.active]))
    found = complex_rounds.joined_results(variables, places, _run(trace, rounds, split))
    for k in complex_rounds.analytic_carries(variables, traced.variables, paths):
        complex_rounds.note_analytic(found[k], traced.values)
    return found


def _run(trace: RoundTrace, rounds: Rounds, traced: _Round) -> list[Any]:
    """The same as `rolled`, for a round whose inputs and carried values are real."""
    carried, paths = traced.carried, traced.paths
    guarded = any(path.outputs[-1] is not carried[-1].variable for path in paths)
    if traced.is_complex and not guarded:
        from gradcli.loops.complex_rounds import may_lose_digits

        guarded = any(map(may_lose_digits, paths))
    if not guarded:
        carried = carried[:-1]
        paths = [path._replace(outputs=path.outputs[:-1]) for path in paths]
    for path in paths:
        for given, atom in zip(carried, path.outputs):
            if (arrays.shape(atom), arrays.dtype_name(atom)) != (given.variable.shape, "float64"):
                raise NotRecordableError("a value changes its shape or type from round to round")
    loop, read, rows = _described(rounds, traced._replace(carried=carried, paths=paths), selects=trace.selects)
    used = {v for path in paths for v in _dependencies(path, path.outputs)}
    # A name that each round assigns before reading has no initial value; zeros stand for it.
    befores = [c.before if c.variable in used else zeros_like(constant(c.before)) for c in carried]
    numbers, sequences = [*befores, *read], [r.sequence for r in rows]
    if rounds.active is not None:
        loop = loop.with_rounds(_enough_rounds(loop, numbers, sequences))
    shapes = [c.variable.shape for c in carried]
    numbers_before = itertools.accumulate(map(loop.values_of, shapes), initial=0)
    starts = itertools.accumulate(map(math.prod, shapes), initial=0)
    results = [
        LoopResult(range(k, k + loop.values_of(c.variable.shape)), start, c.variable.shape, c.stacked)
        for k, start, c in zip(numbers_before, starts, carried)
    ]
    # Flags are read without derivatives.
    flags = int(guarded) + (rounds.active is not None)
    live = loop.live(
        [k for r in results[: len(results) - flags] for k in r.carries], stacked=any(r.stacked for r in results)
    )
    by_rows = any(isinstance(s, Tensor) and s.requires_grad for s in sequences)
    if not by_rows:
        live = live.without_elements
    # Found out now, as it cannot be undone in a backward pass.
    if recorded_now() and loop.reversed(live).valid_if_finite and not recording_program():
        raise NotRecordableError("the derivative of a round may be finite only round by round")
    differentiated = recorded_now() and any(isinstance(o, Tensor) and o.requires_grad for o in (*numbers, *sequences))
    stacked = any(r.stacked for r in results)
    kept = differentiated or stacked
    if differentiated and not stacked:
        loop = loop.checkpointed()
    found = run_loop(loop, numbers, sequences, results, last=not kept)
    if differentiated and not recording_program() and loop.discards:
        _require_finite_derivatives(loop, live, found, numbers, sequences, rows=by_rows)
    if guarded and not assume(greater(constant(found[-1]), 0.5)):
        raise NotRecordableError("a later round takes another shortcut than the first one")
    active = rounds.active
    if active is not None and loop.rounds < len(rounds.counters) and not assume(less(constant(found[active]), 0.5)):
        raise NotRecordableError("the loop takes more rounds")
    return found


def _require_finite_derivatives(
    loop: RolledLoop,
    live: LiveValues,
    found: Sequence[Any],
    numbers: Sequence[Any],
    sequences: Sequence[Any],
    *,
    rows: bool,
) -> None:
    """Raise NotRecordableError where the cotangent of a value that is not used could become nan; `rows` includes those of
    sequences."""
    nodes = (f.grad_fn for f in found if isinstance(f, Tensor))
    node = next((n for n in nodes if isinstance(n, LoopNode)), None)
    if node is None:
        return
    start, *others = loop_operands([*map(example_of, (*numbers, *sequences))], len(numbers))
    y = example_of(node.history)
    if not any(isinstance(e, Kind) for e in (y, start, *others)) and has_infinite_derivatives(
        loop, live, y, start, others, rows=rows
    ):
        raise NotRecordableError("the derivative of a round is not finite")


def _enough_rounds(loop: RolledLoop, numbers: Sequence[Any], sequences: Sequence[Any]) -> int:
    """A number of rounds in which a loop ends: more than the example takes, as other inputs will be given.

    Raises TooManyRoundsError if it does not end soon.
    """
    example, *rows = loop_operands([*map(example_of, (*numbers, *sequences))], len(numbers))
    if any(isinstance(e, Kind) for e in (example, *rows)):
        raise NotRecordableError("the number of rounds depends on the numbers")
    tried = loop.with_rounds(min(loop.rounds, _most_rounds_tried(loop)))
    taken = loop_execution.rounds_until_end(tried, example, rows)
    if taken == tried.rounds < loop.rounds:
        raise TooManyRoundsError(taken)
    return min(loop.rounds, _MORE_ROUNDS + 2 * taken if recording_program() else max(1, taken))


def _most_rounds_tried(loop: RolledLoop) -> int:
    """The number of rounds that are tried at most: no more than the run has a budget for, and one beyond it."""
    budget = limits.budget()
    if budget is None:
        return _MOST_ROUNDS_TRIED
    return min(_MOST_ROUNDS_TRIED, 1 + budget.elements // max(1, elements_of(loop.with_rounds(1))))


@garbage.collection_paused()
def _described(rounds: Rounds, traced: _Round, *, selects: bool) -> tuple[RolledLoop, list[Any], list[Row]]:
    """The loop, the values from outside and the sequences that it reads."""
    carried, paths, is_complex = traced.carried, traced.paths, traced.is_complex
    always = (rounds.counter, *(c.variable for c in carried))
    inputs = (rounds.counter, *traced.variables)
    sizes = len(rounds.counters), len(paths)
    programs = [shortened(Program(inputs, p.equations, (*p.outputs, *p.conditions)), *sizes) for p in paths]
    used = set[Variable]().union(*(needed_variables(p.equations, p.outputs) for p in programs))
    read = [(value, variable) for value, variable in traced.read if variable in used]
    rows = [row for row in traced.rows if row.variable in used]
    inputs = (*always, *(v for _, v in read), *(r.variable for r in rows))
    if any(v.dtype != "float64" for v in inputs):
        raise NotRecordableError("a round reads other than numbers of double precision")
    programs = [program._replace(inputs=inputs) for program in programs]
    shapes = [v.shape for v in inputs[1:]]
    values = Layout(
        shapes[: len(carried)], shapes[len(carried) : len(shapes) - len(rows)], [(r.variable.shape,) for r in rows]
    )
    if not any(map(math.prod, values.carries)):
        raise NotRecordableError("rounds pass on empty tensors")
    layout, by_scalars = values, _by_scalars(programs, values, is_complex=is_complex)
    active = rounds.active
    if by_scalars is not None:
        layout = Layout(_scalars(values.carries), _scalars(values.reads), [*map(_scalars, values.rows)])
        programs = [shortened(program, *sizes) for program in by_scalars]
        active = None if active is None else columns_of(values.carries[:active])
    elif is_complex:
        raise NotRecordableError("a round computes with large tensors of complex numbers")
    elif _is_fast_as_recorded(sum(len(p.equations) for p in programs) * len(rounds.counters)):
        raise NotRecordableError("few rounds compute with large tensors")
    body = [BodyPath(program, path.holds) for program, path in zip(programs, paths)]
    loop = RolledLoop(
        paths=body,
        program=joined(body, len(layout.carries)),
        layout=layout,
        offsets=[r.offset for r in rows],
        rounds=len(rounds.counters),
        first=float(rounds.counters.start),
        step=float(rounds.counters.step),
        active=active,
        selects=selects,
    )
    return loop, [value for value, _ in read], rows


def _is_fast_as_recorded(equations: int) -> bool:
    """Return whether so many equations of all rounds are faster one by one, in a recording."""
    return recording_program() and equations <= _FEW_EQUATIONS and not backends.is_installed("llvmlite")


def _scalars(shapes: Iterable[Shape]) -> list[Shape]:
    """The shapes of the elements of values of some shapes."""
    return [()] * columns_of(shapes)


def _by_scalars(programs: Sequence[Program], layout: Layout, *, is_complex: bool) -> list[Program] | None:
    """The programs of the paths by elements, and if they are complex by parts; None where arrays are faster.

    The last of the carries is whether the guards of a program hold.
    """
    if columns_of(layout.given) > _MOST_NUMBERS:
        return None
    try:
        found = [*map(by_element, programs)]
    except TensorsNeededError:
        return None
    if not is_complex:
        return found
    from gradcli.loops.complex_rounds import by_parts

    return [by_parts(program, columns_of(layout.carries) - 1) for program in found]
