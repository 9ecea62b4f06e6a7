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
    if loop.source is not None:
        _with_source(np, loop, loop.source, starts, rows, found, last=last)
    elif loop.spacing > 1 and not last:
        _spaced(loop, starts, rows, found)
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


def _spaced(loop: RolledLoop, starts: Any, rows: Sequence[Any], found: Any) -> None:
    """Compute the rows that are kept of a loop with a spacing."""
    before = starts.copy()
    found[0] = starts[:, : loop.carries]
    for number, begin in enumerate(range(0, loop.rounds, loop.spacing), start=1):
        stretch = loop.all_rounds._replace(begin=begin, end=min(begin + loop.spacing, loop.rounds))
        _run(loop, before, rows, found[number : number + 1], stretch, last=True)
        before[:, : loop.carries] = found[number]


def _with_source(
    np: Any, loop: RolledLoop, source: RolledLoop, starts: Any, rows: Sequence[Any], found: Any, *, last: bool
) -> None:
    """Compute a loop from the last round to the first, and the rows of its first sequence that were not kept."""
    kept, *others = rows
    before = starts.copy()
    given = np.empty((len(starts), source.carries + source.reads))
    given[:, source.carries :] = starts[:, loop.carries :]
    between = np.empty((source.spacing + 1, len(starts), source.carries))
    for number in reversed(range(len(kept) - 1)):
        begin = number * source.spacing
        end = min(begin + source.spacing, loop.rounds)
        given[:, : source.carries] = kept[number]
        part = between[: end - begin + 1]
        _run(source, given, others, part, source.all_rounds._replace(begin=begin, end=end, result=begin), last=False)
        skipped = (begin, *loop.all_rounds.sequences[1:])
        stretch = loop.all_rounds._replace(begin=begin, end=end, sequences=skipped, result=begin)
        own = found if last else found[begin : end + 1]
        _run(loop, before, [part, *others], own, stretch, last=last)
        before[:, : loop.carries] = own[0]


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
    whole, source = loop.with_all_rows, loop.source
    if source is not None:
        start = xp.concat((sequences[0][0], given[..., loop.carries :]), axis=-1)
        rows = _stepwise(xp, start, sequences[1:], source.with_all_rows, last=False)
        sequences = [rows, *sequences[1:]]
    found = _stepwise(xp, given, sequences, whole, last=last)
    if last or loop.spacing == 1:
        return found
    return xp.concat((found[: loop.rounds : loop.spacing], found[loop.rounds :]), axis=0)


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
