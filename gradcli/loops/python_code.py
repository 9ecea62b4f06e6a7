"""A rolled loop as a generated Python function of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.executors import stepwise
from gradcli.executors.scalars import ScalarWriter
from gradcli.loops.body_tracing import chosen
from gradcli.loops.stretch import Stretch
from gradcli.primitives.entries.comparisons import where
from gradcli.program.ir import Equation

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Takes an iterable of the counters and row elements of some rounds, the carries and the reads; returns a list for each
# carry, of its value before the first round and after each of them, or of the last one alone.
History = Callable[..., list[list[float]]]
# The number of rounds whose values are kept as Python floats before they are copied to an array. Floats take four
# times as much memory as the array; those of 2,000 rounds fit in the cache of a core.
_AT_A_TIME = 2_000

# The generated functions of each loop; the key is True for the one that returns the values of all rounds.
_functions: WeakKeyDictionary[RolledLoop, dict[bool, History]] = WeakKeyDictionary()


def compute(
    loop: RolledLoop, given: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool
) -> None:
    """Write the carries of some rounds to `found`, or the `last` ones, see `machine_code.run`.

    `given` is a vector, each of `sequences` and `found` a matrix.
    """
    if loop.idle is not None:
        stretch = _without_idle(loop, loop.idle, given, sequences, found, stretch, last=last)
    numbers = given.tolist()
    before = numbers[: loop.carries]
    if not last:
        found[stretch.first_row] = before
    written = stretch.begin + 1 - stretch.result
    for begin, end, columns in _pieces(loop, numbers, sequences, stretch, keep=not last):
        before = [column[-1] for column in columns]
        if last:
            continue
        after = arrays.numpy_namespace().array(columns).T[1:]
        if loop.reverse:
            found[begin - stretch.result : end - stretch.result] = after[::-1]
        else:
            found[written : written + len(after)] = after
            written += len(after)
    if last:
        found[0] = before
    elif not loop.reverse:
        # The loop may have ended before.
        found[written : stretch.end + 1 - stretch.result] = before


def _without_idle(
    loop: RolledLoop, idle: int, given: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool
) -> Stretch:
    """The rounds without those that change nothing, the last ones, whose carries are written to `found`."""
    ends = [*itertools.accumulate(loop.widths)]
    number = next(j for j, end in enumerate(ends) if idle < end)
    first = stretch.begin + loop.offsets[number] - stretch.sequences[number]
    marks = sequences[number][first : first + stretch.end - stretch.begin, idle - ends[number]]
    end = stretch.begin + int(arrays.numpy_namespace().count_nonzero(marks))
    if not last:
        found[end - stretch.result : stretch.end + 1 - stretch.result] = given[: loop.carries]
    return stretch._replace(end=end)


def rounds_until_end(loop: RolledLoop, given: Any, sequences: Sequence[Any]) -> int:
    """The number of rounds after which a loop that may end before its last round is no longer active."""
    pieces = _pieces(loop, given.tolist(), sequences, loop.all_rounds, keep=True)
    return sum(len(columns[0]) - 1 for _, _, columns in pieces)


def _pieces(
    loop: RolledLoop, numbers: Sequence[float], sequences: Sequence[Any], stretch: Stretch, *, keep: bool
) -> Iterator[tuple[int, int, list[list[float]]]]:
    """Run the loop in batches of rounds; yield `(begin, end, values)` for each batch.

    `values` has a list for each carry: its values after each round that was run, preceded by its value before the first
    of them if `keep`.
    """
    functions = _functions.setdefault(loop, {})
    function = functions.get(keep)
    if function is None:
        function = functions[keep] = _LoopWriter(loop).function(keep=keep)
    carries, reads = numbers[: loop.carries], numbers[loop.carries :]
    starts = range(stretch.begin, stretch.end, _AT_A_TIME)
    for begin in starts[::-1] if loop.reverse else starts:
        part = stretch._replace(begin=begin, end=min(begin + _AT_A_TIME, stretch.end))
        try:
            columns = function(_rounds(loop, sequences, part), *carries, *reads)
        except (ArithmeticError, ValueError):
            columns = _with_infinities(loop, _rounds(loop, sequences, part), [*carries, *reads])
        yield part.begin, part.end, columns
        carries = [column[-1] for column in columns]
        if loop.active is not None and not carries[loop.active]:
            return


def _rounds(loop: RolledLoop, sequences: Sequence[Any], stretch: Stretch) -> Iterable[Any]:
    """The arguments of each round: the counter, if it is read, and the elements of the rows."""
    columns: list[Iterable[float]] = []
    order = slice(None, None, -1) if loop.reverse else slice(None)
    if loop.reads_counter:
        columns.append(loop.first + loop.step * i for i in stretch.rounds)
    for sequence, offset, skipped in zip(sequences, loop.offsets, stretch.sequences):
        first = stretch.begin + offset - skipped
        columns += [c[order] for c in sequence[first : first + stretch.end - stretch.begin].T.tolist()]
    return zip(*columns) if columns else itertools.repeat((), stretch.end - stretch.begin)


def _with_infinities(loop: RolledLoop, rounds: Iterable[Any], numbers: Sequence[float]) -> list[list[float]]:
    """Run the rounds one primitive at a time, where a function of `math` raises instead of returning inf or nan."""
    carries, reads = [*numbers[: loop.carries]], numbers[loop.carries :]
    columns = [[c] for c in carries]
    for row in rounds:
        row = row if loop.reads_counter else (0.0, *row)
        carries = stepwise.run(loop.program, [row[0], *carries, *reads, *row[1:]]) or []
        for column, carry in zip(columns, carries):
            column.append(carry)
        if loop.active is not None and not carries[loop.active]:
            break
    return columns


class _LoopWriter(ScalarWriter):
    def __init__(self, loop: RolledLoop) -> None:
        super().__init__(loop.program)
        self.loop = loop

    def _equation(self, equation: Equation) -> str:
        if equation.primitive is chosen:
            equation = equation._replace(primitive=where)
        return super()._equation(equation)

    def function(self, *, keep: bool) -> History:
        loop = self.loop
        names = [self.names[v] for v in loop.program.inputs]
        carries, reads = names[1 : 1 + loop.carries], names[1 + loop.carries : 1 + loop.carries + loop.reads]
        row = names[1 + loop.carries + loop.reads :]
        if loop.reads_counter:
            row = [names[0], *row]
        body = self.statements()
        results = [self.number(atom) for atom in loop.program.outputs]
        kept = [f"h{k}" for k in range(loop.carries)]
        lines = [
            f"def history({', '.join(['rounds', *carries, *reads])}):",
            *(f"    {h} = [{c}]; a{h} = {h}.append" for h, c in zip(kept, carries) if keep),
            f"    for {', '.join(row)}{',' if len(row) == 1 else ''} in rounds:" if row else "    for _ in rounds:",
            *(f"        {line}" for line in body),
            f"        {', '.join(carries)} = {', '.join(results)}",
            *(f"        a{h}({c})" for h, c in zip(kept, carries) if keep),
            *([] if loop.active is None else [f"        if not {carries[loop.active]}: break"]),
            f"    return [{', '.join(kept if keep else (f'[{c}]' for c in carries))}]",
        ]
        return self.defined("history", lines)
