"""The node of a rolled loop in the graph: operands that the results in use do not depend on get no cotangent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.modes import recorded_now, recording_program
from gradcli.autograd.node import RELEASED, Node, recorders_now
from gradcli.autograd.primitive_node import fit
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError
from gradcli.loops.body_tracing import example_of
from gradcli.loops.loop_primitive import Cotangents, loop_history, padded, part
from gradcli.loops.rolled_loop import LiveValues, RolledLoop
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, bind, constant
from gradcli.primitives.conversions import reshaped
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.comparisons import equal, not_equal
from gradcli.primitives.entries.reductions import any_
from gradcli.primitives.entries.shape import concat, stack
from gradcli.primitives.node_name import NodeName


class LoopResult(NamedTuple):
    """A result of a loop: carries from number `start` on that make a value of this shape.

    They are those after the last round or, if it is `stacked`, after all rounds along a new first axis.
    """

    start: int
    shape: Shape
    stacked: bool

    @property
    def columns(self) -> range:
        return range(self.start, self.start + math.prod(self.shape))


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
    found = part(history, (rows, slice(result.columns.start, result.columns.stop)))
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
        live = loop.live([k for r, _ in used for k in r.columns], stacked=stacked)
        given = loop_operands(self.inner if lift is None else operands, count)
        y = self.history if lift is None else bind(loop_history, given, {"loop": loop, "last": False})
        after = _of_columns([(r, c) for r, c in used if not r.stacked], live.carries)
        outside = None
        if stacked:
            every = _of_columns([(r, c) for r, c in used if r.stacked], live.carries)
            outside = padded(every, 1, loop.rounds + 1)
            last = part(outside, (-1, ...))
            after = last if after is None else after + last
        rows = any(wanted[count:])
        around = [] if outside is None else [outside]
        back = loop.reversed(live, *[loop.from_outside(live)] * len(around))
        found = self._by_operand(Cotangents(loop, live, back, y, after, around, given, rows=rows), wanted)
        pulled = [None if own is None else _like(own, like) for own, like in zip(found, self.inner)]
        if masks is not None and not guarded:
            masks[:] = [True] * len(masks)
        if len(loop.paths) > 1 and not stacked:
            self._drop_untaken(pulled, used, live, y, given, masks)
        return pulled

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
        marks = _of_columns([(r, ones(r.shape)) for r, _ in used], live.carries)
        back, plain = self.loop.taken(live), [*map(constant, given)]
        taken = Cotangents(self.loop, live, back, constant(y), marks, [], plain, rows=any(idle[self.count :]))
        for i, mark in enumerate(self._by_operand(taken, idle)):
            if mark is not None and assume(equal(mark, 0.0)):
                if not self.selects:
                    pulled[i] = None
                elif masks is not None:
                    masks[i] = None

    def _by_operand(self, found: Cotangents, wanted: Sequence[object]) -> list[Any]:
        """The cotangents of the operands that are wanted, not yet of their shape; None for the others."""
        sizes = [*map(arrays.size, self.inner)]
        starts = itertools.accumulate(sizes[: self.count], initial=0)
        numbers = [
            found.of_given(range(start, start + size)) if want else None
            for start, size, want in zip(starts, sizes[: self.count], wanted)
        ]
        count = self.count
        return [*numbers, *(found.of_sequence(i) if want else None for i, want in enumerate(wanted[count:]))]

    def shape_of(self, number: int) -> Shape:
        result = self.results[number]
        return (self.loop.rounds, *result.shape) if result.stacked else result.shape

    def release(self) -> None:
        self.operands = self.inner = self.history = None  # type: ignore[assignment]

    def is_released(self) -> bool:
        return self.operands is None


def _of_columns(used: Sequence[tuple[LoopResult, Any]], columns: Sequence[int]) -> Any:
    """The cotangents of carries of these numbers from those of results, all stacked or none; None if there are none."""
    if not used:
        return None
    before = 1 if used[0][0].stacked else 0
    flat = {r.start: reshaped(c, (*arrays.shape(c)[:before], len(r.columns))) for r, c in used}
    zeros = zeros_like(part(next(iter(flat.values())), (..., slice(0, 1))))
    parts, k = [], 0
    starts = {r.start: len(r.columns) for r, _ in used}
    while k < len(columns):
        width = starts.get(columns[k])
        parts.append(zeros if width is None else flat[columns[k]])
        k += width or 1
    return parts[0] if len(parts) == 1 else concat(parts, -1)


def _is_zero(cotangent: Any) -> bool:
    """Return whether all numbers of a cotangent are 0 in the run that is recorded."""
    example = example_of(cotangent)
    return not isinstance(example, Kind) and arrays.all_true(example == 0)


def _like(cotangent: Any, operand: Any) -> Any:
    shape = arrays.shape(operand)
    if arrays.shape(cotangent) != shape:
        cotangent = reshaped(cotangent, shape)
    return fit(cotangent, operand)
