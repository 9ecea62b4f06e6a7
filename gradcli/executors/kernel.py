"""One pass over blocks: elementwise equations and reductions of them, into buffers that are used again."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.executors import schedule, sincos
from gradcli.executors.instructions import WAVES, Environment, Instruction, Reduction, Surcharge, instructions
from gradcli.executors.schedule import Segment
from gradcli.primitives import reductions
from gradcli.program.ir import Equation, Variable
from gradcli.timing import phase

# So many sines and cosines take as long as it takes to compile a function for them.
_MANY_WAVES = 2**24
# Elements times equations for one thread: with fewer, starting it takes longer than it saves.
_WORTH_A_THREAD = 2**21


class Kernel:
    """A segment, ready to run. The arrays of `dying` are read by nobody else, before or after."""

    def __init__(self, segment: Segment, dying: frozenset[Variable]) -> None:
        self.segment = segment
        self.dying = dying
        self.partial = any(len(e.params["axis"]) < len(segment.shape) for e in segment.reductions())
        self.code = instructions(segment, dying, None)
        self._waves = sum(e.primitive in WAVES for e in segment.equations.values())
        self._computed = 0

    def run(self, known: Mapping[Variable, Any]) -> dict[Variable, Any] | None:
        """The variables that are needed elsewhere, from those that are `known` whole; None where a
        guard does not hold."""
        if self._computed < _MANY_WAVES:
            self._count_waves()
        return _Run(self, known).run()

    def _count_waves(self) -> None:
        """Have sines and cosines compiled, where it is possible, once there are enough to pay for it."""
        self._computed += self._waves * math.prod(self.segment.shape)
        if self._computed >= _MANY_WAVES:
            with phase("compile"):
                self.code = instructions(self.segment, self.dying, sincos.compiled())


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Blocks:
    """How a shape is cut into blocks: along one axis, for each index of those before it."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.axis = next(
            a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= schedule.BLOCK or a == len(shape) - 1
        )
        self._choose(self.axis)

    def _choose(self, axis: int) -> None:
        self.axis = axis
        self.rows = max(1, schedule.BLOCK // math.prod(self.shape[axis + 1 :]))
        self.pieces = -(-self.shape[axis] // self.rows)
        self.count = math.prod(self.shape[:axis]) * self.pieces

    def whole_rows(self) -> _Blocks:
        self._choose(0)
        return self

    def place(self, number: int) -> tuple[Sequence[int], slice]:
        before, piece = divmod(number, self.pieces)
        prefix = []
        for size in reversed(self.shape[: self.axis]):
            before, position = divmod(before, size)
            prefix.append(position)
        start = piece * self.rows
        return prefix[::-1], slice(start, min(start + self.rows, self.shape[self.axis]))


class _Run:
    """A kernel at work on its operands."""

    def __init__(self, kernel: Kernel, known: Mapping[Variable, Any]) -> None:
        np = arrays.numpy_namespace()
        self.kernel = kernel
        self.code = kernel.code
        whole = {s: known[a] if isinstance(a, Variable) else a for s, a in self.code.loaded.items()}
        self.fixed = {s: a for s, a in whole.items() if not arrays.shape(a)}
        loads = {s: a for s, a in whole.items() if s not in self.fixed}
        segment = kernel.segment
        self.stored = {
            v: known[self.code.over[v]] if v in self.code.over else np.empty(segment.shape, v.dtype)
            for v in segment.stored
        }
        loads |= {self.code.slots[v]: a for v, a in self.stored.items()}
        self.shape, self.sliced = _joined(segment.shape, loads, keep=kernel.partial)
        self.blocks = _Blocks(self.shape).whole_rows() if kernel.partial else _Blocks(self.shape)
        self.partials: dict[Variable, list[Any]] = {e.output: [None] * self.blocks.count for e in segment.reductions()}
        # Of the thread that runs it: the others have none of their own.
        self.budget = limits.budget()
        self.failed = False
        self.error: BaseException | None = None

    def run(self) -> dict[Variable, Any] | None:
        numbers = iter(range(self.blocks.count))
        others = [threading.Thread(target=self._work, args=(numbers,)) for _ in range(self._threads() - 1)]
        for thread in others:
            thread.start()
        self._work(numbers)
        for thread in others:
            thread.join()
        if self.error is not None:
            raise self.error
        if self.failed:
            return None
        combined = {e.output: _combined(e, self.partials[e.output]) for e in self.kernel.segment.reductions()}
        return combined | self.stored

    def _threads(self) -> int:
        segment = self.kernel.segment
        work = len(segment.equations) * math.prod(segment.shape)
        return max(1, min(cores(), self.blocks.count, work // _WORTH_A_THREAD))

    def _work(self, numbers: Iterator[int]) -> None:
        """Compute blocks until there are none left."""
        try:
            with arrays.numpy_namespace().errstate(all="ignore"):
                environment = self._environment()
                shape: Shape | None = None
                for number in numbers:
                    if self.failed or self.error is not None:
                        return
                    shape = self._load(environment, number, shape)
                    self._compute(environment, number)
        except BaseException as error:
            self.error = error

    def _environment(self) -> Environment:
        environment: Environment = [None] * len(self.code.slots)
        for slot, value in self.fixed.items():
            environment[slot] = value
        return environment

    def _load(self, environment: Environment, number: int, last: Shape | None) -> Shape:
        """Put block `number` of every operand into the environment, and buffers of its shape."""
        prefix, rows = self.blocks.place(number)
        for slot, (array, full) in self.sliced.items():
            index = [position if is_full else 0 for position, is_full in zip(prefix, full)]
            environment[slot] = array[(*index, rows if full[len(prefix)] else slice(None))]
        shape = (rows.stop - rows.start, *self.shape[self.blocks.axis + 1 :])
        if shape != last:
            self._make_buffers(environment, shape)
        return shape

    def _make_buffers(self, environment: Environment, shape: Shape) -> None:
        np = arrays.numpy_namespace()
        made: dict[int, Any] = {}
        for slot, (buffer, dtype) in self.code.buffers.items():
            if buffer not in made:
                made[buffer] = np.empty(shape, dtype)
            environment[slot] = made[buffer]

    def _compute(self, environment: Environment, number: int) -> None:
        for step in self.code.steps:
            if isinstance(step, Instruction):
                compute, take, made = step
                if made is None:
                    compute(*take(environment))
                else:
                    self._keep(environment, made, compute(*take(environment)))
            elif isinstance(step, Surcharge):
                if self.budget is not None:
                    self.budget.charge(step.of(*step.take(environment)))
            elif isinstance(step, Reduction):
                self.partials[step.equation.output][number] = _reduced(step.equation, environment[step.slot])
            elif not environment[step.slot].all():
                self.failed = True
                return

    def _keep(self, environment: Environment, slot: int, result: Any) -> None:
        if slot in self.sliced:
            environment[slot][...] = result
        else:
            environment[slot] = result


def _joining(reduction: Equation) -> Any:
    """The function of NumPy that joins two elements."""
    primitive = reduction.primitive.reduces
    assert primitive is not None
    return getattr(arrays.numpy_namespace(), primitive.name)


def _reduced(equation: Equation, block: Any) -> Any:
    """The reduction of one block; with all of its axes kept where others are left."""
    ufunc = _joining(equation)
    axis = equation.params["axis"]
    if len(axis) == len(arrays.shape(equation.inputs[0])):
        return ufunc.reduce(block, axis=None)
    return ufunc.reduce(block, axis=axis, keepdims=True)


def _combined(equation: Equation, partials: Sequence[Any]) -> Any:
    """The reduction of the whole from those of the blocks, in their order."""
    np, ufunc = arrays.numpy_namespace(), _joining(equation)
    shape, axis = arrays.shape(equation.inputs[0]), equation.params["axis"]
    if len(axis) == len(shape):
        found = ufunc.reduce(np.asarray(partials))
    else:
        joined = np.concatenate(partials, axis=0)
        found = ufunc.reduce(joined, axis=0) if 0 in axis else joined
    if equation.primitive is reductions.mean:
        found = found / float(math.prod(shape[a] for a in axis))
    return arrays.tidy(np.reshape(found, equation.output.shape))


def _joined(
    shape: Shape, loads: Mapping[int, Any], *, keep: bool
) -> tuple[Shape, dict[int, tuple[Any, Sequence[bool]]]]:
    """The shape and the operands with neighbouring axes joined, where all operands allow it; for
    each operand along which axes it is full, and not broadcast."""
    ndim = len(shape)
    wide = {slot: a.reshape((1,) * (ndim - a.ndim) + a.shape) for slot, a in loads.items()}
    full = {slot: [n == s for n, s in zip(a.shape, shape)] for slot, a in wide.items()}
    if keep or not all(a.flags.c_contiguous for a in wide.values()):
        return shape, {slot: (a, full[slot]) for slot, a in wide.items()}
    starts = [a for a in range(ndim) if a == 0 or any(f[a] != f[a - 1] for f in full.values())]
    groups = list(itertools.pairwise([*starts, ndim]))

    def join(sizes: Shape) -> Shape:
        return tuple(math.prod(sizes[a:b]) for a, b in groups)

    return join(shape), {
        slot: (a.reshape(join(a.shape)), [full[slot][start] for start in starts]) for slot, a in wide.items()
    }
