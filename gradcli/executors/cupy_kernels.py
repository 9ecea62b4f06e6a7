"""Run programs on a CUDA device: one generated kernel for every segment, and CuPy for the other equations.

The host never waits for the device during a run: the guards set one flag on the device, which is read at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.executors import cuda_kernels
from gradcli.executors.cuda_kernels import takes
from gradcli.executors.schedule import Fusion, Segment, schedule
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.program.ir import Atom, Equation, Executable, Program, Variable, elements, last_uses
from gradcli.timing import phase

Strides = tuple[tuple[int, ...], ...]
Known = dict[Variable, Any]

# Segments include all equations that they can, because launching a kernel costs as much as computing several elements.
# Partial reductions are left to CuPy, which has better methods than one thread for each row.
_FUSION = Fusion(smallest=1, longest_row=0, takes=takes, keeps=lambda _equation: False)
# Products and sums are rounded separately, as on every other backend: x*y - x*y is then 0, and a sum of products cannot
# turn negative by the rounding of one of them, or nan below a root. CuPy adds -ftz=true to everything that it compiles,
# including its own kernels: in single precision, numbers below 1.2e-38 are 0 on this backend.
_OPTIONS = ("--std=c++17", "--fmad=false")
# A longer segment would take too long to compile, and one with more arrays would exceed the 4096 bytes of kernel
# arguments.
_MOST_EQUATIONS = 256
_MOST_OPERANDS = 200


def executable(program: Program, namespace: Any) -> Executable:
    """A function that runs `program` on the device of `namespace`, a `CupyArrays`.

    It is compiled for arrays in C order; for other memory layouts, kernels are compiled when they occur.

    It takes numbers and arrays of that namespace, and returns arrays of it, or None if a guard does not hold. It raises
    what the primitives raise, and LimitError if the memory of the device does not suffice.
    """
    return _Runner(program, namespace).run


class _Runner:
    """A compiled program."""

    def __init__(self, program: Program, namespace: Any) -> None:
        self.program = program
        self.device = _Device(namespace)
        steps = schedule(program, _FUSION).steps
        # Equations that are computed by `bind` are charged there.
        self.elements = elements(e for s in steps if isinstance(s, Segment) for e in s.equations.values())
        self.freed = last_uses(steps, program.outputs)
        guards = set(program.guards)
        self.steps: list[Sequence[_Kernel | _EagerEquation]] = []
        with namespace.quiet():
            for step in steps:
                if isinstance(step, Segment):
                    self.steps.append([_Kernel(piece, self.device) for piece in _pieces(step)])
                else:
                    self.steps.append([_EagerEquation(step, self.device, step.output in guards)])
            _compile([part for parts in self.steps for part in parts if isinstance(part, _Kernel)], self.device)

    def run(self, inputs: Sequence[Any]) -> list[Any] | None:
        device, program = self.device, self.program
        limits.charge(self.elements)
        with device.namespace.quiet():
            try:
                guard_failed = device.cupy.zeros((), "bool") if program.guards else None
                known = {v: device.placed(a, v) for v, a in zip(program.inputs, inputs)}
                for guard in program.guards:
                    if guard in known:
                        device.require(known[guard], guard_failed)
                self._compute(known, guard_failed)
                outputs = [known[a] if isinstance(a, Variable) else device.copy(a) for a in program.outputs]
            except MemoryError as error:
                raise device.namespace.explained(error) or error from None
            return outputs if guard_failed is None or not bool(guard_failed) else None

    def _compute(self, known: Known, guard_failed: Any) -> None:
        for number, parts in enumerate(self.steps):
            for part in parts:
                known.update(part.run(known, guard_failed))
            for variable in self.freed.get(number, ()):
                known.pop(variable, None)


class _Device:
    """Conversion of the values and constants of a program to arrays on the device of a namespace."""

    def __init__(self, namespace: Any) -> None:
        self.namespace = namespace
        self.cupy = namespace.namespace
        # By id. The constants are kept alive, so that the ids stay unique.
        self._constants: dict[int, tuple[Any, Any]] = {}

    def placed(self, array: Any, variable: Variable) -> Any:
        """A number or an array as the value of a variable."""
        if not self.namespace.owns(array):
            return self.namespace.asarray(array, variable.dtype)
        same = arrays.dtype_name(array) == variable.dtype
        return array if same else self.namespace.astype(array, variable.dtype)

    def constant(self, array: Any) -> Any:
        """A constant array on the device. It is transferred once; broadcast axes take no memory there either."""
        if id(array) not in self._constants:
            once = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)]
            moved = self.cupy.broadcast_to(self.namespace.from_numpy(once), array.shape)
            self._constants[id(array)] = array, moved
        return self._constants[id(array)][1]

    def copy(self, constant: Any) -> Any:
        """A constant as a new array."""
        if type(constant) in arrays.PYTHON_NUMBERS:
            return self.namespace.asarray(constant)
        return self.namespace.copy(self.constant(constant))

    def require(self, condition: Any, guard_failed: Any) -> None:
        """Set the flag `guard_failed` if a condition does not hold everywhere."""
        self.cupy.logical_or(guard_failed, self.cupy.logical_not(self.cupy.all(condition)), out=guard_failed)


class _EagerEquation:
    """An equation that is computed by the namespace, outside of kernels."""

    def __init__(self, equation: Equation, device: _Device, guard: bool) -> None:
        self.equation = equation
        self.device = device
        self.guard = guard
        self.constants = {
            id(a): device.constant(a)
            for a in equation.inputs
            if not isinstance(a, Variable) and type(a) not in arrays.PYTHON_NUMBERS
        }

    def run(self, known: Known, guard_failed: Any) -> Known:
        primitive, inputs, params, output = self.equation
        operands = [known[a] if isinstance(a, Variable) else self.constants.get(id(a), a) for a in inputs]
        with arrays.using_namespace(self.device.namespace):
            result = self.device.placed(bind(primitive, operands, params), output)
        if self.guard:
            self.device.require(result, guard_failed)
        return {output: result}


class _CompiledKernels(NamedTuple):
    """The compiled functions of `cuda_kernels.Kernels`, and the number of blocks."""

    first: Any
    last: Any
    blocks: int


class _Kernel:
    """A segment, or a piece of it, with the kernels compiled so far, by the strides of the operands."""

    def __init__(self, segment: Segment, device: _Device) -> None:
        self.segment = segment
        self.device = device
        self.operands = cuda_kernels.operands_of(segment)
        self.constants = [None if isinstance(a, Variable) else device.constant(a) for a in self.operands]
        self.reductions = tuple(segment.reductions())
        self.compiled: dict[Strides, _CompiledKernels] = {}

    def in_order(self) -> Strides:
        """The strides in bytes of contiguous operands."""
        return tuple(_strides(a) if c is None else tuple(c.strides) for a, c in zip(self.operands, self.constants))

    def run(self, known: Known, guard_failed: Any) -> Known:
        given = [known[a] if c is None else c for a, c in zip(self.operands, self.constants)]
        strides = tuple(tuple(a.strides) for a in given)
        if strides not in self.compiled:
            _compile([self], self.device, strides)
        first, last, blocks = self.compiled[strides]
        empty, threads = self.device.cupy.empty, (cuda_kernels.THREADS,)
        stored = {v: empty(self.segment.shape, v.dtype) for v in self.segment.stored}
        reduced = {e.output: empty(e.output.shape, e.output.dtype) for e in self.reductions}
        partials = [empty((len(reduced), blocks), "float64")] if reduced else []
        flag = [guard_failed] if self.segment.guards else []
        first((blocks,), threads, (*given, *stored.values(), *partials, *flag))
        if reduced:
            last((len(reduced),), threads, (*partials, *reduced.values()))
        return stored | reduced


@phase("compile")
def _compile(kernels: Sequence[_Kernel], device: _Device, strides: Strides | None = None) -> None:
    """Compile kernels together, for operands in C order, or with the given strides."""
    steps = [strides or kernel.in_order() for kernel in kernels]
    with arrays.quiet():
        texts = [
            cuda_kernels.kernels(f"segment{number}", kernel.segment, kernel.operands, step)
            for number, (kernel, step) in enumerate(zip(kernels, steps))
        ]
    if not texts:
        return
    code = "\n".join([cuda_kernels.prelude(), *(text.text for text in texts)])
    find = device.cupy.RawModule(code=code, options=_OPTIONS).get_function
    for kernel, step, (name, _, blocks) in zip(kernels, steps, texts):
        last = find(f"{name}_end") if kernel.reductions else None
        kernel.compiled[step] = _CompiledKernels(find(name), last, blocks)


def _strides(variable: Variable) -> tuple[int, ...]:
    width = arrays.numpy_namespace().dtype(variable.dtype).itemsize
    return tuple(width * math.prod(variable.shape[axis + 1 :]) for axis in range(len(variable.shape)))


def _pieces(segment: Segment) -> list[Segment]:
    """A segment that is too long for one kernel as several consecutive segments."""
    pieces = []
    needed: set[Atom] = set(segment.stored)
    for equations in reversed(list(_groups(segment))):
        piece = Segment(segment.shape)
        piece.equations = {e.output: e for e in equations}
        piece.stored = {e.output: None for e in equations if e.output in needed and e.primitive.elementwise}
        piece.guards = [g for g in segment.guards if g in piece.equations]
        needed.update(a for e in equations for a in e.inputs if isinstance(a, Variable))
        pieces.append(piece)
    return pieces[::-1]


def _groups(segment: Segment) -> Iterator[list[Equation]]:
    group: list[Equation] = []
    read: set[int] = set()
    for equation in segment.equations.values():
        if len(group) >= _MOST_EQUATIONS or len(read) >= _MOST_OPERANDS:
            yield group
            group, read = [], set()
        group.append(equation)
        read.update(map(id, equation.inputs))
    yield group
