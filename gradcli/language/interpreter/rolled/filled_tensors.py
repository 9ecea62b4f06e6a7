"""Tensors that a rolled loop fills and lists that it appends to: each round writes the row at the next place.

The rows that earlier rounds wrote and later ones read, as in `x[i] = x[i-1] + x[i-2]` and `xs.append(2*xs[-1])`, are
passed on from round to round; the tensor or list is completed after the loop by the rows that all rounds wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import NotRecordableError, Span
from gradcli.language.interpreter.lists import ProgramList, changed_in_place
from gradcli.language.interpreter.mutable_references import MutableReference
from gradcli.language.interpreter.rolled.traced_loops import NotRolledError, TracedLoop, is_number, zeros
from gradcli.language.interpreter.values import Value
from gradcli.loops.body_tracing import Row, Traced, TracedPath, example_of, require_plain
from gradcli.loops.rolling import Carried
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.indexing import index


class FilledTensor:
    """A tensor that the rounds of `loop` fill; `before` is its value before the loop.

    A place is given by its distance from the counter, which is the same in all rounds.
    """

    def __init__(self, loop: TracedLoop, before: Value) -> None:
        if before is not None:
            require_plain(before)
        self.loop, self.before = loop, before
        # Where each round writes its row; None until the first one is traced.
        self.place: int | None = None
        # The rows that a round reads before it writes them, by place.
        self.read: dict[int, Traced] = {}
        # The row that the path which is being traced has written, and those of all paths, None for a path without one.
        self.written: Value | None = None
        self._written: dict[tuple[bool, ...], Value | None] = {}

    def begin(self) -> Value:
        """The placeholder for the tensor in the round of another path."""
        self.written = None
        return FilledReference(self)

    def end(self) -> None:
        """Keep the row that the path has written. Raises NotRolledError for one that can be changed in place."""
        if self.written is not None and not is_number(self.written):
            raise NotRolledError
        self._written[tuple(self.loop.trace.holds)] = self.written

    def row(self, place: int) -> Value:
        """The row at a place, at this point of the round."""
        if place == self.place and self.written is not None:
            return self.written
        return self._row_before(place)

    def _row_before(self, place: int) -> Traced:
        """The row at a place at the beginning of the round."""
        if place not in self.read:
            example = example_of(index(self.before, self._first(place)))
            self.read[place] = self.loop.trace.input(example)
        return self.read[place]

    def put(self, place: int, key: Sequence[Any], value: Value) -> None:
        """Replace the row at a place, or with a `key` only some of its elements.

        Raises NotRecordableError if the round also writes at another place.
        """
        if self.place not in (None, place):
            raise NotRecordableError("a round writes two rows of a tensor")
        self._first(place)
        shape = arrays.shape(self.before)[1:]
        row = _set_at(self.row(place), tuple(key), value) if key else broadcast_to(value, shape) if shape else value
        self.place, self.written = place, row

    def _first(self, place: int) -> int:
        """The index at a place in the first round. Raises NotRecordableError if it is outside of the tensor in a
        round."""
        counters = self.loop.counters
        ends = counters[0] + place, counters[-1] + place
        if not 0 <= min(ends) <= max(ends) < arrays.shape(self.before)[0]:
            raise NotRecordableError("a place counts from the end")
        return ends[0]

    def distance(self, place: int) -> int:
        """The number of rounds since the row at a place was written; 0 or less for one that is still as `before`."""
        assert self.place is not None
        rounds, rest = divmod(self.place - place, self.loop.counters.step)
        return 0 if rest else rounds

    def carried(self, paths: Sequence[TracedPath]) -> tuple[list[Carried], list[list[Any]]]:
        """The values that rounds pass on, the row of the last round first and stacked, and for each path their final
        value.

        The rows that a round reads and no round has written become rows that the trace reads from outside.
        """
        trace = self.loop.trace
        if self.place is None:
            raise NotRecordableError("no round writes a row")
        rows = [self._written[path.holds] for path in paths]
        written = [trace.atom(self._row_before(self.place) if row is None else row) for row in rows]
        passed_on: dict[int, Traced] = {}
        for place, row in self.read.items():
            rounds = self.distance(place)
            if rounds > 0:
                passed_on[rounds] = row
            else:
                sequence, first = self.loop.sequence_at(self.before, place)
                trace.rows.append(Row(sequence, first, row.variable))
        like = example_of(next(row for row in rows if row is not None))
        carried = []
        for rounds in range(1, max(passed_on, default=1) + 1):
            row = passed_on[rounds] if rounds in passed_on else trace.input(like)
            before = zeros(row)
            if passed_on:
                before = index(self.before, self._first(self.place - rounds * self.loop.counters.step))
            carried.append(Carried(before, row.variable, stacked=rounds == 1))
        newer = [c.variable for c in carried[:-1]]
        return carried, [[row, *newer] for row in written]

    def complete(self, owner: Value, rows: Value) -> None:
        """Write the rows of all rounds to the tensor or list of the program."""
        assert self.place is not None
        first, counters = self._first(self.place), self.loop.counters
        stop = first + counters.step * len(counters)
        found = _set_at(self.before, (slice(first, None if stop < 0 else stop, counters.step),), rows)
        replace_elements(owner, found)


class GrownList(FilledTensor):
    """A list to which each round appends an item; `before` are its items before the loop as a tensor, None if they are
    none, and `count` is their number.

    The place of the item of a round is 0, and that of the item of the round before -1.
    """

    def __init__(self, loop: TracedLoop, before: Value, count: int, span: Span) -> None:
        super().__init__(loop, before)
        self.place, self.count, self.span = 0, count, span

    def begin(self) -> Value:
        self.written = None
        return GrowingItems(self, self.span)

    def end(self) -> None:
        if self.written is None:
            raise NotRecordableError("a round does not append one item")
        super().end()

    def append(self, item: Value) -> None:
        if self.written is not None:
            raise NotRecordableError("a round does not append one item")
        self.written = item

    def item(self, place: int) -> Value:
        """The item at a place of the list, counted from its end if negative."""
        if place < 0:
            return self.row(place + (self.written is not None))
        if place >= self.count:
            raise NotRecordableError("a round reads an item that an earlier one appended by its number")
        return self.loop.part(self.before, (place,))

    def item_at(self, key: Sequence[Any]) -> Value:
        """The item at a place that moves with the counter."""
        lag = lag_of(key, self.loop)
        if len(key) > 1 or self.loop.counters.step != 1:
            raise NotRecordableError("a place in a list does not move with the counter")
        return self.row(self.loop.counters.start + lag - self.count)

    def _first(self, place: int) -> int:
        if not -self.count <= place < 0 or self.before is None:
            raise NotRecordableError("a round reads an item that is not in the list yet")
        return self.count + place

    def distance(self, place: int) -> int:
        return -place

    def complete(self, owner: Value, rows: Value) -> None:
        owner.extend_by_rows(rows)


class GrowingItems(ProgramList):
    """The placeholder for a list in a round that appends to it; its length, which differs by round, cannot be read."""

    __slots__ = ("grown",)

    def __init__(self, grown: GrownList, span: Span) -> None:
        super().__init__([], span, "grown")
        self.grown = grown
        self.is_hidden = True

    def has_place(self, place: int) -> bool:
        count = self.grown.count + (self.grown.written is not None)
        return -count <= place < count

    def item(self, place: int) -> Value:
        return self.grown.item(place)

    def append(self, item: Value) -> None:
        self.grown.append(item)


class FilledReference(MutableReference):
    """The reference to a tensor that a round fills."""

    __slots__ = ("tensor",)
    by_rows = True

    def __init__(self, tensor: FilledTensor) -> None:
        self.tensor = tensor

    @property
    def value(self) -> Value:
        raise NotRecordableError("a round reads all of a tensor that it fills")

    def part(self, key: Sequence[Any]) -> Value:
        row = self.tensor.row(lag_of(key, self.tensor.loop))
        return index(row, tuple(key[1:])) if key[1:] else row

    def put(self, key: Any, value: Value) -> None:
        self.tensor.put(lag_of(key, self.tensor.loop), key[1:], value)


def lag_of(key: Sequence[Any], loop: TracedLoop) -> int:
    """The distance of the first item of a key from the counter. Raises NotRecordableError if it does not move with
    it."""
    item = key[0] if key else None
    if not isinstance(item, Traced) or item.lag is None or item.trace is not loop.trace:
        raise NotRecordableError("a place in what a round fills does not move with the counter")
    return item.lag


def _set_at(tensor: Value, key: tuple[Any, ...], values: Value) -> Any:
    # Loaded on demand: few loops fill tensors.
    from gradcli.primitives.entries.manipulation.functional_update import set_at

    return set_at(tensor, key, values)


def replace_elements(value: Value, result: Value) -> None:
    """Replace all elements of a list or a tensor in place."""
    if isinstance(value, ProgramList):
        value.items[:] = [index(result, i) for i in range(value.count)]
        value.changed()
    else:
        value.value = result
        changed_in_place()
