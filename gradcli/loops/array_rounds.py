"""Runs a rolled loop whose rounds compute with arrays, as a generated Python function that calls NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors.blockwise import Blocks, ProgramWriter
from gradcli.loops.rolled_loop import RolledLoop, Stretch, parts_of

# Takes an iterable of the counter, the row of the results and the rows that are read, then the carries and the reads;
# returns the number of rounds that were run and the last carries.
Rounds = Callable[..., tuple[int, Sequence[Any]]]

# The generated functions of each loop; the key is True for the one that writes the carries of all rounds.
_functions: WeakKeyDictionary[RolledLoop, dict[bool, Rounds]] = WeakKeyDictionary()


def run_on_arrays(
    loop: RolledLoop, given: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool
) -> int:
    """Write the carries of some rounds to `found`, or the `last` ones, and return the number of rounds that were run.

    `given` is a vector, each of `sequences` and `found` a matrix, see `loop_execution.run_compiled`. All rounds change
    something.
    """
    functions = _functions.setdefault(loop, {})
    function = functions.get(last)
    if function is None:
        function = functions[last] = _CompiledRounds(loop, keep=not last).function
    order = slice(None, None, -1) if loop.reverse else slice(None)
    layout, count = loop.layout, stretch.end - stretch.begin
    rows = []
    for sequence, offset, skipped in zip(sequences, loop.offsets, stretch.sequences):
        first = stretch.begin + offset - skipped
        rows.append(sequence[first : first + count][order])
    begin = stretch.begin - stretch.result + (0 if loop.reverse else 1)
    places = itertools.repeat(None, count) if last else found[begin : begin + count][order]
    counters = (loop.first + loop.step * i for i in stretch.rounds)
    taken, carries = function(zip(counters, places, *rows), *_values(given, [*layout.carries, *layout.reads]))
    if last:
        for carry, (part, _) in zip(carries, parts_of(layout.carries)):
            found[0, part] = arrays.numpy_namespace().ravel(carry)
    else:
        found[stretch.first_row] = given[: loop.carries]
        if taken < count:
            # The loop ended before.
            found[begin + taken : begin + count] = found[begin + taken - 1]
    return taken


def _values(vector: Any, shapes: Sequence[Shape]) -> list[Any]:
    """The values of some shapes that lie one after the other in a vector: views, and floats."""
    return [vector[part].reshape(shape) if shape else vector.item(part.start) for part, shape in parts_of(shapes)]


class _CompiledRounds(Blocks):
    """The rounds of a loop, whose `function` is one of `Rounds`; with `keep`, it writes the carries of all rounds."""

    def __init__(self, loop: RolledLoop, *, keep: bool) -> None:
        self.loop, self.keep = loop, keep
        super().__init__(loop.program)

    def written(self) -> Callable[..., Any]:
        return _RoundsWriter(self).compiled()


class _RoundsWriter(ProgramWriter):
    def __init__(self, rounds: _CompiledRounds) -> None:
        super().__init__(rounds)
        self.loop, self.keep = rounds.loop, rounds.keep
        # What is given is read in later rounds, too.
        kept = {*self.program.inputs}
        self.freed = {number: [v for v in variables if v not in kept] for number, variables in self.freed.items()}

    def compiled(self) -> Callable[..., Any]:
        (counter, *given), outputs = self.computed()
        buffers, layout, loop = self.buffers(), self.loop.layout, self.loop
        carries, after = given[: len(layout.carries)], len(layout.carries) + len(layout.reads)
        rows = [f"row{j}" for j in range(len(layout.rows))]
        elements, loaded = iter(given[after:]), []
        for row, shapes in zip(rows, layout.rows):
            loaded += [f"{next(elements)} = {_loaded(row, part, shape)}" for part, shape in parts_of(shapes)]
        stored = [_stored(carry, part, shape) for carry, (part, shape) in zip(carries, parts_of(layout.carries))]
        scalars = [carry for carry, shape in zip(carries, layout.carries) if not shape]
        return self.lines.function(
            [
                f"def program({', '.join(['rounds', *given[:after]])}):",
                # All rounds were charged before.
                "    budget, taken_rounds = None, 0",
                *(f"    {line}" for line in buffers.taken),
                "    with quiet():",
                f"        for {', '.join([counter, 'place', *rows])} in rounds:",
                *(f"            {line}" for line in [*loaded, *self.lines.body]),
                f"            {', '.join(carries)}, = {', '.join(outputs)},",
                *(f"            if type({c}) is not float: {c} = tidy({c})" for c in scalars),
                *(f"            {line}" for line in stored if self.keep),
                "            taken_rounds += 1",
                *([] if loop.active is None else [f"            if not {carries[loop.active]}: break"]),
                f"    {buffers.given}",
                f"    return taken_rounds, [{', '.join(carries)}]",
            ]
        )


def _loaded(row: str, part: slice, shape: Shape) -> str:
    """The text of a value in a row."""
    if not shape:
        return f"{row}.item({part.start})"
    return f"{row}[{part.start}:{part.stop}]" + (f".reshape({shape})" if len(shape) > 1 else "")


def _stored(carry: str, part: slice, shape: Shape) -> str:
    """The line that copies a carry to the row of the results."""
    if not shape:
        return f"place[{part.start}] = {carry}"
    return f"place[{part.start}:{part.stop}] = {carry}" + (".reshape(-1)" if len(shape) > 1 else "")
