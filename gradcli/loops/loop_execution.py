"""Runs a rolled loop on arrays: as machine code, as a Python function of numbers, or round by round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.executors import cpu
from gradcli.executors.whole_program import computed
from gradcli.loops import machine_code, python_code
from gradcli.program.ir import Equation, Program, Variable

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Up to this number of independent loops, each is computed by itself: an operation of NumPy takes as long as some twenty
# on numbers.
_FEW = 20


def history(xp: Any, given: Any, *sequences: Any, loop: RolledLoop, last: bool) -> Any:
    """The carries of all rounds, or of the last one, see `loop_primitive`."""
    if xp.name != "numpy":
        return _stepwise(xp, given, sequences, loop, last=last)
    np = arrays.numpy_namespace()
    if given.ndim == 1 and all(s.ndim == 2 for s in sequences):
        return _single(np, given, sequences, loop, last=last)
    lanes = lanes_of([given.shape, *(s.shape for s in sequences)])
    count = math.prod(lanes)
    starts = np.ascontiguousarray(np.broadcast_to(given, (*lanes, given.shape[-1]))).reshape(count, given.shape[-1])
    rows = [_flat_lanes(np, s, lanes) for s in sequences]
    found = np.empty((1 if last else loop.rounds + 1, count, loop.carries))
    if not machine_code.run(loop, starts, rows, found, last=last):
        if count <= _FEW:
            for lane in range(count):
                own = [r[:, min(lane, r.shape[1] - 1)] for r in rows]
                found[:, lane] = python_code.history(loop, starts[lane], own, last=last)
        else:
            _by_rounds(loop, starts, rows, found, last=last)
    return found.reshape(len(found), *lanes, loop.carries)


def lanes_of(shapes: Sequence[Shape]) -> Shape:
    """The shape of the independent loops that operands of these shapes are for."""
    return broadcast([shapes[0][:-1], *(s[1:-1] for s in shapes[1:])])


def _single(np: Any, given: Any, sequences: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """The history of one loop."""
    start = np.ascontiguousarray(given).reshape(1, -1)
    rows = [np.ascontiguousarray(s) for s in sequences]
    found = np.empty((1 if last else loop.rounds + 1, loop.carries))
    if not machine_code.run(loop, start, rows, found, last=last):
        found[:] = python_code.history(loop, start[0], rows, last=last)
    return found


def _flat_lanes(np: Any, sequence: Any, lanes: Sequence[int]) -> Any:
    """A sequence with a single axis of independent loops, of size 1 if all of them read the same."""
    shape = sequence.shape
    own = shape[1:-1]
    if math.prod(own) != 1:
        sequence = np.broadcast_to(
            sequence.reshape(shape[0], *[1] * (len(lanes) - len(own)), *shape[1:]), (shape[0], *lanes, shape[-1])
        )
    return np.ascontiguousarray(sequence).reshape(shape[0], -1, shape[-1])


def _by_rounds(loop: RolledLoop, starts: Any, rows: Sequence[Any], found: Any, *, last: bool) -> None:
    """Compute all independent loops together, one round after the other."""
    count = len(starts)
    carries = [*starts[:, : loop.carries].T.copy()]
    reads = [*starts[:, loop.carries :].T.copy()]
    run = cpu.executable(_over_lanes(loop, count), reproducible=True)
    if not last:
        found[loop.rounds if loop.reverse else 0] = starts[:, : loop.carries]
    for i in reversed(range(loop.rounds)) if loop.reverse else range(loop.rounds):
        row = [c for r, offset in zip(rows, loop.offsets) for c in _columns(r[i + offset], count)]
        result = run([loop.first + loop.step * i, *carries, *reads, *row])
        assert result is not None
        carries = [*result]
        if not last or i == (0 if loop.reverse else loop.rounds - 1):
            after = found[0 if last else i if loop.reverse else i + 1]
            for k, carry in enumerate(carries):
                after[:, k] = carry


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
    known: dict[Variable, Any] = dict(zip(program.inputs, inputs))

    def value(atom: Any) -> Any:
        return known[atom] if isinstance(atom, Variable) else atom

    for equation in program.equations:
        known[equation.output] = computed(equation, [value(a) for a in equation.inputs], xp)
    return [value(a) for a in program.outputs]
