"""A loop whose round is a program of numbers or arrays, and the loops that compute its derivatives."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, dataclass_transform

from gradcli import arrays, garbage, limits
from gradcli.arrays.shapes import Shape
from gradcli.autograd.engine import BackwardPass
from gradcli.autograd.modes import enable_grad, recording_program
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.executors import stepwise
from gradcli.kinds.branch_points import watching
from gradcli.kinds.jets import Jet
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.comparisons import isfinite, maximum
from gradcli.primitives.entries.reductions import max_
from gradcli.program.ir import Program, Variable, check
from gradcli.program.ir import elements as cost_in_elements
from gradcli.program.passes import needed_variables, optimise, without_dead_code
from gradcli.program.record import record


class Stretch(NamedTuple):
    """The rounds from `begin` to before `end`, in the order of the counter, and where their rows are.

    With `reverse`, they run from the last one to the first. The array of each of the `sequences` begins with the row of
    this number, and that of the results with row `result`.
    """

    begin: int
    end: int
    reverse: bool
    sequences: tuple[int, ...]
    result: int = 0

    @property
    def rounds(self) -> range:
        """The numbers of the rounds, in the order in which they are run."""
        numbers = range(self.begin, self.end)
        return numbers[::-1] if self.reverse else numbers

    @property
    def first_row(self) -> int:
        """The row of the results that has the carries before the first round that is run."""
        return (self.end if self.reverse else self.begin) - self.result

    def row_after(self, number: int) -> int:
        """The row of the results that has the carries after a round."""
        return number + (0 if self.reverse else 1) - self.result


# The size of a float64.
_BYTES_PER_NUMBER = 8
# The number of rounds from which their program is optimised even if it is run only once: the passes take 15 µs for an
# equation, of which one in six is saved, and an equation takes 30 ns in each round.
_WORTH_OPTIMISING = 3_000


class Layout(NamedTuple):
    """The shapes of the values of a round: of those that it carries and reads, and of the parts of a row of each sequence.

    In memory they are flat, one after the other: each has as many columns as elements.
    """

    carries: Sequence[Shape]
    reads: Sequence[Shape]
    rows: Sequence[Sequence[Shape]] = ()

    @property
    def given(self) -> list[Shape]:
        """The shapes of all that a round is given besides the counter."""
        return [*self.carries, *self.reads, *self.elements]

    @property
    def elements(self) -> list[Shape]:
        """The shapes of the parts of the rows of all sequences."""
        return [*itertools.chain(*self.rows)]

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of carries, reads and parts of rows."""
        return len(self.carries), len(self.reads), sum(map(len, self.rows))


def columns_of(shapes: Iterable[Shape]) -> int:
    """The number of columns of values of these shapes."""
    return sum(map(math.prod, shapes))


def parts_of(shapes: Iterable[Shape]) -> Iterator[tuple[slice, Shape]]:
    """The columns of each of some values that lie one after the other, with its shape."""
    begin = 0
    for shape in shapes:
        end = begin + math.prod(shape)
        yield slice(begin, end), shape
        begin = end


class LiveValues(NamedTuple):
    """The values on which some carries depend after the last round, as far as derivatives are concerned.

    `first` are the carries before the first round on which they depend, `carries` those before any round, or after the
    last one, and `reads` and `elements` the reads and the parts of rows; all by number, in order.
    """

    first: tuple[int, ...]
    carries: tuple[int, ...]
    reads: tuple[int, ...]
    elements: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers of carries, reads and elements."""
        return len(self.carries), len(self.reads), len(self.elements)

    @property
    def without_elements(self) -> LiveValues:
        """The same where no derivatives by rows are wanted."""
        return self._replace(elements=()) if self.elements else self


class OutsideCotangents(NamedTuple):
    """The cotangents that a backward loop adds to those of the live carries before and after each round.

    They are parts of rows of sequences, of these shapes and `offsets`, which stand before all others: `before` and
    `after` have, for each live carry, the numbers of the parts that are added. With a `source`, the first of these
    sequences has the rows that this loop keeps.
    """

    rows: tuple[tuple[Shape, ...], ...] = ()
    offsets: tuple[int, ...] = ()
    before: tuple[tuple[int, ...], ...] = ()
    after: tuple[tuple[int, ...], ...] = ()
    source: RolledLoop | None = None


NONE_OUTSIDE = OutsideCotangents()


class BodyPath(NamedTuple):
    """One execution path of a round, as a program.

    The outputs of `program` are the carries after the round, followed by the conditions that select the path; `holds`
    says for each of them whether it is true on the path.
    """

    program: Program
    holds: tuple[bool, ...]


@dataclass_transform(eq_default=False, kw_only_default=True)
class _Described:
    """Has the fields of its annotations, as a `dataclass`, which would take as long to make as tracing a round."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def _changed(self, **fields: Any) -> Self:
        """The same with other values of these fields."""
        return type(self)(**{n: v for n, v in vars(self).items() if n in self.__annotations__} | fields)


class RolledLoop(_Described):
    """A number of rounds, known beforehand, of one program of float64 numbers or arrays.

    The inputs of `program` are, in this order, the counter, the carries, the reads, and the parts of one row of each
    sequence, of the shapes in `layout`. The outputs are the carries after the round. Round i, from 0 to `rounds` - 1,
    has the counter `first` + `step`*i and reads row i + `offsets[j]` of the sequence j. If `reverse`, the rounds run
    from the last to the first.

    `paths` are the execution paths of a round, which `program` joins. Derivatives are those of each path, joined in the
    same way: what was not taken leaves no trace in them.

    With `active`, the carry of that number, a scalar, is 1 as long as the loop continues; later rounds change nothing.

    It `selects` if some path stands for an operand of `where`, whose cotangent is 0 where it is not taken; that of a
    value which only branches that were not taken read is None.

    If it is `valid_if_finite`, its results are valid only if they are finite: where they are not, what was not taken by
    a `maximum` or the like may have left nan.

    With an `idle` number, a round in which this part of its rows, a scalar, is 0 changes nothing; they are the last ones
    in the order of the counter.

    Of the carries of all rounds only each row whose number is a multiple of `spacing`, and the last row, are kept. With
    a `source`, a loop that keeps its rows so, the first sequence has these rows, and the rows between are computed
    again, from the other sequences; if the source has a source, the second sequence has what that keeps, and so on.

    A loop of cotangents has the numbers of the carries whose rows it reads in `kept`, or None for all of them: those that
    only add up, as the cotangents of weights do, are not read.

    `compiled` has the machine code that runs all rounds, once there is any, by whether the last carries alone are kept:
    a function of the carries and reads, the sequences and the array of the results, see `loop_execution.run_compiled`.

    Compared by identity, so that it can be a parameter of a primitive.
    """

    paths: Sequence[BodyPath]
    program: Program
    layout: Layout
    offsets: Sequence[int]
    rounds: int
    first: float
    step: float
    reverse: bool = False
    active: int | None = None
    valid_if_finite: bool = False
    selects: bool = False
    idle: int | None = None
    spacing: int = 1
    source: RolledLoop | None = None
    kept: tuple[int, ...] | None = None

    @cached_property
    def compiled(self) -> dict[bool, Callable[..., Any]]:
        return {}

    @cached_property
    def _series(self) -> dict[tuple[int, tuple[bool, ...], bool], RolledLoop]:
        return {}

    @cached_property
    def _reversed(self) -> dict[tuple[LiveValues, OutsideCotangents], RolledLoop]:
        return {}

    @cached_property
    def _spaced(self) -> dict[int, RolledLoop]:
        return {}

    @cached_property
    def _restricted(self) -> dict[tuple[int, ...], RolledLoop]:
        return {}

    @cached_property
    def _taken(self) -> dict[LiveValues, RolledLoop]:
        return {}

    @cached_property
    def carries(self) -> int:
        """The number of columns of the carries."""
        return columns_of(self.layout.carries)

    @cached_property
    def reads(self) -> int:
        """The number of columns of the reads."""
        return columns_of(self.layout.reads)

    @cached_property
    def widths(self) -> Sequence[int]:
        """The number of columns of each sequence."""
        return [*map(columns_of, self.layout.rows)]

    @cached_property
    def carry_starts(self) -> Sequence[int]:
        """The first column of each carry, and the number of columns."""
        return [*itertools.accumulate(map(math.prod, self.layout.carries), initial=0)]

    def values_of(self, shape: Shape) -> int:
        """The number of carries or reads that make a value of this shape, itself or each of its elements."""
        return 1 if self._is_given_arrays else math.prod(shape)

    @cached_property
    def _is_given_arrays(self) -> bool:
        return any(self.layout.given)

    @cached_property
    def has_arrays(self) -> bool:
        """True if a round is given arrays, not only numbers, or computes some."""
        return self._is_given_arrays or any(e.output.shape for e in self.program.equations)

    def with_rounds(self, rounds: int) -> RolledLoop:
        """The same loop with another number of rounds."""
        return self._changed(rounds=rounds)

    def checkpointed(self) -> RolledLoop:
        """The same loop, with each √n-th row kept if all of them take more than `limits.MAX_STORED_BYTES`.

        A gradient then keeps some 2√n rows at a time, and runs the rounds once more.
        """
        stored = (self.rounds + 1) * self.carries * _BYTES_PER_NUMBER
        if self.reverse or stored <= limits.MAX_STORED_BYTES:
            return self
        return self.spaced(math.isqrt(self.rounds))

    def spaced(self, spacing: int) -> RolledLoop:
        """The same loop, of which each row whose number is a multiple of `spacing` is kept."""
        if spacing == self.spacing:
            return self
        found = self._spaced.get(spacing)
        if found is None:
            found = self._spaced[spacing] = self._changed(spacing=spacing)
        return found

    @cached_property
    def sources(self) -> Sequence[RolledLoop]:
        """The source, its source, and so on: the loops whose kept rows are the first sequences."""
        return () if self.source is None else (self.source, *self.source.sources)

    @property
    def first_row(self) -> int:
        """The index of the row before the first round that is run."""
        return -1 if self.reverse else 0

    @cached_property
    def with_all_rows(self) -> RolledLoop:
        """The same loop, of which all rows are kept, and whose first sequence has all rows."""
        return self if self.spacing == 1 and self.source is None else self._changed(spacing=1, source=None)

    @cached_property
    def all_rounds(self) -> Stretch:
        """All rounds, for arrays with all rows."""
        return Stretch(0, self.rounds, self.reverse, (0,) * len(self.widths))

    def kept_rows(self, *, last: bool) -> int:
        """The number of rows of the result: only that after the `last` round, or those that are kept."""
        return 1 if last else -(-self.rounds // self.spacing) + 1

    @cached_property
    def reads_counter(self) -> bool:
        """True if a round reads the counter."""
        counter = self.program.inputs[0]
        return any(counter in e.inputs for e in self.program.equations) or counter in self.program.outputs

    @property
    def cost(self) -> int:
        """The number of operations of all rounds, and of those that are run again."""
        again = 0 if self.source is None else self.source.cost
        return self.rounds * self.cost_of_round + again

    @cached_property
    def cost_of_round(self) -> int:
        """The number of operations of a round."""
        equations = self.program.equations
        return (cost_in_elements(equations) if self.has_arrays else len(equations)) + self.carries

    @cached_property
    def discards(self) -> bool:
        """True if cotangents in some round may be 0 because results do not depend on a number, or it was not selected.

        Round by round these zeros would be known as such: a 0 becomes nan where a derivative is infinite.
        """
        carry, equations = self.program.inputs[1:2], self.program.equations
        several = self.carries > 1 or len(self.paths) > 1
        return self.has_arrays or several or not any(v in carry for e in equations for v in e.inputs)

    @cached_property
    def _dependence(self) -> Sequence[set[int]]:
        """The numbers of the inputs on which each carry depends after a round, on any of the paths."""
        found: list[set[int]] = [set() for _ in self.layout.carries]
        for program, _ in self.paths:
            for own, inputs in zip(found, _inputs_by_output(program)):
                own |= inputs
        return found

    def live(self, used: Iterable[int], *, stacked: bool = False) -> LiveValues:
        """The values that these carries depend on after the last round or, if `stacked`, after any round."""
        carries, reads, _ = self.layout.counts
        outputs = frozenset(used)
        # The carries that matter after the last round, before it, and so on, until they are those of an earlier number.
        backward = {outputs: 0}
        inputs, first = set[int](), outputs
        while len(backward) <= self.rounds:
            read = set[int]().union(*(self._dependence[k] for k in first))
            inputs |= read
            first = frozenset(i for i in read if i < carries) | (outputs if stacked else frozenset())
            if first in backward:
                begin, period = backward[first], len(backward) - backward[first]
                first = [*backward][begin + (self.rounds - begin) % period]
                break
            backward[first] = len(backward)
        every = frozenset[int]().union(*backward)
        after_reads = carries + reads
        return LiveValues(
            tuple(sorted(first)),
            tuple(sorted(every)),
            tuple(sorted(i - carries for i in inputs if carries <= i < after_reads)),
            tuple(sorted(i - after_reads for i in inputs if i >= after_reads)),
        )

    def reversed(self, live: LiveValues, outside: OutsideCotangents = NONE_OUTSIDE) -> RolledLoop:
        """The loop that propagates the cotangents of what is `live` from the last round to the first.

        Its carries are the cotangents of the live carries, those of the live reads, which add up, and those of the live
        elements of the rows that the round read. Its reads are those of this loop. Its sequences are those with
        cotangents from outside, the carries before each round, and the sequences of this loop.
        """
        key = live, outside
        found = self._reversed.get(key)
        if found is None:
            found = self._of_cotangents(live, outside)
            if self.has_arrays and found.source is None:
                found = found._without_unread_rows(len(outside.rows), self)
            self._reversed[key] = found
        return found

    def _without_unread_rows(self, number: int, forward: RolledLoop) -> RolledLoop:
        """This loop of cotangents without the carries of the loop `forward` that it does not read, in the sequence of this
        number."""
        rows = self.layout.rows
        before, count = sum(map(len, rows[:number])), len(rows[number])
        first = 1 + len(self.layout.carries) + len(self.layout.reads) + before
        read = {
            place - first
            for program, _ in self.paths
            for place in _read_inputs(program, program.outputs)
            if first <= place < first + count
        }
        if not read:
            # A sequence has some columns.
            read.add(min(range(count), key=lambda k: math.prod(rows[number][k])))
        kept = forward.closed(read)
        if len(kept) == count:
            return self
        dropped = {first + k for k in range(count)} - {first + k for k in kept}
        shapes = [rows[number][k] for k in kept]
        return self._changed(
            paths=[BodyPath(_without_inputs(program, dropped), holds) for program, holds in self.paths],
            program=_without_inputs(self.program, dropped),
            layout=self.layout._replace(rows=[*rows[:number], shapes, *rows[number + 1 :]]),
            idle=None if self.idle is None else before + kept.index(self.idle - before),
            kept=kept,
        )

    def closed(self, carries: Iterable[int]) -> tuple[int, ...]:
        """Some carries and all those on which they depend in later rounds, by number, in order."""
        found = {*carries} | ({self.active} if self.active is not None else set())
        size = -1
        while size < len(found):
            size = len(found)
            for program, _ in self.paths:
                outputs = [program.outputs[k] for k in found] + [*program.outputs[len(self.layout.carries) :]]
                found |= {
                    place - 1 for place in _read_inputs(program, outputs) if 1 <= place <= len(self.layout.carries)
                }
        return tuple(sorted(found))

    def restricted(self, kept: tuple[int, ...]) -> RolledLoop:
        """The same loop of some carries alone, which do not depend on the others."""
        if kept not in self._restricted:
            self._restricted[kept] = self._with_carries(kept)
        return self._restricted[kept]

    def _with_carries(self, kept: tuple[int, ...]) -> RolledLoop:
        count = len(self.layout.carries)
        dropped = {1 + k for k in range(count)} - {1 + k for k in kept}

        def of_kept(program: Program) -> Program:
            outputs = (*(program.outputs[k] for k in kept), *program.outputs[count:])
            return _without_inputs(program._replace(outputs=outputs), dropped)

        return self._changed(
            paths=[BodyPath(of_kept(program), holds) for program, holds in self.paths],
            program=of_kept(self.program),
            layout=self.layout._replace(carries=[self.layout.carries[k] for k in kept]),
            active=None if self.active is None else kept.index(self.active),
        )

    def from_outside(self, live: LiveValues) -> OutsideCotangents:
        """One sequence of cotangents, with a row for each of this loop and a part for each live carry."""
        shapes = tuple(self.layout.carries[k] for k in live.carries)
        return OutsideCotangents((shapes,), (1 if self.reverse else 0,), tuple((k,) for k in range(len(shapes))))

    def _of_cotangents(self, live: LiveValues, outside: OutsideCotangents) -> RolledLoop:
        carries, reads, elements = self.layout.counts

        def run(program: Program, *inputs: Any) -> list[Any]:
            counter, rest = inputs[0], inputs[1:]
            after, total, _, read, given, before, row = _divided(
                rest, *live.counts, reads, sum(map(len, outside.rows)), carries, elements
            )
            leaves = [Tensor(x).requires_grad_() for x in (*before, *read, *row)]
            # Cotangents from later rounds and from results outside come first, as in a backward pass through one round
            # after the other, so that sums have the same order and the same rounding errors.
            sent = [*zip([leaves[carries + k] for k in live.reads], total)]
            sent += [(leaves[k], _sum([given[i] for i in own])) for k, own in zip(live.carries, outside.before) if own]
            if outside.after:
                after = [_sum([own, *(given[i] for i in more)]) for own, more in zip(after, outside.after)]
            with enable_grad(), watching(None):
                results = stepwise.outputs(program, [counter, *leaves])
                sent += zip([results[k] for k in live.carries], after)
                found = _pulled_back(sent, leaves, ordinary_zeros=self.has_arrays)
            to_carries, to_reads, to_row = _divided(found, carries, reads, elements)
            live_ones = [to_carries[k] for k in live.carries], [to_reads[k] for k in live.reads]
            found = [*itertools.chain(*live_ones), *(to_row[k] for k in live.elements)]
            return [*map(_zero_for_none, found), *map(constant, results[carries:])]

        return self._backward(run, live, outside)

    def taken(self, live: LiveValues) -> RolledLoop:
        """The loop that marks by 1, else 0, what marked carries depend on, on the paths that were taken.

        It has marks where the loop of cotangents has cotangents, without any from outside.
        """
        if live not in self._taken:
            self._taken[live] = self._of_marks(live)
        return self._taken[live]

    def _of_marks(self, live: LiveValues) -> RolledLoop:
        carries, reads, elements = self.layout.counts
        shapes, first_element = self.layout.given, carries + reads

        def run(program: Program, *inputs: Any) -> list[Any]:
            after, total, _, read, before, row = _divided(inputs[1:], *live.counts, reads, carries, elements)
            results = stepwise.outputs(program, [inputs[0], *before, *read, *row])
            dependence = _inputs_by_output(program)

            def mark(number: int, known: Any = 0.0) -> Any:
                marks = [m for k, m in zip(live.carries, after) if number in dependence[k]]
                marks = [max_(m) if arrays.shape(m) not in ((), shapes[number]) else m for m in marks]
                return functools.reduce(lambda a, b: bind(maximum, (a, b), {}), marks, known)

            found = [
                *map(mark, live.carries),
                *(mark(carries + k, known) for k, known in zip(live.reads, total)),
                *(mark(first_element + k) for k in live.elements),
            ]
            return [*found, *results[carries:]]

        return self._backward(run, live, NONE_OUTSIDE)

    def _backward(self, run: Callable[..., list[Any]], live: LiveValues, outside: OutsideCotangents) -> RolledLoop:
        """The loop from the last round to the first that carries one value for each of what is `live`.

        Its sequences are those from outside, the carries before each round, and the sequences of this loop.
        """
        at = 1 if self.reverse else 0
        own, elements = self.layout, self.layout.elements
        pulled = [own.carries[k] for k in live.carries], [own.reads[k] for k in live.reads]
        return self._derived(
            run,
            Layout(
                [*itertools.chain(*pulled), *(elements[k] for k in live.elements)],
                own.reads,
                (*outside.rows, own.carries, *own.rows),
            ),
            offsets=(*outside.offsets, at, *self.offsets),
            reverse=not self.reverse,
            idle=None if outside.rows or self.reverse else self.active,
            source=outside.source if outside.source or self.spacing == 1 else self,
        )

    def series(self, order: int, varied: tuple[bool, ...], *, perturbed: bool = False) -> RolledLoop:
        """The loop of the Taylor coefficients of the carries up to `order`.

        Its carries and reads are the coefficients of order 0, followed by those of order 1, and so on; so are the
        parts of the rows that are `varied`. If it is `perturbed`, the result of each operation is, as in a
        `Jet.shadow`.
        """
        key = order, varied, perturbed
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = self._of_series(*key)
        return found

    def _of_series(self, order: int, varied: tuple[bool, ...], perturbed: bool) -> RolledLoop:
        terms, own = order + 1, self.layout
        rows = [[*shapes] * (terms if v else 1) for shapes, v in zip(own.rows, varied)]

        layout = Layout([*own.carries] * terms, [*own.reads] * terms, rows)

        def run(program: Program, *inputs: Any) -> list[Any]:
            roundings = Perturbation() if perturbed else None
            counter, rest = inputs[0], inputs[1:]
            carries, reads, *parts = _divided(rest, *(len(s) for s in (layout.carries, layout.reads, *rows)))
            given = [counter, *_jets(carries, order, roundings), *_jets(reads, order, roundings)]
            for row, vary in zip(parts, varied):
                given += _jets(row, order, roundings) if vary else row
            with watching(None):
                results = stepwise.outputs(program, given)
            numbers, conditions = results[: len(own.carries)], results[len(own.carries) :]
            coefficients = [_coefficient(r, k) for k in range(terms) for r in numbers]
            return [*map(_zero_for_none, coefficients), *map(constant, conditions)]

        return self._derived(
            run,
            layout,
            offsets=self.offsets,
            reverse=self.reverse,
            active=self.active,
            idle=self._idle_of_series(rows),
            spacing=self.spacing,
            source=None if self.source is None else self.source.series(order, varied[1:], perturbed=perturbed),
        )

    def _idle_of_series(self, rows: Sequence[Sequence[Shape]]) -> int | None:
        """The number of the part that marks idle rounds among those of rows of these shapes."""
        if self.idle is None:
            return None
        number, place = self.row_of_part(self.idle)
        return sum(map(len, rows[:number])) + place

    def row_of_part(self, part: int) -> tuple[int, int]:
        """The number of the sequence that a part of the rows belongs to, and its place in the row."""
        number = 0
        while part >= len(self.layout.rows[number]):
            part -= len(self.layout.rows[number])
            number += 1
        return number, part

    @garbage.collection_paused()
    def _derived(
        self,
        run: Callable[..., list[Any]],
        layout: Layout,
        *,
        offsets: Sequence[int],
        reverse: bool,
        active: int | None = None,
        idle: int | None = None,
        spacing: int = 1,
        source: RolledLoop | None = None,
    ) -> RolledLoop:
        """The loop of the same rounds whose program is that of `run`, a function of the given values by position."""
        given = {f"{i}": _example(shape) for i, shape in enumerate([(), *layout.given])}
        paths, valid_if_finite = [], self.valid_if_finite
        with arrays.using_namespace(None):
            for path in self.paths:
                recorded = record(lambda **given: _whole(run(path.program, *given.values()), layout.carries), given)  # noqa: B023
                valid_if_finite |= _assumes_finite_numbers(recorded.program)
                program = recorded.program._replace(guards=())
                paths.append(BodyPath(shortened(program, self.rounds, len(self.paths)), path.holds))
        return self._changed(
            paths=paths,
            program=joined(paths, len(layout.carries)),
            layout=layout,
            offsets=offsets,
            reverse=reverse,
            active=active,
            idle=idle,
            spacing=spacing,
            source=source,
            kept=None,
            valid_if_finite=valid_if_finite,
        )


def _read_inputs(program: Program, outputs: Iterable[Any]) -> set[int]:
    """The places of the inputs that some outputs are computed from."""
    read = needed_variables(program.equations, [*outputs])
    return {place for place, variable in enumerate(program.inputs) if variable in read}


def _without_inputs(program: Program, places: Container[int]) -> Program:
    """A program without inputs that its outputs are not computed from, nor what else is computed from these."""
    inputs = tuple(v for place, v in enumerate(program.inputs) if place not in places)
    return without_dead_code(program._replace(inputs=inputs))


def _inputs_by_output(program: Program) -> list[set[int]]:
    """The numbers of the inputs, without the counter, by which each output has a derivative."""
    inputs = program.inputs[1:]
    # The inputs as bits of a whole number.
    reached = {v: 1 << i for i, v in enumerate(inputs)}
    for e in program.equations:
        differentiable, found = e.primitive.differentiable(len(e.inputs)), 0
        for i, a in enumerate(e.inputs):
            if differentiable >> i & 1 and isinstance(a, Variable):
                found |= reached.get(a, 0)
        reached[e.output] = found
    every = [reached.get(a, 0) if isinstance(a, Variable) else 0 for a in program.outputs]
    return [{i for i in range(len(inputs)) if found >> i & 1} for found in every]


# Rules take no shortcut for the example nan, so that the recorded program is valid for all numbers.
EXAMPLE = math.nan


def _example(shape: Shape) -> Any:
    return arrays.numpy_namespace().full(shape, EXAMPLE) if shape else EXAMPLE


def _whole(results: Sequence[Any], shapes: Sequence[Shape]) -> list[Any]:
    """The results of a round, of which the first ones are to have these shapes and may be single numbers."""
    of_shape = [r if arrays.shape(r) == shape else broadcast_to(r, shape) for r, shape in zip(results, shapes)]
    return [*of_shape, *results[len(shapes) :]]


def _assumes_finite_numbers(program: Program) -> bool:
    """Return whether the guards of the derivative of a round say that numbers are finite.

    Raises NotRecordableError for any other guard.
    """
    defined = {e.output: e.primitive for e in program.equations}
    if any(defined.get(guard) is not isfinite for guard in program.guards):
        raise NotRecordableError("the derivative of a round takes a shortcut")
    return bool(program.guards)


def shortened(program: Program, rounds: int, paths: int) -> Program:
    """The program of one of some paths of a round without what does not pay for as many rounds.

    It is optimised if it is part of a recording, which is run again; other loops are traced anew each time.
    """
    if recording_program() or rounds >= _WORTH_OPTIMISING or paths > 1:
        return optimise(program)
    return check(without_dead_code(program, errors=True))


def joined(paths: Sequence[BodyPath], carries: int) -> Program:
    """One program for all paths, whose inputs have the same names: the conditions select each carry."""
    if len(paths) == 1:
        return paths[0].program
    # Loaded on demand: most rounds have one path.
    from gradcli.program.execution_paths import ExecutionPath, join_paths

    keys = tuple((f"{k}",) for k in range(carries))
    found = [
        ExecutionPath(
            program.outputs[carries:], holds, program._replace(outputs=program.outputs[:carries]), keys, finite=True
        )
        for program, holds in paths
    ]
    return join_paths(found)[1]


def _divided(values: Sequence[Any], *counts: int) -> list[Sequence[Any]]:
    """Consecutive parts of a sequence, with these numbers of items."""
    ends = [*itertools.accumulate(counts)]
    return [values[end - count : end] for count, end in zip(counts, ends)]


def _jets(coefficients: Sequence[Any], order: int, roundings: Perturbation | None) -> list[Jet]:
    """Series of numbers, from the coefficients of order 0 of all of them, then those of order 1, and so on."""
    count = len(coefficients) // (order + 1)
    found = [Jet(coefficients[i::count], order) for i in range(count)]
    for jet in found:
        jet.roundings = roundings
    return found


def _coefficient(value: Any, k: int) -> Any:
    """Coefficient `k` of a series, or of a constant; None if it is 0."""
    return value.coefficient(k) if isinstance(value, Jet) else None if k else value


def _pulled_back(
    results: Sequence[tuple[Any, Any]], leaves: Sequence[Tensor], *, ordinary_zeros: bool
) -> Sequence[Any]:
    """The cotangents of leaves from results with theirs; None for a leaf that no result depends on."""
    dependent = [(r, c) for r, c in results if isinstance(r, Tensor) and r.requires_grad]
    if not dependent:
        return [None] * len(leaves)
    roots, weights = zip(*dependent)
    return BackwardPass(roots, weights, leaves, False, False, accumulate=False, ordinary_zeros=ordinary_zeros).run()


def _sum(parts: Sequence[Any]) -> Any:
    return functools.reduce(operator.add, parts)


def _zero_for_none(value: Any) -> Any:
    return 0.0 if value is None else value
