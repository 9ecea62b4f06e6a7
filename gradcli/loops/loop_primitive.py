"""The primitive of a rolled loop, with derivative rules that are rolled loops again.

`loop_history(given, *sequences, loop=RolledLoop, last=bool)` runs a rolled loop.

`given`, of shape [..., carries + reads], holds the carries before the first round and the reads. A sequence has shape
[rows, ..., width]. Axes in between are independent loops, and are broadcast. The result has shape [rounds + 1, ...,
carries]: row i has the carries before round i, the last row those after the last round; if the loop is reversed, the
rows are in the order of the counter, too, so that the first row is the last result. With `last`, it is the only row.
If the loop has a `spacing`, most rows between the first and the last one are left out; those that are not are there for
the loop of the cotangents, which has this loop as its `source`, and have no derivatives of their own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.modes import recording_program
from gradcli.errors import NotRecordableError
from gradcli.kinds.jets import Jet
from gradcli.loops import loop_execution
from gradcli.loops.part import part
from gradcli.loops.rolled_loop import NONE_OUTSIDE, LiveValues, OutsideCotangents, RolledLoop, columns_of
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.conversions import broadcast_to, permuted, reshaped
from gradcli.primitives.entries.arithmetic import add, zeros_like
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.primitives.entries.shape import concat
from gradcli.primitives.primitive import Primitive

# Cost of an operation of a round on numbers, in array elements that take as long: between that of compiled loops and that of
# Python's.
_OPERATION = 2
# The array elements that rounds compute in the time of one that an operation on its own computes. Rounds whose operations
# are charged one by one are charged for few of those of a backward pass, so that a loop would be refused before they are.
_ELEMENTS = 3


def _pulled_back(i: int, g: Any, y: Any, *operands: Any, loop: RolledLoop, last: bool) -> Any:
    """The cotangent of operand `i`: that of the carries and reads, or of the sequence number i - 1."""
    every = not last and loop.spacing == 1
    if loop.sources:
        if every or i > len(loop.sources):
            return _pulled_back_through_all_rows(i, g, operands, loop, last=last)
        return _pulled_back_by_stretches(i, g, y, operands, loop, last=last)
    if last:
        loop = loop.checkpointed()
    # Rows between the first and the last one have cotangents only where all rows are kept.
    live = loop.live(range(len(loop.layout.carries)), stacked=every)
    if i == 0:
        live = live.without_elements
    elif loop.has_arrays:
        # Sums of the cotangents of the reads may be large, and are not kept for each round.
        live = live._replace(reads=())
    outside = loop.from_outside(live) if every else NONE_OUTSIDE
    back = loop.reversed(live, outside)
    if last:
        # Only the last carries were kept: compute the others that are read again.
        y = _rows_of(loop, back.kept, operands)
    after = _row(g, 0 if last or loop.reverse else -1)
    found = Cotangents(loop, live, back, y, after, [g] if every else [], operands, rows=i > 0)
    pulled = found.of_all_given() if i == 0 else found.of_sequence(i - 1)
    if pulled is None:
        pulled = zeros_like(operands[i])
    if i == 0 and not every and not last:
        pulled = _with_added_carries(pulled, _row(g, loop.first_row), loop.carries)
    return pulled


def _rows_of(loop: RolledLoop, kept: tuple[int, ...] | None, operands: Sequence[Any]) -> Any:
    """The history of some carries of a loop, which do not depend on the others; of all if `kept` is None."""
    if kept is not None:
        given, *sequences = operands
        carries, reads = _divided_columns(given, loop.carries)
        operands = [concat([_columns_of_carries(loop, kept, carries), reads], -1), *sequences]
        loop = loop.restricted(kept)
    return bind(loop_history, operands, {"loop": loop, "last": False})


def _columns_of_carries(loop: RolledLoop, kept: Sequence[int], columns: Any) -> Any:
    """The columns of some carries of a loop from those of all carries."""
    starts = loop.carry_starts
    return concat([part(columns, (..., slice(starts[k], starts[k + 1]))) for k in kept], -1)


def _pulled_back_by_stretches(i: int, g: Any, y: Any, operands: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """The cotangent of the carries and reads of a loop with sources, or of the kept rows of the source number i - 1: as if
    all their rows were kept, and were computed from the first ones.

    The loop and its sources are gone through backward, one after the other, each by a loop that has the ones before as
    its sources, so that all of them keep few rows.
    """
    spaced = loop.spaced(loop.sources[0].spacing)
    loops, count = [spaced, *loop.sources], len(loop.sources)
    start, sequences = operands[0], operands[1 + count :]
    if last:
        y = bind(loop_history, operands, {"loop": spaced, "last": False})
    rows = [y, *operands[1 : 1 + count]]
    final = _row(g, 0 if last or loop.reverse else -1)
    reads = _divided_columns(start, loop.carries)[1]
    found: list[Cotangents] = []
    for number, own in enumerate(loops[: i + 1] if i else loops):
        live = own.live(range(len(own.layout.carries)), stacked=number > 0)
        back = own.reversed(live, _from_later_loops(found, loops[:number], own, live))
        if number < (i or count):
            back = back.spaced(spaced.spacing)
        given = concat([_row(rows[number], own.first_row), reads], -1) if number else start
        after = zeros_like(_row(rows[number], 0)) if number else final
        around = [*(f.found for f in reversed(found)), *rows[:number]]
        others = [given, *rows[number + 1 :], *sequences]
        found.append(Cotangents(own, live, back, rows[number], after, around, others, rows=number < (i or count)))
    pulled = [f.of_all_given() for f in found]
    if i:
        carries = (
            zeros_like(_row(rows[i], 0)) if pulled[i] is None else _divided_columns(pulled[i], loops[i].carries)[0]
        )
        return _as_first_row(carries, loops[i], arrays.shape(rows[i])[0])
    total = zeros_like(start) if pulled[0] is None else pulled[0]
    for own, further in zip(loops[1:], pulled[1:]):
        if further is not None:
            carries, to_reads = _divided_columns(total, loop.carries)
            total = concat([carries, add(to_reads, _divided_columns(further, own.carries)[1])], -1)
    return total if last else _with_added_carries(total, _row(g, loop.first_row), loop.carries)


def _from_later_loops(
    later: Sequence[Cotangents], read_by: Sequence[RolledLoop], own: RolledLoop, live: LiveValues
) -> OutsideCotangents:
    """The cotangents of the live rows of a loop from the loops that read them, `read_by`, whose cotangents `later` have.

    Their sequences are what those keep, the last one first, and then the rows of the loops that read.
    """
    if not later:
        return NONE_OUTSIDE
    backs = [f.back for f in later][::-1]
    rows = tuple(tuple(loop.layout.carries) for loop in (*backs, *read_by))
    # The cotangents of what a round read are there after that round.
    offsets = (*(0 if b.reverse else 1 for b in backs), *[0] * len(read_by))
    starts = [*itertools.accumulate(map(len, rows), initial=0)][: len(backs)][::-1]
    added: dict[bool, list[tuple[int, ...]]] = {True: [], False: []}
    for before, found in added.items():
        for k in live.carries:
            parts = []
            for number, (start, f) in enumerate(zip(starts, later)):
                place = len(later) - 1 - number
                part_of_row = f.carry_of_element(sum(map(len, f.loop.layout.rows[:place])) + k)
                # A round reads the row before or after the same round of the other loop.
                if part_of_row is not None and before == (f.loop.offsets[place] == (1 if own.reverse else 0)):
                    parts.append(start + part_of_row)
            found.append(tuple(parts))
    return OutsideCotangents(rows, offsets, tuple(added[True]), tuple(added[False]), backs[0])


def _pulled_back_through_all_rows(i: int, g: Any, operands: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """The same as `_pulled_back_by_stretches`, also of other sequences and for the rows of a loop, by way of all rows."""
    if not last and loop.spacing > 1:
        # The rows between have no cotangents.
        final = _row(g, 0 if loop.reverse else -1)
        pulled = _pulled_back_through_all_rows(i, reshaped(final, (1, *arrays.shape(final))), operands, loop, last=True)
        return pulled if i else _with_added_carries(pulled, _row(g, loop.first_row), loop.carries)
    loops = [own.with_all_rows for own in (loop, *loop.sources)]
    count = len(loop.sources)
    start, kept, sequences = operands[0], operands[1 : 1 + count], operands[1 + count :]
    reads = _divided_columns(start, loop.carries)[1]
    given = [start, *(concat([_row(k, own.first_row), reads], -1) for k, own in zip(kept, loops[1:]))]
    # What each loop reads, and its rows.
    read: list[Sequence[Any]] = [sequences]
    rows: list[Any] = []
    for own, before in zip(loops[:0:-1], given[:0:-1]):
        rows.insert(0, bind(loop_history, [before, *read[0]], {"loop": own, "last": False}))
        read.insert(0, [rows[0], *read[0]])
    found = [bind(loop_history, [start, *read[0]], {"loop": loops[0], "last": last}), *rows]

    @functools.cache
    def of_operand(number: int, place: int) -> Any:
        """The cotangent of an operand of a loop from those of its rows."""
        sent = g if not number else total([of_operand(n, number - n) for n in range(number)])
        own = [given[number], *read[number]]
        return _pulled_back(place, sent, found[number], *own, loop=loops[number], last=last and not number)

    def total(parts: Sequence[Any]) -> Any:
        return functools.reduce(add, parts)

    if i > count:
        return total([of_operand(n, i - n) for n in range(count + 1)])
    parts = [_divided_columns(of_operand(n, 0), own.carries) for n, own in enumerate(loops)]
    if i:
        return _as_first_row(parts[i][0], loops[i], arrays.shape(kept[i - 1])[0])
    return concat([parts[0][0], total([to_reads for _, to_reads in parts])], -1)


def _as_first_row(carries: Any, loop: RolledLoop, count: int) -> Any:
    """Rows of a loop of which all but the one before the first round are 0."""
    return padded(reshaped(carries, (1, *arrays.shape(carries))), count - 1 if loop.reverse else 0, count)


def _with_added_carries(pulled: Any, added: Any, count: int) -> Any:
    carries, reads = _divided_columns(pulled, count)
    return concat([add(carries, added), reads], -1)


def _divided_columns(x: Any, count: int) -> tuple[Any, Any]:
    """The first columns of a matrix, and the others."""
    return part(x, (..., slice(0, count))), part(x, (..., slice(count, None)))


class Cotangents:
    """The cotangents of the `operands` of a loop from those of its `live` carries, by the loop `back`.

    `y` is the history of the loop, or of the carries whose rows `back` reads, `after` has the cotangents of the live
    carries after the last round, and `around` the sequences with those of the live carries of the history from outside.
    With `rows`, those of the sequences are wanted, or the rows that `back` keeps.
    """

    def __init__(
        self,
        loop: RolledLoop,
        live: LiveValues,
        back: RolledLoop,
        y: Any,
        after: Any,
        around: Sequence[Any],
        operands: Sequence[Any],
        *,
        rows: bool,
    ) -> None:
        self.loop, self.live, self.back, self.operands = loop, live, back, operands
        given, *sequences = operands
        if back.kept is not None and arrays.shape(y)[-1] == loop.carries:
            y = _columns_of_carries(loop, back.kept, y)
        zeros = zeros_like(part(given, (..., slice(0, 1))))
        sent = columns_of(loop.layout.carries[k] for k in live.carries)
        empty = broadcast_to(zeros, (*arrays.shape(given)[:-1], back.carries - sent))
        start = concat([after, empty, part(given, (..., slice(loop.carries, None)))], -1)
        self.found = _history(back, [start, *around, y, *sequences], last=not rows)
        self.final = _row(self.found, -1 if rows and not back.reverse else 0)

    def of_given(self, places: range) -> Any:
        """That of consecutive values among the carries before the first round and the reads; None if none is live."""
        live, shapes = self.live, [*self.loop.layout.carries, *self.loop.layout.reads]
        first, after = {*live.first}, len(self.loop.layout.carries)
        numbers = {k: i for i, k in enumerate(live.carries) if k in first}
        numbers |= {after + k: len(live.carries) + i for i, k in enumerate(live.reads)}
        return self._side_by_side(self.final, [(numbers.get(k), shapes[k]) for k in places])

    def of_all_given(self) -> Any:
        """That of all carries before the first round and all reads; None if none is live."""
        return self.of_given(range(len(self.loop.layout.carries) + len(self.loop.layout.reads)))

    def carry_of_element(self, number: int) -> int | None:
        """The carry of `back` that is the cotangent of a part of the row that a round read; None if it is not live."""
        live = self.live
        return live.elements.index(number) + sum(live.counts[:2]) if number in live.elements else None

    def of_sequence(self, number: int) -> Any:
        """That of a sequence; None if no part of its rows is live."""
        loop = self.loop
        skipped = sum(map(len, loop.layout.rows[:number]))
        at = 1 if loop.reverse else 0
        rows = part(self.found, slice(at, at + loop.rounds))
        parts = [(self.carry_of_element(skipped + k), shape) for k, shape in enumerate(loop.layout.rows[number])]
        found = self._side_by_side(rows, parts)
        if found is None:
            return None
        return padded(found, loop.offsets[number], arrays.shape(self.operands[1 + number])[0])

    def _side_by_side(self, found: Any, parts: Sequence[tuple[int | None, Shape]]) -> Any:
        """Some carries of a history of `back`, by number, with zeros of the shape for None; None if there are none else."""
        numbers = [number for number, _ in parts]
        known = [number for number in numbers if number is not None]
        if not known:
            return None
        starts = self.back.carry_starts
        if numbers == [*range(known[0], known[0] + len(numbers))]:
            return part(found, (..., slice(starts[known[0]], starts[known[-1] + 1])))
        zeros, before = zeros_like(part(found, (..., slice(0, 1)))), arrays.shape(found)[:-1]
        columns = [
            part(found, (..., slice(starts[number], starts[number + 1])))
            if number is not None
            else broadcast_to(zeros, (*before, math.prod(shape)))
            for number, shape in parts
        ]
        return concat(columns, -1)


def _history(loop: RolledLoop, operands: Sequence[Any], *, last: bool) -> Any:
    """The history of the loop of a derivative.

    Raises NotRecordableError for a recording that has to be finite and is not.
    """
    found = bind(loop_history, operands, {"loop": loop, "last": last})
    if (loop.valid_if_finite or loop.discards) and not assume(isfinite(constant(found))) and recording_program():
        raise NotRecordableError("the derivative of a round is not finite")
    return found


def has_infinite_derivatives(
    loop: RolledLoop, live: LiveValues, y: Any, given: Any, sequences: Sequence[Any], *, rows: bool
) -> bool:
    """Return whether cotangents of 0 give others than 0, for a history `y` of numbers; `rows` includes those of
    sequences."""
    np, back = arrays.numpy_namespace(), loop.reversed(live)
    if back.kept is not None:
        y = _columns_of_carries(loop, back.kept, y)
    start = np.concatenate([np.zeros(back.carries), given[loop.carries :]])
    # Cotangents of 0 remain 0 in each round if they do in all of them.
    if loop.spacing == 1 and loop_execution.computes_single_rounds(back):
        rounds = loop_execution.single_rounds(back, start, (y, *sequences))
        if all(np.isfinite(carry).all() for carries in rounds for carry in carries):
            return False
    found = loop_execution.history(arrays.namespace_of((y,)), start, y, *sequences, loop=back, last=not rows)
    return not np.isfinite(found).all()


def _row(x: Any, number: int) -> Any:
    return part(x, (number, ...))


def padded(rows: Any, before: int, count: int) -> Any:
    """Rows, preceded by `before` zero rows and followed by as many as make `count`."""
    zeros = zeros_like(part(rows, (slice(0, 1), ...)))
    shape = arrays.shape(rows)
    counts = (before, count - before - shape[0])
    head, tail = [[broadcast_to(zeros, (n, *shape[1:]))] if n else [] for n in counts]
    return concat([*head, rows, *tail], 0) if head or tail else rows


def _coefficients(_primitive: Primitive, y: Jet, *operands: Jet, loop: RolledLoop, last: bool) -> Iterator[Any]:
    if any(o.is_growing for o in operands):
        for order in itertools.count(1):
            yield _series(loop, operands, order, last=last, perturbed=y.roundings is not None)[order]
    yield from _series(loop, operands, y.order, last=last, perturbed=y.roundings is not None)[1:]
    yield from itertools.repeat(None)


def _series(loop: RolledLoop, operands: Sequence[Jet], order: int, *, last: bool, perturbed: bool) -> list[Any]:
    """The coefficients of the history from 0 to `order`."""
    coefficients = [[o.zeros() if c is None else c for c in map(o.coefficient, range(order + 1))] for o in operands]
    given, rows = coefficients[0], coefficients[1:]
    varied = [any(o.coefficient(k) is not None for k in range(1, order + 1)) for o in operands[1:]]
    # The rows between those that are kept are computed again with all of their coefficients.
    varied[: len(loop.sources)] = [True] * len(loop.sources)
    carries = [part(c, (..., slice(0, loop.carries))) for c in given]
    reads = [part(c, (..., slice(loop.carries, None))) for c in given]
    sequences = [concat(cs, -1) if v else cs[0] for cs, v in zip(rows, varied)]
    series = loop.series(order, tuple(varied), perturbed=perturbed)
    found = _history(series, [concat([*carries, *reads], -1), *sequences], last=last)
    width = loop.carries
    return [part(found, (..., slice(k * width, (k + 1) * width))) for k in range(order + 1)]


def _batched(_primitive: Primitive, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """The rows of a batch become a further axis of independent loops, before the others."""
    rows = next(arrays.shape(o)[0] for o, b in zip(operands, batched) if b)
    given = operands[0] if batched[0] else broadcast_to(operands[0], (rows, *arrays.shape(operands[0])))
    sequences = [_rows_second(s, b) for s, b in zip(operands[1:], batched[1:])]
    found = bind(loop_history, [given, *sequences], params)
    return permuted(found, _exchanged(len(arrays.shape(found))))


def _rows_second(sequence: Any, batched: bool) -> Any:
    shape = arrays.shape(sequence)
    return permuted(sequence, _exchanged(len(shape))) if batched else reshaped(sequence, (shape[0], 1, *shape[1:]))


def _exchanged(rank: int) -> Shape:
    """The order of axes that exchanges the first two."""
    return (1, 0, *range(2, rank))


def elements_of(loop: RolledLoop) -> int:
    """The cost of a loop in array elements."""
    return loop.cost // _ELEMENTS if loop.has_arrays else loop.cost * _OPERATION


def _elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    return math.prod(loop_execution.lanes_of(shapes)) * elements_of(params["loop"])


def _history_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    loop: RolledLoop = params["loop"]
    return (loop.kept_rows(last=params["last"]), *loop_execution.lanes_of(shapes), loop.carries)


loop_history = Primitive(
    "loop_history", "tensors, loop, last", "the carries of a rolled loop before its first round and after each of them",
    internal="for",
    forward=loop_execution.history,
    vjp=_pulled_back,
    variadic=True,
    jet=_coefficients,
    batch=_batched,
    elements=_elements,
    result_shape=_history_shape,
    derivative="the loop of the derivatives",
)  # fmt: skip
