"""A rolled loop as a generated Python function of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.executors import stepwise
from gradcli.executors.scalars import ScalarWriter

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Takes an iterable of the counters and row elements of all rounds, the carries and the reads; returns a list for each
# carry.
History = Callable[..., list[list[float]]]

_functions: WeakKeyDictionary[RolledLoop, History] = WeakKeyDictionary()


def history(loop: RolledLoop, given: Any, sequences: Sequence[Any], *, last: bool) -> Any:
    """The carries of all rounds, an array of shape [rounds + 1, carries], in the order of the counter, or the last ones.

    `given` is a vector and each of `sequences` a matrix.
    """
    columns = _columns(loop, given.tolist(), sequences)
    if last:
        return [[c[-1] for c in columns]]
    missing = loop.rounds + 1 - len(columns[0])
    if missing:
        # The loop ended before.
        columns = [[*c, *[c[-1]] * missing] for c in columns]
    found = arrays.numpy_namespace().array(columns).T
    return found[::-1] if loop.reverse else found


def rounds_until_end(loop: RolledLoop, given: Any, sequences: Sequence[Any]) -> int:
    """The number of rounds after which a loop that may end before its last round is no longer active."""
    return len(_columns(loop, given.tolist(), sequences)[0]) - 1


def _columns(loop: RolledLoop, numbers: Sequence[float], sequences: Sequence[Any]) -> list[list[float]]:
    """For each carry its values before the first round and after each of those that were run."""
    function = _functions.get(loop)
    if function is None:
        function = _functions[loop] = _LoopWriter(loop).function()
    try:
        return function(_rounds(loop, sequences), *numbers)
    except (ArithmeticError, ValueError):
        return _with_infinities(loop, _rounds(loop, sequences), numbers)


def _rounds(loop: RolledLoop, sequences: Sequence[Any]) -> Iterable[Any]:
    """The counter, where it is read, and the elements of the rows, of one round after the other."""
    columns: list[Iterable[float]] = []
    order = slice(None, None, -1) if loop.reverse else slice(None)
    if loop.reads_counter:
        columns.append(loop.first + loop.step * i for i in range(loop.rounds)[order])
    for sequence, offset in zip(sequences, loop.offsets):
        columns += [c[order] for c in sequence[offset : offset + loop.rounds].T.tolist()]
    return zip(*columns) if columns else itertools.repeat((), loop.rounds)


def _with_infinities(loop: RolledLoop, rounds: Iterable[Any], numbers: Sequence[float]) -> list[list[float]]:
    """As the generated function, for results that `math` refuses to give."""
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

    def function(self) -> History:
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
            *(f"    {h} = [{c}]" for h, c in zip(kept, carries)),
            *(f"    a{h} = {h}.append" for h in kept),
            f"    for {', '.join(row)}{',' if len(row) == 1 else ''} in rounds:" if row else "    for _ in rounds:",
            *(f"        {line}" for line in body),
            f"        {', '.join(carries)} = {', '.join(results)}",
            *(f"        a{h}({c})" for h, c in zip(kept, carries)),
            *([] if loop.active is None else [f"        if not {carries[loop.active]}: break"]),
            f"    return [{', '.join(kept)}]",
        ]
        exec("\n".join(lines), self.known)
        made: History = self.known["history"]
        return made
