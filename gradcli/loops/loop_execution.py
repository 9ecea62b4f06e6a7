"""Runs a rolled loop on arrays: as machine code, as a Python function of numbers, or round by round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.loops import machine_code, python_code
from gradcli.loops.stretch import Stretch
from gradcli.program.ir import Equation, Program, Variable

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Up to this number of independent loops, loops are computed one by one: an operation of NumPy takes as long as about
# twenty operations on floats.
_FEW = 20


def history(xp: Any, given: Any, *sequences: Any, loop: RolledLoop, last: bool) -> Any:
    """The carries of all rounds, or of the last one, see `loop_primitive`."""
    if not loop.carries:
        # A loop of cotangents, where nothing that is wanted depends on the rounds.
        shape = (loop.kept_rows(last=last), *lanes_of([*map(arrays.shape, (given, *sequences))]), 0)
        return arrays.zeros(shape, "float64", xp)
    if xp.name != "numpy":
        return _by_library(xp, given, sequences, loop, last=last)
    np = arrays.numpy_namespace()
    plain = loop.source is None and (last or loop.spacing == 1)
    if plain and given.ndim == 1 and not any(s.ndim > 2 for s in sequences):
        # The usual case, without the time of arranging arrays.
        stored = np.empty((1 if last else loop.rounds + 1, loop.carries))
        given, rows = np.ascontiguousarray(given), [np.ascontiguousarray(s) for s in sequences]
        compiled = loop.compiled.get(last)
        if compiled is not None:
            compiled(given, *rows, stored)
        elif not machine_code.run(loop, given, rows, stored, loop.all_rounds, last=last):
            python_code.compute(loop, given, rows, stored, loop.all_rounds, last=last)
        return stored
    lanes = lanes_of([given.shape, *(s.shape for s in sequences)])
    rows = [_flat_lanes(np, s, lanes) for s in sequences]
    starts = np.ascontiguousarray(np.broadcast_to(given, (*lanes, given.shape[-1])))
    starts = starts.reshape(math.prod(lanes), given.shape[-1])
    found = np.empty((loop.kept_rows(last=last), len(starts), loop.carries))
    if loop.source is not None or (loop.spacing > 1 and not last):
        _by_stretches(np, loop, starts, rows, found, last=last)
    else:
        _run(loop, starts, rows, found, loop.all_rounds, last=last)
    return found.reshape(len(found), *lanes, loop.carries)


def lanes_of(shapes: Sequence[Shape]) -> Shape:
    """The shape of the independent loops that operands of these shapes are for."""
    return broadcast([shapes[0][:-1], *(s[1:-1] for s in shapes[1:])])


def _flat_lanes(np: Any, sequence: Any, lanes: Sequence[int]) -> Any:
    """A sequence with a single axis of independent loops, of size 1 if all of them read the same."""
    shape = sequence.shape
    own = shape[1:-1]
    if math.prod(own) != 1:
        sequence = np.broadcast_to(
            sequence.reshape(shape[0], *[1] * (len(lanes) - len(own)), *shape[1:]), (shape[0], *lanes, shape[-1])
        )
    return np.ascontiguousarray(sequence).reshape(shape[0], math.prod(sequence.shape[1:-1]), shape[-1])


def _run(loop: RolledLoop, starts: Any, rows: Sequence[Any], found: Any, stretch: Stretch, *, last: bool) -> None:
    """Compute the carries of some rounds, all of them or the last ones."""
    if machine_code.run(loop, starts, rows, found, stretch, last=last):
        return
    count = len(starts)
    if count > _FEW:
        _by_rounds(loop, starts, rows, found, stretch, last=last)
        return
    for lane in range(count):
        own = [r[:, min(lane, r.shape[1] - 1)] for r in rows]
        python_code.compute(loop, starts[lane], own, found[:, lane], stretch, last=last)


def _by_stretches(np: Any, loop: RolledLoop, starts: Any, rows: Sequence[Any], found: Any, *, last: bool) -> None:
    """Compute a loop that keeps few rows, or whose sources do: the rounds between two rows that are kept at a time."""
    before = starts.copy()
    spacing = loop.source.spacing if loop.source is not None else loop.spacing
    spaced = loop.spacing > 1 and not last
    if spaced:
        found[loop.first_row] = starts[:, : loop.carries]
    numbers = range(-(-loop.rounds // spacing))
    for number in reversed(numbers) if loop.reverse else numbers:
        begin, end = number * spacing, min((number + 1) * spacing, loop.rounds)
        given = _between(np, loop.source, starts[:, loop.carries :], rows, number, (begin, end))
        own = found
        if spaced:
            own = found[number : number + 1] if loop.reverse else found[number + 1 : number + 2]
        elif not last:
            own = found[begin : end + 1]
        _run(loop, before, given, own, _stretch(loop, begin, end), last=last or spaced)
        before[:, : loop.carries] = own[0] if last or spaced or loop.reverse else own[-1]


def _between(
    np: Any, source: RolledLoop | None, reads: Any, rows: Sequence[Any], number: int, rounds: tuple[int, int]
) -> list[Any]:
    """The sequences of a loop in a stretch of rounds: the rows of its source instead of those that are kept."""
    if source is None:
        return [*rows]
    kept, *others = rows
    given = _between(np, source.source, reads, others, number, rounds)
    begin, end = rounds
    before = np.empty((len(reads), source.carries + source.reads))
    before[:, : source.carries] = kept[number + 1 if source.reverse else number]
    before[:, source.carries :] = reads
    found = np.empty((end - begin + 1, len(reads), source.carries))
    _run(source, before, given, found, _stretch(source, begin, end), last=False)
    return [found, *given]


def _stretch(loop: RolledLoop, begin: int, end: int) -> Stretch:
    """Some rounds, whose rows of sources and results begin with that before the first of them."""
    count = len(loop.sources)
    skipped = (*[begin] * count, *loop.all_rounds.sequences[count:])
    return loop.all_rounds._replace(begin=begin, end=end, sequences=skipped, result=begin)


def _by_rounds(loop: RolledLoop, starts: Any, rows: Sequence[Any], found: Any, stretch: Stretch, *, last: bool) -> None:
    """Compute all independent loops together, one round after the other."""
    # Loaded on demand: most loops are computed one by one.
    from gradcli.executors import cpu

    count = len(starts)
    carries = [*starts[:, : loop.carries].T.copy()]
    reads = [*starts[:, loop.carries :].T.copy()]
    run = cpu.executable(_over_lanes(loop, count), reproducible=True)
    found[0 if last else stretch.first_row] = starts[:, : loop.carries]
    for i in stretch.rounds:
        row = [
            c for r, offset, skipped in zip(rows, loop.offsets, stretch.sequences)
            for c in _columns(r[i + offset - skipped], count)
        ]  # fmt: skip
        result = run([loop.first + loop.step * i, *carries, *reads, *row])
        assert result is not None
        carries = [*result]
        if not last:
            _write(found[stretch.row_after(i)], carries)
    if last:
        _write(found[0], carries)


def _write(row: Any, carries: Sequence[Any]) -> None:
    for k, carry in enumerate(carries):
        row[:, k] = carry


def _columns(row: Any, count: int) -> list[Any]:
    return [*(row.T if len(row) == count else arrays.numpy_namespace().broadcast_to(row, (count, row.shape[1])).T)]


def _over_lanes(loop: RolledLoop, count: int) -> Program:
    """The program of a round for vectors of `count` elements; the counter stays a number."""
    counter, *others = loop.program.inputs
    lanes = {v: Variable((count,), v.dtype) for v in others}
    varying = dict(lanes)
    equations = []
    for equation in loop.program.equations:
        if any(a in varying for a in equation.inputs if isinstance(a, Variable)):
            varying[equation.output] = Variable((count,), equation.output.dtype)
        inputs = tuple(varying.get(a, a) if isinstance(a, Variable) else a for a in equation.inputs)
        equations.append(
            Equation(equation.primitive, inputs, equation.params, varying.get(equation.output, equation.output))
        )
    outputs = tuple(varying.get(a, a) if isinstance(a, Variable) else a for a in loop.program.outputs)
    return Program((counter, *lanes.values()), tuple(equations), outputs)


def _by_library(xp: Any, given: Any, sequences: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """Run the loop on arrays of a library, all rows of which are kept meanwhile."""
    found = _stepwise(xp, given, _all_rows(xp, loop, given, sequences), loop.with_all_rows, last=last)
    if last or loop.spacing == 1:
        return found
    return xp.concat((found[: loop.rounds : loop.spacing], found[loop.rounds :]), axis=0)


def _all_rows(xp: Any, loop: RolledLoop, given: Any, sequences: Sequence[Any]) -> Sequence[Any]:
    """The sequences of a loop, with all rows of its sources."""
    source = loop.source
    if source is None:
        return sequences
    kept, *others = sequences
    start = xp.concat((kept[source.first_row], given[..., loop.carries :]), axis=-1)
    below = _all_rows(xp, source, start, others)
    return [_stepwise(xp, start, below, source.with_all_rows, last=False), *below]


def _stepwise(xp: Any, given: Any, sequences: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """Run the loop operation by operation on arrays of a library."""
    given = xp.asarray(given)
    lanes = lanes_of([*map(arrays.shape, (given, *sequences))])
    given = xp.broadcast_to(given, (*lanes, arrays.shape(given)[-1]))
    start = [given[..., k] for k in range(loop.carries)]
    reads = [given[..., k] for k in range(loop.carries, loop.carries + loop.reads)]
    places = range(loop.rounds)[::-1] if loop.reverse else range(loop.rounds)
    counters = [loop.first + loop.step * i for i in places]
    rows = [_in_order(xp, s[offset : offset + loop.rounds], loop) for s, offset in zip(sequences, loop.offsets)]

    def step(before: Sequence[Any], counter: Any, row: Sequence[Any]) -> list[Any]:
        elements = [part[..., k] for part, width in zip(row, loop.widths) for k in range(width)]
        found = _outputs(xp, loop.program, [counter, *before, *reads, *elements])
        return [_of_shape(xp, f, lanes) for f in found]

    end, after = xp.scan(step, start, counters, rows)
    if last:
        return xp.stack([*end], axis=-1)[None]
    columns = [xp.concat((c[None], a), axis=0) for c, a in zip(start, after)]
    return _in_order(xp, xp.stack(columns, axis=-1), loop)


def _in_order(xp: Any, rows: Any, loop: RolledLoop) -> Any:
    """Rows in the order of the rounds from those in the order of the counter, or the reverse."""
    return xp.flip(rows, axis=0) if loop.reverse else rows


def _of_shape(xp: Any, value: Any, shape: Sequence[int]) -> Any:
    array = xp.asarray(value)
    return array if arrays.shape(array) == tuple(shape) else xp.broadcast_to(array, tuple(shape))


def _outputs(xp: Any, program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a program for arrays of a namespace."""
    # Loaded on demand: most loops compute with numbers and NumPy's arrays.
    from gradcli.executors.whole_program import computed

    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))

    def value(atom: Any) -> Any:
        return known[atom] if isinstance(atom, Variable) else atom

    for equation in program.equations:
        known[equation.output] = computed(equation, [value(a) for a in equation.inputs], xp)
    return [value(a) for a in program.outputs]
