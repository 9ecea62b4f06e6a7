"""Runs a loop whose round was traced as a rolled loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import recorded_now, recording_program
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.loops import python_code
from gradcli.loops.body_tracing import RoundTrace, Row, Traced, TracedPath, example_of
from gradcli.loops.loop_node import LoopNode, LoopResult, loop_operands, run_loop
from gradcli.loops.loop_primitive import has_infinite_derivatives
from gradcli.loops.rolled_loop import BodyPath, LiveValues, RolledLoop, joined
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, constant
from gradcli.primitives.conversions import cast
from gradcli.primitives.entries.arithmetic import multiply, zeros_like
from gradcli.primitives.entries.comparisons import greater, less
from gradcli.primitives.entries.reductions import all_
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import needed_variables, optimise
from gradcli.program.scalarisation import TensorsNeededError, by_element

# Bound on the numbers that a round carries and reads: beyond it, operations on whole arrays are faster.
_MOST_NUMBERS = 256
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
    starts = itertools.accumulate((_size(c.variable) for c in carried), initial=0)
    results = [LoopResult(start, c.variable.shape, c.stacked) for start, c in zip(starts, carried)]
    # Flags are read without derivatives.
    flags = int(guarded) + (rounds.active is not None)
    live = loop.live(
        [k for r in results[: len(results) - flags] for k in r.columns], stacked=any(r.stacked for r in results)
    )
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
        _require_finite_derivatives(loop, live, found, numbers, sequences)
    if guarded and not assume(greater(constant(found[-1]), 0.5)):
        raise NotRecordableError("a later round takes another shortcut than the first one")
    active = rounds.active
    if active is not None and loop.rounds < len(rounds.counters) and not assume(less(constant(found[active]), 0.5)):
        raise NotRecordableError("the loop takes more rounds")
    return found


def _require_finite_derivatives(
    loop: RolledLoop, live: LiveValues, found: Sequence[Any], numbers: Sequence[Any], sequences: Sequence[Any]
) -> None:
    """Raise NotRecordableError where the cotangent of a value that is not used could become nan."""
    rows = any(isinstance(s, Tensor) and s.requires_grad for s in sequences)
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
    tried = loop.with_rounds(min(loop.rounds, _MOST_ROUNDS_TRIED))
    taken = python_code.rounds_until_end(tried, example, rows)
    if taken == tried.rounds < loop.rounds:
        raise TooManyRoundsError(taken)
    return min(loop.rounds, _MORE_ROUNDS + 2 * taken if recording_program() else max(1, taken))


def _described(rounds: Rounds, traced: _Round, *, selects: bool) -> tuple[RolledLoop, list[Any], list[Row]]:
    """The loop, the values from outside and the sequences that it reads."""
    carried, paths, is_complex = traced.carried, traced.paths, traced.is_complex
    always = (rounds.counter, *(c.variable for c in carried))
    inputs = (rounds.counter, *traced.variables)
    programs = [optimise(Program(inputs, p.equations, (*p.outputs, *p.conditions))) for p in paths]
    used = set[Variable]().union(*(needed_variables(p.equations, p.outputs) for p in programs))
    read = [(value, variable) for value, variable in traced.read if variable in used]
    rows = [row for row in traced.rows if row.variable in used]
    inputs = (*always, *(v for _, v in read), *(r.variable for r in rows))
    if any(v.dtype != "float64" for v in inputs) or sum(map(_size, inputs)) > _MOST_NUMBERS:
        raise NotRecordableError("a round reads more than some numbers")
    places = [*itertools.accumulate((_size(c.variable) for c in carried), initial=0)]
    body = [
        BodyPath(_of_scalars(program._replace(inputs=inputs), places[-1] - 1, is_complex=is_complex), path.holds)
        for program, path in zip(programs, paths)
    ]
    if not places[-1]:
        raise NotRecordableError("rounds pass on empty tensors")
    loop = RolledLoop(
        paths=body,
        program=joined(body, places[-1]),
        carries=places[-1],
        reads=sum(_size(v) for _, v in read),
        widths=[_size(r.variable) for r in rows],
        offsets=[r.offset for r in rows],
        rounds=len(rounds.counters),
        first=float(rounds.counters.start),
        step=float(rounds.counters.step),
        active=None if rounds.active is None else places[rounds.active],
        selects=selects,
    )
    return loop, [value for value, _ in read], rows


def _size(variable: Variable) -> int:
    """The number of elements."""
    return math.prod(variable.shape)


def _of_scalars(program: Program, last: int, *, is_complex: bool) -> Program:
    """A program by elements, and if it is complex by parts, whose output number `last` is whether its guards hold.

    Raises NotRecordableError for one of large tensors.
    """
    try:
        found = by_element(program)
    except TensorsNeededError:
        raise NotRecordableError("a round computes with large tensors") from None
    if is_complex:
        from gradcli.loops.complex_rounds import by_parts

        found = by_parts(found, last)
    return optimise(found)
