"""Runs a rolled loop on arrays: as machine code, as a Python function of numbers, or round by round."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli import arrays
from gradcli.arrays import spellings
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.executors import stepwise
from gradcli.executors.scalars import ScalarWriter
from gradcli.loops.body_tracing import chosen
from gradcli.loops.rolled_loop import RolledLoop, Stretch, columns_of, parts_of
from gradcli.primitives.entries.comparisons import where
from gradcli.program.ir import Equation, Program, Variable, last_uses
from gradcli.timing import phase

if TYPE_CHECKING:
    from gradcli.executors.llvm_ufuncs import Loop

# Up to this number of independent loops, loops are computed one by one: an operation of NumPy takes as long as about
# twenty operations on floats.
_FEW = 20
# The number of rounds whose numbers are computed at once, so that they fit in the cache of a core; and the number of
# rounds from which that is faster than one round after the other, as functions of numbers.
_AT_ONCE, _MANY = 2_048, 50


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
        else:
            _run_single(loop, given, rows, stored, loop.all_rounds, last=last)
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
    count = len(starts)
    if not loop.has_arrays:
        if run_compiled(loop, starts, rows, found, stretch, last=last):
            return
        if count > _FEW:
            _by_rounds(loop, starts, rows, found, stretch, last=last)
            return
    for lane in range(count):
        own = [r[:, min(lane, r.shape[1] - 1)] for r in rows]
        if loop.has_arrays:
            np = arrays.numpy_namespace()
            stored = np.empty((len(found), loop.carries))
            _run_single(loop, starts[lane], [*map(np.ascontiguousarray, own)], stored, stretch, last=last)
            found[:, lane] = stored
        else:
            run_on_numbers(loop, starts[lane], own, found[:, lane], stretch, last=last)


def _run_single(loop: RolledLoop, given: Any, rows: Sequence[Any], found: Any, stretch: Stretch, *, last: bool) -> None:
    """Compute one loop, see `run_compiled`; `given` is a vector, each of `rows` and `found` a matrix."""
    if run_compiled(loop, given, rows, found, stretch, last=last):
        return
    if loop.has_arrays:
        # Loaded on demand: the rounds of most loops compute with numbers.
        from gradcli.loops.array_rounds import run_on_arrays

        if loop.idle is not None:
            stretch = _without_idle(loop, loop.idle, given, rows, found, stretch, last=last)
        run_on_arrays(loop, given, rows, found, stretch, last=last)
    else:
        run_on_numbers(loop, given, rows, found, stretch, last=last)


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


def single_rounds(loop: RolledLoop, given: Any, sequences: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The carries after each round, if every round began with the carries in `given`: as arrays, of some rounds at a time.

    The sequences have all rows. Idle rounds are left out.
    """
    xp, freed = arrays.numpy_namespace(), last_uses(loop.program.equations, loop.program.outputs)
    for begin in range(0, loop.rounds, _AT_ONCE):
        end = min(begin + _AT_ONCE, loop.rounds)
        columns = [loop.first + loop.step * xp.arange(begin, end)]
        for sequence, offset in zip(sequences, loop.offsets):
            columns += [*xp.ascontiguousarray(sequence[begin + offset : end + offset].T)]
        if loop.idle is not None:
            works = columns[1 + loop.idle] != 0.0
            columns = [column[works] for column in columns]
        counters, *elements = columns
        known: dict[Variable, Any] = dict(zip(loop.program.inputs, [counters, *given.tolist(), *elements]))
        with xp.quiet():
            for number, equation in enumerate(loop.program.equations):
                operands = [known[a] if isinstance(a, Variable) else a for a in equation.inputs]
                known[equation.output] = _of_arrays(xp, equation, operands)
                for variable in freed.get(number, ()):
                    del known[variable]
        yield [known[a] if isinstance(a, Variable) else a for a in loop.program.outputs]


def computes_single_rounds(loop: RolledLoop) -> bool:
    """Return whether `single_rounds` is fast: for many rounds, whose operations NumPy has."""
    if loop.has_arrays:
        return False
    functions = (e.primitive.function for e in loop.program.equations)
    return loop.rounds >= _MANY and not any(f is not None and "scipy" in spellings.of(f).names for f in functions)


def _of_arrays(xp: Any, equation: Equation, operands: Sequence[Any]) -> Any:
    """The result of an equation of numbers for arrays of them."""
    primitive = equation.primitive
    if xp.are_float64(operands):
        return xp.runner(primitive)(operands, equation.params)
    return primitive.forward(xp, *xp.promoted(operands, truths=primitive.truths), **equation.params)


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
    if lanes and loop.has_arrays:
        return _lane_by_lane(xp, given, sequences, loop, last=last)
    layout = loop.layout
    start = _values(xp, given[..., : loop.carries], layout.carries)
    reads = _values(xp, given[..., loop.carries :], layout.reads)
    places = range(loop.rounds)[::-1] if loop.reverse else range(loop.rounds)
    counters = [loop.first + loop.step * i for i in places]
    rows = [_in_order(xp, s[offset : offset + loop.rounds], loop) for s, offset in zip(sequences, loop.offsets)]

    def step(before: Sequence[Any], counter: Any, row: Sequence[Any]) -> list[Any]:
        elements = [value for part, shapes in zip(row, layout.rows) for value in _values(xp, part, shapes)]
        found = _outputs(xp, loop.program, [counter, *before, *reads, *elements])
        return [_of_shape(xp, f, (*lanes, *shape)) for f, shape in zip(found, layout.carries)]

    end, after = xp.scan(step, start, counters, rows)
    if last:
        return _side_by_side(xp, [*end], layout.carries)[None]
    columns = [xp.concat((c[None], a), axis=0) for c, a in zip(start, after)]
    return _in_order(xp, _side_by_side(xp, columns, layout.carries), loop)


def _lane_by_lane(xp: Any, given: Any, sequences: Sequence[Any], loop: RolledLoop, *, last: bool) -> Any:
    """Run independent loops of arrays of a library one after the other, along the first of their axes."""
    count, lanes = given.shape[0], given.ndim - 1
    found = []
    for lane in range(count):
        own = [s[:, min(lane, s.shape[1] - 1)] if s.ndim - 2 == lanes else s for s in sequences]
        found.append(_stepwise(xp, given[lane], own, loop, last=last))
    return xp.stack(found, axis=1)


def _values(xp: Any, columns: Any, shapes: Sequence[Shape]) -> list[Any]:
    """The values of some shapes that lie one after the other along the last axis."""
    if not any(shapes):
        return [columns[..., k] for k in range(len(shapes))]
    before = arrays.shape(columns)[:-1]
    return [xp.reshape(columns[..., part], (*before, *shape)) for part, shape in parts_of(shapes)]


def _side_by_side(xp: Any, values: Sequence[Any], shapes: Sequence[Shape]) -> Any:
    """Values of some shapes, preceded by the same axes, one after the other along a new last axis."""
    if not any(shapes):
        return xp.stack(values, axis=-1)
    before = [arrays.shape(value)[: len(arrays.shape(value)) - len(shape)] for value, shape in zip(values, shapes)]
    flat = [xp.reshape(v, (*b, math.prod(shape))) for v, b, shape in zip(values, before, shapes)]
    return xp.concat(flat, axis=-1)


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


# Takes an iterable of the counters and row elements of some rounds, the carries and the reads; returns a list for each
# carry, of its value before the first round and after each of them, or of the last one alone.
History = Callable[..., list[list[float]]]
# The number of rounds whose values are kept as Python floats before they are copied to an array. Floats take four
# times as much memory as the array; those of 2,000 rounds fit in the cache of a core.
_AT_A_TIME = 2_000

# The generated functions of each loop; the key is True for the one that returns the values of all rounds.
_functions: WeakKeyDictionary[RolledLoop, dict[bool, History]] = WeakKeyDictionary()


def run_on_numbers(
    loop: RolledLoop, given: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool
) -> None:
    """Write the carries of some rounds to `found`, or the `last` ones, see `run_compiled`.

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
    number, part = loop.row_of_part(idle)
    column = columns_of(loop.layout.rows[number][:part])
    first = stretch.begin + loop.offsets[number] - stretch.sequences[number]
    marks = sequences[number][first : first + stretch.end - stretch.begin, column]
    end = stretch.begin + int(arrays.numpy_namespace().count_nonzero(marks))
    if not last:
        found[end - stretch.result : stretch.end + 1 - stretch.result] = given[: loop.carries]
    return stretch._replace(end=end)


def rounds_until_end(loop: RolledLoop, given: Any, sequences: Sequence[Any]) -> int:
    """The number of rounds after which a loop that may end before its last round is no longer active."""
    if loop.has_arrays:
        from gradcli.loops.array_rounds import run_on_arrays

        found = arrays.numpy_namespace().empty((1, loop.carries))
        return run_on_arrays(loop, given, sequences, found, loop.all_rounds, last=True)
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


# Operations that a loop of few equations has to compute before it is compiled: Python computes as many in the time of
# compiling, which is 50 ms, most of it for loading the compiler. A round of `_LIKE_LOADING` equations takes twice as
# long to compile.
_WORTH_COMPILING, _LIKE_LOADING = 1_500_000, 300


# An operation of NumPy takes as long as so many operations on Python's floats, and so many of its elements as long as one.
_CALL, _ELEMENTS = 80, 50


def _operations_of_round(loop: RolledLoop) -> float:
    """The number of operations on Python's floats that take as long as a round without machine code."""
    if not loop.has_arrays:
        return loop.cost_of_round
    return _CALL * len(loop.program.equations) + loop.cost_of_round / _ELEMENTS


class _State:
    """The operations that a loop has computed without machine code, and its code, if it was compiled.

    `single` is the function for arrays of one loop, without an axis of loops.
    """

    __slots__ = ("computed", "function", "kept", "single", "tried")

    def __init__(self) -> None:
        self.computed = 0.0
        self.tried = False
        # Keeps the machine code of the functions alive.
        self.kept: Sequence[Loop] = ()
        self.function: Callable[..., Any] | None = None
        self.single: Callable[..., Any] | None = None


_states: WeakKeyDictionary[RolledLoop, _State] = WeakKeyDictionary()


def run_compiled(
    loop: RolledLoop, starts: Any, sequences: Sequence[Any], found: Any, stretch: Stretch, *, last: bool
) -> bool:
    """Compute the carries of some rounds of independent loops by machine code; returns False where there is none.

    `starts` has the carries and reads of each loop, of shape [loops, carries + reads], `sequences` are of shape [rows,
    loops or 1, width], and `found`, of shape [rounds + 1, loops, carries], or [1, loops, carries] for the `last`
    carries, receives the results. All are contiguous. For a single loop the axis of loops may be absent from all of them,
    and is if its rounds compute with arrays.
    """
    state = _states.get(loop)
    if state is None:
        state = _states.setdefault(loop, _State())
    if state.single is None:
        count = len(starts) if starts.ndim > 1 else 1
        state.computed += _operations_of_round(loop) * (stretch.end - stretch.begin) * count
        if state.tried or state.computed < _WORTH_COMPILING * (1 + len(loop.program.equations) / _LIKE_LOADING):
            return False
        # Loaded on demand: most loops end before compiling them pays.
        from gradcli.executors.llvm_ufuncs import lock

        with lock:
            if not state.tried:
                _compile(loop, state)
                state.tried = True
        if state.single is None:
            return False
    bounds = _bounds(stretch, last=last)
    function = state.function if starts.ndim > 1 else state.single
    assert function is not None
    if stretch is loop.all_rounds and starts.ndim == 1:
        loop.compiled[last] = partial(function, bounds)
    function(bounds, starts, *sequences, found)
    return True


def _bounds(stretch: Stretch, *, last: bool) -> Any:
    """The whole numbers that machine code reads first, as an array of floats like its others."""
    # With a factor of 0 each row of the results is written over the one before.
    numbers = (stretch.begin, stretch.end, 0 if last else 1, stretch.result, *stretch.sequences)
    return arrays.numpy_namespace().array(numbers, "float64")


@phase("compile")
def _compile(loop: RolledLoop, state: _State) -> None:
    if loop.has_arrays:
        _compile_arrays(loop, state)
    else:
        _compile_numbers(loop, state)


def _compile_numbers(loop: RolledLoop, state: _State) -> None:
    # Loaded on demand: most loops end before compiling them pays.
    from gradcli.executors.llvm_ufuncs import as_ufunc, compile_loop
    from gradcli.loops.loop_code import loop_code, single_loop

    written = loop_code(loop, "loop")
    if written is None:
        return
    text = "\n".join([*sorted(written.declared), written.text, single_loop(loop)])
    code = compile_loop("loop", text, sorted(written.called))
    if code is None:
        return
    single = code._replace(name="single", address=code.engine.get_function_address("single"))
    places, dtypes = range(len(loop.widths)), _operand_dtypes(loop)
    many = "(b),(l,g)" + "".join(f",(r{j},l{j},w{j})" for j in places) + "->(r,l,c)"
    made = [as_ufunc(code, dtypes, ["float64"], many), as_ufunc(single, dtypes, ["float64"], _single_axes(loop))]
    if made[0] is not None and made[1] is not None:
        state.kept = [made[0], made[1]]
        state.function, state.single = made[0].ufunc, made[1].ufunc


def _compile_arrays(loop: RolledLoop, state: _State) -> None:
    from gradcli.executors.llvm_ufuncs import as_ufunc, compile_loop
    from gradcli.loops.array_code.array_loop_code import array_loop_code

    written = array_loop_code(loop, "single")
    if written is None:
        return
    text = "\n".join([*sorted(written.declared), written.text])
    code = compile_loop("single", text, sorted(written.called))
    made = as_ufunc(code, _operand_dtypes(loop), ["float64"], _single_axes(loop))
    if made is not None:
        state.kept, state.single = [made], made.ufunc


def _operand_dtypes(loop: RolledLoop) -> list[str]:
    """The dtypes of the operands of compiled loops: the bounds, the carries and reads, and the sequences."""
    return ["float64"] * (2 + len(loop.widths))


def _single_axes(loop: RolledLoop) -> str:
    """The signature of a function of one loop."""
    return "(b),(g)" + "".join(f",(r{j},w{j})" for j in range(len(loop.widths))) + "->(r,c)"


def bounds_and_sizes(loop: RolledLoop, *, last: bool) -> tuple[Any, Any]:
    """The bounds of all rounds and the lengths of axes with which the function of `loop_code` computes one loop."""
    sizes = arrays.numpy_namespace().ones(6 + 3 * len(loop.widths), "int64")
    return _bounds(loop.all_rounds, last=last), sizes
