"""One pass over blocks: elementwise equations and reductions of them, into buffers that are used again."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.executors import schedule, sincos, ufuncs
from gradcli.executors.schedule import Segment
from gradcli.primitives import reductions, trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable
from gradcli.timing import phase

Shape = tuple[int, ...]
Environment = list[Any]

_WAVES = (trigonometric.sin, trigonometric.cos)
# So many of them take as long as it takes to compile a function for them.
_MANY_WAVES = 2**24
# Elements times equations for one thread: with fewer, starting it takes longer than it saves.
_WORTH_A_THREAD = 2**21
_UFUNCS = {
    reductions.sum_: "add",
    reductions.mean: "add",
    reductions.prod: "multiply",
    reductions.max_: "maximum",
    reductions.min_: "minimum",
}


class Instruction(NamedTuple):
    """`compute` of the slots that `take` names, the last of which it writes into; where `made` is a
    slot, the result goes there instead."""

    compute: Callable[..., Any]
    take: Callable[[Environment], Sequence[Any]]
    made: int | None


class Reduction(NamedTuple):
    """A reduction of the blocks in `slot`."""

    equation: Equation
    slot: int


class Guard(NamedTuple):
    """The blocks in `slot` must be true everywhere."""

    slot: int


class Code:
    """The instructions for a block. Every variable and constant has a slot in an environment, in
    which a thread has the current block of each."""

    def __init__(self) -> None:
        self.slots: dict[Any, int] = {}
        self.steps: list[Instruction | Reduction | Guard] = []
        # By slot: a buffer's number and dtype.
        self.buffers: dict[int, tuple[int, str]] = {}
        self.loaded: dict[int, Atom] = {}
        # Results that are written over an operand.
        self.over: dict[Variable, Variable] = {}


class Kernel:
    """A segment, ready to run. The arrays of `dying` are read by nobody else, before or after."""

    def __init__(self, segment: Segment, dying: frozenset[Variable]) -> None:
        self.segment = segment
        self.dying = dying
        self.partial = any(len(e.params["axis"]) < len(segment.shape) for e in segment.reductions())
        self.code = _Compiler(segment, dying, None).compile()
        self._waves = sum(e.primitive in _WAVES for e in segment.equations.values())
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
                self.code = _Compiler(self.segment, self.dying, sincos.compiled()).compile()


class _Compiler:
    """Slots, buffers and instructions for the equations of a segment."""

    def __init__(self, segment: Segment, dying: frozenset[Variable], together: sincos.SinCos | None) -> None:
        self.code = Code()
        self.segment = segment
        self.dying = dying
        self.together = together
        # By operand: the sine and the cosine of it.
        self.waves: dict[Any, dict[Primitive, Variable]] = {}
        for equation in segment.equations.values():
            if equation.primitive in _WAVES:
                self.waves.setdefault(_key(equation.inputs[0]), {})[equation.primitive] = equation.output
        self.free: dict[str, list[int]] = {}
        self.count = 0
        self.last = self._last_uses()

    def compile(self) -> Code:
        guards = set(self.segment.guards)
        for number, equation in enumerate(self.segment.equations.values()):
            for atom in equation.inputs:
                self._load(atom)
            if equation.primitive.elementwise:
                self._compute(number, equation)
            else:
                self.code.steps.append(Reduction(equation, self.code.slots[_key(equation.inputs[0])]))
            if equation.output in guards:
                self.code.steps.append(Guard(self.code.slots[equation.output]))
            self._release(number, (*equation.inputs, equation.output))
        return self.code

    def _last_uses(self) -> dict[Any, int]:
        last: dict[Any, int] = {}
        for number, equation in enumerate(self.segment.equations.values()):
            last.update((_key(a), number) for a in (equation.output, *equation.inputs))
        return last

    def _slot(self, key: Any) -> int:
        return self.code.slots.setdefault(key, len(self.code.slots))

    def _load(self, atom: Atom) -> None:
        key = _key(atom)
        if key not in self.code.slots:
            self.code.loaded[self._slot(key)] = atom

    def _compute(self, number: int, equation: Equation) -> None:
        if self._is_wave(equation):
            self._compute_waves(equation)
            return
        function = ufuncs.into(equation.primitive, equation.params) if ufuncs.is_plain(equation) else None
        operands = [self.code.slots[_key(a)] for a in equation.inputs]
        if function is not None and equation.primitive not in ufuncs.NOT_IN_PLACE:
            self._write_over(number, equation)
            self._release(number, equation.inputs)
        out = self._slot(equation.output)
        if function is None:
            self.code.steps.append(Instruction(_forward(equation), _getter(operands), out))
            return
        self._give_buffer(equation.output, equation.output.dtype)
        self.code.steps.append(Instruction(function, _getter([*operands, out]), None))

    def _write_over(self, number: int, equation: Equation) -> None:
        """Have a result that is stored take the place of an operand that is not read any more."""
        output = equation.output
        if output not in self.segment.stored:
            return
        for atom in self.code.loaded.values():
            if not isinstance(atom, Variable) or atom not in self.dying or atom in self.code.over.values():
                continue
            if self.last[atom] <= number and (atom.shape, atom.dtype) == (output.shape, output.dtype):
                self.code.over[output] = atom
                return

    def _is_wave(self, equation: Equation) -> bool:
        """Whether a sine or cosine is computed together with the other."""
        operand = equation.inputs[0] if equation.primitive in _WAVES else None
        return (
            self.together is not None
            and isinstance(operand, Variable)
            and (operand.shape == self.segment.shape and operand.dtype == "float64")
        )

    def _compute_waves(self, equation: Equation) -> None:
        if equation.output in self.code.slots:
            return
        operand = equation.inputs[0]
        pair = self.waves[_key(operand)]
        # What nobody reads is written too.
        keys = [pair.get(wave, (wave, operand)) for wave in _WAVES]
        for key in keys:
            self._give_buffer(key, "float64")
        slots = [self.code.slots[key] for key in (_key(operand), *keys)]
        assert self.together is not None
        self.code.steps.append(Instruction(self.together, _getter(slots), None))
        for key in keys:
            if not isinstance(key, Variable):
                self._free(key)

    def _give_buffer(self, key: Any, dtype: str) -> None:
        if key not in self.segment.stored:
            self.code.buffers[self._slot(key)] = (self._buffer(dtype), dtype)
        else:
            self._slot(key)

    def _buffer(self, dtype: str) -> int:
        free = self.free.get(dtype)
        if free:
            return free.pop()
        self.count += 1
        return self.count

    def _release(self, number: int, atoms: Sequence[Atom]) -> None:
        """Have the buffers of what is not read any more used again."""
        for key in {_key(a) for a in atoms}:
            slot = self.code.slots.get(key)
            if slot in self.code.buffers and self.last.get(key) == number:
                self._free(key)
                del self.last[key]

    def _free(self, key: Any) -> None:
        buffer, dtype = self.code.buffers[self.code.slots[key]]
        self.free.setdefault(dtype, []).append(buffer)


def _key(atom: Atom) -> Any:
    """What an atom is told from others by: a constant by its identity."""
    return atom if isinstance(atom, Variable) else id(atom)


def _getter(slots: Sequence[int]) -> Callable[[Environment], Sequence[Any]]:
    if len(slots) > 1:
        return itemgetter(*slots)
    slot = slots[0]
    return lambda environment: (environment[slot],)


def _forward(equation: Equation) -> Callable[..., Any]:
    primitive, params = equation.primitive, equation.params
    xp = arrays.numpy_namespace()

    def forward(*operands: Any) -> Any:
        return primitive.forward(xp, *xp.promoted(operands, truths=primitive.truths), **params)

    return forward


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
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        segment = self.kernel.segment
        work = len(segment.equations) * math.prod(segment.shape)
        return max(1, min(cores, self.blocks.count, work // _WORTH_A_THREAD))

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


def _reduced(equation: Equation, block: Any) -> Any:
    """The reduction of one block; with all of its axes kept where others are left."""
    ufunc = getattr(arrays.numpy_namespace(), _UFUNCS[equation.primitive])
    axis = equation.params["axis"]
    if len(axis) == len(arrays.shape(equation.inputs[0])):
        return ufunc.reduce(block, axis=None)
    return ufunc.reduce(block, axis=axis, keepdims=True)


def _combined(equation: Equation, partials: Sequence[Any]) -> Any:
    """The reduction of the whole from those of the blocks, in their order."""
    np = arrays.numpy_namespace()
    ufunc = getattr(np, _UFUNCS[equation.primitive])
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
