"""Run a segment: one pass over blocks that computes elementwise equations and their reductions in reused buffers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.executors import schedule, thread_pool, ufuncs
from gradcli.executors.loop_fusion import CompilePolicy, FusedLoop, Step, fused
from gradcli.executors.reused_memory import Buffer, Buffers, NumpyCode
from gradcli.executors.schedule import Segment
from gradcli.primitives.entries import reductions
from gradcli.program.ir import Atom, Equation, Variable, last_uses
from gradcli.timing import phase

# The least work for each thread, in elements times equations; with less, waking it costs too much of what it saves.
_WORTH_A_THREAD = 2**20


class Kernel:
    """A compiled segment. The arrays of the variables in `overwritable` are not used elsewhere, and may be overwritten.
    If it is `reproducible`, results do not depend on earlier runs.

    It reads the variables in `reads`, and returns `results`: its stored variables and its reductions.
    """

    def __init__(self, segment: Segment, overwritable: frozenset[Variable], *, reproducible: bool) -> None:
        self.segment = segment
        self.overwritable = overwritable
        self.reductions = [*segment.reductions()]
        self.partial = segment.is_partial()
        self.policy = CompilePolicy([*segment.equations.values()], reproducible=reproducible)
        self.code = BlockCode(segment, overwritable, self.policy)
        self.reads = [a for a in self.code.loaded if isinstance(a, Variable)]
        self.results = [*segment.stored, *(e.output for e in self.reductions)]

    def run(self, *given: Any) -> Sequence[Any] | None:
        """The results for the values of `reads`; None if a guard does not hold."""
        if self.policy.counts and self.policy.count_run():
            with phase("compile"):
                self.code = BlockCode(self.segment, self.overwritable, self.policy)
        return _KernelRun(self, dict(zip(self.reads, given))).run()


class _Blocks:
    """The partition of a shape into blocks of at most `size` elements.

    It divides one axis, for each index of the axes before it: with `whole_rows` the first one, so that a block has all
    of the other axes.
    """

    def __init__(self, shape: Shape, size: int, *, whole_rows: bool) -> None:
        last = len(shape) - 1
        axis = 0 if whole_rows else next(a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= size or a == last)
        self.shape = shape
        self.axis = axis
        most = max(1, size // math.prod(shape[axis + 1 :]))
        self.pieces = -(-shape[axis] // most)
        # Blocks have equal sizes, so that no thread waits for a larger one at the end.
        self.rows = -(-shape[axis] // self.pieces)
        self.count = math.prod(shape[:axis]) * self.pieces

    def place(self, number: int) -> tuple[Sequence[int], slice]:
        """The indices of a block along the axes before the divided one, and its slice of that."""
        before, piece = divmod(number, self.pieces)
        prefix = []
        for size in reversed(self.shape[: self.axis]):
            before, position = divmod(before, size)
            prefix.append(position)
        start = piece * self.rows
        return prefix[::-1], slice(start, min(start + self.rows, self.shape[self.axis]))


class _KernelRun:
    """One run of a kernel."""

    def __init__(self, kernel: Kernel, known: Mapping[Variable, Any]) -> None:
        np = arrays.numpy_namespace()
        self.kernel = kernel
        self.code = code = kernel.code
        segment = kernel.segment
        self.stored = [known[code.over[v]] if v in code.over else np.empty(segment.shape, v.dtype) for v in code.stored]
        whole = [known[a] if isinstance(a, Variable) else a for a in code.loaded] + self.stored
        self.shape, self.sliced = _with_merged_axes(segment.shape, whole, keep_axes=kernel.partial)
        self.blocks = _Blocks(self.shape, code.block, whole_rows=kernel.partial)
        self.parts: list[Sequence[Any]] = [()] * self.blocks.count
        # The budget of the calling thread, because the other threads have none.
        self.budget = limits.budget()
        self.failed = False
        self.error: BaseException | None = None

    def run(self) -> Sequence[Any] | None:
        numbers = iter(range(self.blocks.count))
        thread_pool.work(functools.partial(self._work, numbers), self._threads(), pinned=True)
        if self.error is not None:
            raise self.error
        if self.failed:
            return None
        return [*self.stored, *(_combined(e, p) for e, p in zip(self.kernel.reductions, zip(*self.parts)))]

    def _threads(self) -> int:
        segment = self.kernel.segment
        work = len(segment.equations) * math.prod(segment.shape)
        most = min(self.blocks.count, work // _WORTH_A_THREAD)
        return min(thread_pool.cores(), most) if most > 1 else 1

    def _work(self, numbers: Iterator[int]) -> None:
        """Compute blocks until none is left."""
        try:
            taken = self.code.pool.take()
            with arrays.numpy_namespace().quiet():
                shape: Shape | None = None
                buffers: list[Any] = []
                for number in numbers:
                    if self.failed or self.error is not None:
                        return
                    prefix, rows = self.blocks.place(number)
                    if (sizes := (rows.stop - rows.start, *self.shape[self.blocks.axis + 1 :])) != shape:
                        shape, buffers = sizes, [b[: math.prod(sizes)].reshape(sizes) for b in taken]
                    self._compute(number, [_block(*a, prefix, rows) for a in self.sliced], buffers)
            self.code.pool.give(taken)
        except BaseException as error:
            self.error = error

    def _compute(self, number: int, blocks: Sequence[Any], buffers: Sequence[Any]) -> None:
        """Compute a block and keep its part of each reduction, or note that a guard does not hold."""
        found = self.code.function(self.budget, *blocks, *buffers)
        if found is None:
            self.failed = True
        else:
            self.parts[number] = found


def _block(array: Any, full: Sequence[bool] | None, prefix: Sequence[int], rows: slice) -> Any:
    """The block of an operand.

    `full` says for each axis whether the operand is full or broadcast along it; None for a number.
    """
    if full is None:
        return array
    index = [position if is_full else 0 for position, is_full in zip(prefix, full)]
    return array[(*index, rows if full[len(prefix)] else slice(None))]


def _combined(equation: Equation, partials: Sequence[Any]) -> Any:
    """The reduction of the whole array from those of the blocks, in the order of the blocks."""
    np, ufunc = arrays.numpy_namespace(), ufuncs.reduction_ufunc(equation.primitive)
    shape, axis = arrays.shape(equation.inputs[0]), equation.params["axis"]
    if len(axis) == len(shape):
        found = ufunc.reduce(np.asarray(partials))
    else:
        joined = np.concatenate(partials, axis=0)
        found = ufunc.reduce(joined, axis=0) if 0 in axis else joined
    if equation.primitive is reductions.mean:
        found = found / float(math.prod(shape[a] for a in axis))
    return arrays.tidy(np.reshape(found, equation.output.shape))


def _with_merged_axes(
    shape: Shape, operands: Sequence[Any], *, keep_axes: bool
) -> tuple[Shape, list[tuple[Any, Sequence[bool] | None]]]:
    """The shape and the operands with adjacent axes merged, where all operands allow it.

    Nothing is merged with `keep_axes`, or if an operand is not contiguous.

    Each operand comes with a list that says along which axes it is full and not broadcast; None for a number.
    """
    ndim = len(shape)
    wide = [a.reshape((1,) * (ndim - a.ndim) + a.shape) if arrays.shape(a) else None for a in operands]
    full = [None if a is None else [n == s for n, s in zip(a.shape, shape)] for a in wide]
    if keep_axes or not all(a is None or a.flags.c_contiguous for a in wide):
        return shape, [(o if a is None else a, f) for o, a, f in zip(operands, wide, full)]
    starts = [a for a in range(ndim) if a == 0 or any(f and f[a] != f[a - 1] for f in full)]
    groups = list(itertools.pairwise([*starts, ndim]))

    def join(sizes: Shape) -> Shape:
        return tuple(math.prod(sizes[a:b]) for a, b in groups)

    return join(shape), [
        (o, None) if a is None or f is None else (a.reshape(join(a.shape)), [f[start] for start in starts])
        for o, a, f in zip(operands, wide, full)
    ]


# --- the code of a segment: a Python function that computes the equations for one block


class BlockCode:
    """The generated `function(budget, *blocks)`, which computes one block of any size.

    `blocks` are the blocks of the atoms in `loaded`, of the variables in `stored`, into which results are written, and
    buffers cut from those of `pool`. The function returns the block's part of each reduction, or None if a guard does
    not hold. A result in `over` is written over the array of the operand that it is mapped to.
    """

    def __init__(self, segment: Segment, overwritable: frozenset[Variable], policy: CompilePolicy) -> None:
        """Results may be written over the arrays of the variables in `overwritable`; `policy` says what is compiled."""
        self.segment = segment
        self.loaded: list[Atom] = []
        self.stored = [*segment.stored]
        self.over: dict[Variable, Variable] = {}
        self._overwritable = overwritable
        equations = [*segment.equations.values()]
        steps: Sequence[Step] = equations
        if policy.merged:
            steps = fused(equations, {*segment.stored, *segment.guards}, lambda _equation: True)
        freed = last_uses(steps, ())
        self._last = {v: number for number, variables in freed.items() for v in variables}
        places = {v: f"r{i}" for i, v in enumerate(self.stored)}
        self._lines = NumpyCode(equations, freed, places.get, policy.together)
        self.function = self._compiled(steps, freed, [*places.values()])
        row = math.prod(segment.shape[1:]) if segment.is_partial() else 1
        # The maximum number of elements of a block, and the size of each buffer.
        self.block = max(schedule.BLOCK, row)
        self.pool = Buffers([Buffer((self.block,), b.dtype) for b in self._lines.buffers])

    def _compiled(
        self, steps: Sequence[Step], freed: Mapping[int, Sequence[Variable]], places: Sequence[str]
    ) -> Callable[..., Any]:
        lines, body = self._lines, self._lines.body
        parts = {e.output: f"p{i}" for i, e in enumerate(self.segment.reductions())}
        for number, step in enumerate(steps):
            self._step(number, step, parts)
            lines.release(freed.get(number, ()))
        names = [lines.operand(a) for a in self.loaded]
        blocks = [*names, *places, *(f"b{i}" for i in range(len(lines.buffers)))]
        return lines.function(
            [
                f"def program({', '.join(['budget', *blocks])}):",
                *(f"    {line}" for line in body),
                f"    return ({''.join(f'{part}, ' for part in parts.values())})",
            ]
        )

    def _step(self, number: int, step: Step, parts: Mapping[Variable, str]) -> None:
        if isinstance(step, FusedLoop):
            for variable in step.inputs:
                self._load(variable)
            for variable in step.outputs:
                self._write_over(number, variable)
            self._lines.compute_merged(number, step)
            self._check(step.outputs)
        elif isinstance(step, Equation):
            for atom in step.inputs:
                self._load(atom)
            if step.primitive.elementwise:
                if self._lines.pair(step) is None and ufuncs.is_in_place(step):
                    self._write_over(number, step.output)
                self._lines.compute(number, step)
            else:
                self._lines.body.append(f"{parts[step.output]} = {self._reduction(step)}")
            self._check([step.output])

    def _check(self, variables: Sequence[Variable]) -> None:
        """Return from the function where a guard among the variables, arrays of truth values, has a false element."""
        for name in (self._lines.names[v] for v in variables if v in self.segment.guards):
            self._lines.body.append(f"if not {name}.item({name}.argmin()): return None")

    def _load(self, atom: Atom) -> None:
        """Add an operand that is not computed in the segment to the blocks."""
        key = atom if isinstance(atom, Variable) else id(atom)
        if key not in self._lines.names and (isinstance(atom, Variable) or arrays.shape(atom)):
            self._lines.names[key] = f"x{len(self.loaded)}"
            self.loaded.append(atom)

    def _reduction(self, equation: Equation) -> str:
        """The expression that reduces a block.

        A partial reduction keeps its axes, so that blocks can be concatenated.
        """
        reduce = self._lines.constant(ufuncs.reduction_ufunc(equation.primitive).reduce)
        name, axis = self._lines.operand(equation.inputs[0]), equation.params["axis"]
        whole = len(axis) == len(arrays.shape(equation.inputs[0]))
        return f"{reduce}({name}, None)" if whole else f"{reduce}({name}, {axis!r}, None, None, True)"

    def _write_over(self, number: int, output: Variable) -> None:
        """Write a stored result over an operand of the same shape and dtype that is not read any more, if any."""
        if output not in self.segment.stored:
            return
        for atom in self.loaded:
            if not isinstance(atom, Variable) or atom not in self._overwritable or atom in self.over.values():
                continue
            if self._last[atom] <= number and (atom.shape, atom.dtype) == (output.shape, output.dtype):
                self.over[output] = atom
                return
