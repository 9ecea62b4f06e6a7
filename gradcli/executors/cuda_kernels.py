"""Write a segment as two CUDA kernels: one pass over its elements, and the final step of its reductions.

In the pass, a thread processes elements one grid apart. It reads each operand once, writes the stored variables, and
accumulates its own partial result of every reduction and whether the guards hold. The threads of a block combine these
in a fixed order into one partial result. The second kernel combines the partial results, with one block for each
reduction. Partial results are in double precision: even devices with few double-precision units perform some ten such
additions in the time that memory needs to deliver an element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors.cuda_functions import PRELUDE as FUNCTIONS
from gradcli.executors.cuda_functions import TYPES, CudaTerm, Statements, literal
from gradcli.executors.schedule import Segment
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries import reductions
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Variable

# Threads per block.
THREADS = 256
# The maximum number of blocks: more than any device runs at once, so that no part of it is idle at the end. It does not
# depend on the device, because the order of a sum, and thus its last digits, depend on it.
MOST_BLOCKS = 16_384
# With fewer blocks than this, each thread processes a single batch of elements.
_FEW_BLOCKS = 1024
# A thread loads this many bytes of each operand before it computes with them, to keep the memory busy. Batches are not
# used for more than _LONGEST_BATCHED statements, where computation dominates, nor below _LARGE elements, where they
# would leave parts of the device idle.
_BATCH_BYTES = 16
_LONGEST_BATCHED = 64
_LARGE = 2**20
# Indices are 32 bits wide if all are below this, which leaves room for adding a step of the grid.
SMALL_INDEX = 2**31 - 2**26

# Each struct has the capitalised name of the primitive that combines two elements.
_REDUCTIONS = r"""
struct Add {
    static __device__ double start() { return 0; }
    static __device__ double join(double x, double y) { return x + y; }
};
struct Multiply {
    static __device__ double start() { return 1; }
    static __device__ double join(double x, double y) { return x * y; }
};
struct Maximum {
    static __device__ double start() { return -infinity<double>(); }
    static __device__ double join(double x, double y) { return larger(x, y); }
};
struct Minimum {
    static __device__ double start() { return infinity<double>(); }
    static __device__ double join(double x, double y) { return smaller(x, y); }
};

/* Combine the partial results of all threads of a block; each thread returns the combined result. */
template <class Join> __device__ double combine_block(double partial)
{
    __shared__ double partials[THREADS];
    partials[threadIdx.x] = partial;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partials[threadIdx.x] = Join::join(partials[threadIdx.x], partials[threadIdx.x + half]);
    }
    __syncthreads();
    partial = partials[0];
    /* Before the next call overwrites the shared memory, all threads must have read the result. */
    __syncthreads();
    return partial;
}

/* Combine the partial results of all blocks, with the threads of one block. */
template <class Join> __device__ double combine_blocks(const double* partials, int count)
{
    double partial = Join::start();
    for (int i = threadIdx.x; i < count; i += THREADS) partial = Join::join(partial, partials[i]);
    return combine_block<Join>(partial);
}
"""


def prelude() -> str:
    """The CUDA source that all kernels of a module share."""
    return f"#define THREADS {THREADS}\n{FUNCTIONS}{_REDUCTIONS}"


class Kernels(NamedTuple):
    """The source of the kernels of a segment, to be launched with `blocks` blocks of THREADS threads.

    The first kernel, `name`, takes the operands, the stored variables, and if present the partial results of the
    reductions and the flag that is set if a guard does not hold. If there are reductions, the second, `name_end`, takes
    the partial results, `blocks` for each reduction, and the results; it is launched with one block for each reduction.
    """

    name: str
    text: str
    blocks: int


def kernels(name: str, segment: Segment, operands: Sequence[Atom], strides: Sequence[Shape]) -> Kernels:
    """The kernels of a segment. `strides` are those of the `operands`, in bytes."""
    return _KernelWriter(segment, operands, strides).kernels(name)


def operands_of(segment: Segment) -> list[Atom]:
    """The distinct variables and arrays that a segment reads."""
    atoms = (a for e in segment.equations.values() for a in e.inputs)
    return list({id(a): a for a in atoms if not _is_made_or_number(a, segment)}.values())


def _is_made_or_number(atom: Atom, segment: Segment) -> bool:
    return atom in segment.equations if isinstance(atom, Variable) else program_constants.number(atom) is not None


class _Axes(NamedTuple):
    """The sizes of axes, and the strides of each operand in elements."""

    sizes: Shape
    steps: Sequence[Shape]

    def joined(self) -> _Axes:
        """The same axes with adjacent ones merged where all strides allow it, and without axes of size 1."""
        kept: list[int] = []
        sizes = list(self.sizes)
        for axis in range(len(sizes)):
            if sizes[axis] == 1:
                continue
            if kept and all(s[kept[-1]] == s[axis] * sizes[axis] for s in self.steps):
                sizes[axis] *= sizes[kept.pop()]
            kept.append(axis)
        return _Axes(tuple(sizes[a] for a in kept), [tuple(s[a] for a in kept) for s in self.steps])

    def in_order(self) -> Shape:
        """The strides of a contiguous array."""
        return tuple(math.prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes)))

    def span(self) -> int:
        """The largest distance in elements between two elements of an operand."""
        return max((sum((n - 1) * abs(s) for n, s in zip(self.sizes, steps)) for steps in self.steps), default=0)


def _steps(shape: Shape, operand: Atom, strides: Shape) -> Shape:
    """The strides in elements of an operand that is broadcast to `shape`."""
    own, width = arrays.shape(operand), _width(operand)
    found = [0 if n == 1 else step // width for n, step in zip(own, strides)]
    return (*[0] * (len(shape) - len(own)), *found)


def _width(atom: Atom) -> int:
    return int(arrays.numpy_namespace().dtype(arrays.dtype_name(atom)).itemsize)


class _KernelWriter:
    """Writes the text of the kernels of one segment."""

    def __init__(self, segment: Segment, operands: Sequence[Atom], strides: Sequence[Shape]) -> None:
        self.segment = segment
        self.operands = operands
        self.size = math.prod(segment.shape)
        self.axes = _Axes(segment.shape, [_steps(segment.shape, o, s) for o, s in zip(operands, strides)]).joined()
        self.index = "int" if max(self.size, self.axes.span()) < SMALL_INDEX else "long long"
        self.reductions = tuple(segment.reductions())
        self.read = [k for k, steps in enumerate(self.axes.steps) if any(steps)]
        self.statements = Statements()
        self.terms: dict[int, CudaTerm] = {}
        for k, operand in enumerate(operands):
            self.terms[id(operand)] = CudaTerm(f"x{k}[k]" if k in self.read else f"x{k}", arrays.dtype_name(operand))
        for equation in segment.equations.values():
            if equation.primitive.elementwise:
                terms = [self._term(a) for a in equation.inputs]
                self.terms[id(equation.output)] = self.statements.write(equation, terms)
        self.batch = self._batch()

    def _term(self, atom: Atom) -> CudaTerm | float:
        if id(atom) in self.terms:
            return self.terms[id(atom)]
        number = program_constants.number(atom)
        assert number is not None
        return CudaTerm(literal(number, "bool"), "bool") if arrays.dtype_name(atom) == "bool" else number

    def _batch(self) -> int:
        """The number of elements that a thread processes at a time."""
        if self.size < _LARGE or len(self.statements.lines) > _LONGEST_BATCHED:
            return 1
        widths = [_width(a) for a in (*(self.operands[k] for k in self.read), *self.segment.stored)]
        return _BATCH_BYTES // max(widths, default=_BATCH_BYTES)

    def kernels(self, name: str) -> Kernels:
        batches = -(-self.size // (THREADS * self.batch))
        blocks = min(batches, max(_FEW_BLOCKS, batches // 4), MOST_BLOCKS)
        text = "\n".join(self._first(name) + (self._last(f"{name}_end", blocks) if self.reductions else []))
        return Kernels(name, text, blocks)

    def _first(self, name: str) -> list[str]:
        parameters = [f"const {TYPES[arrays.dtype_name(a)]}* __restrict__ a{k}" for k, a in enumerate(self.operands)]
        parameters += [f"{TYPES[v.dtype]}* __restrict__ s{k}" for k, v in enumerate(self.segment.stored)]
        parameters += ["double* __restrict__ partials"] if self.reductions else []
        parameters += ["bool* guard_failed"] if self.segment.guards else []
        starts = [f"double r{k} = {_joining(e)}::start();" for k, e in enumerate(self.reductions)]
        holds = ["bool holds = true;"] if self.segment.guards else []
        first, last = f"THREADS * {self.batch}", self.size - 1
        start, step = f"({self.index})blockIdx.x * ({first}) + threadIdx.x", f"({self.index})gridDim.x * ({first})"
        return _function(
            name,
            parameters,
            [
                *(f"const {TYPES[arrays.dtype_name(a)]} x{k} = a{k}[0];" for k, a in self._fixed()),
                *starts,
                *holds,
                f"for ({self.index} first = {start}; first <= {last}; first += {step}) {{",
                *_indented([*self._loads(last), *self._batched(self._element(last))]),
                "}",
                *self._block_results(),
                *(["if (!__syncthreads_and(holds) && threadIdx.x == 0) *guard_failed = true;"] if holds else []),
            ],
        )

    def _fixed(self) -> list[tuple[int, Atom]]:
        """The operands that are constant over all elements."""
        return [(k, a) for k, a in enumerate(self.operands) if k not in self.read]

    def _batched(self, body: Sequence[str]) -> list[str]:
        return ["#pragma unroll", f"for (int k = 0; k < {self.batch}; ++k) {{", *_indented(body), "}"]

    def _loads(self, last: int) -> list[str]:
        """Statements that load a batch of each operand; beyond the end they load the last element."""
        if not self.read:
            return []
        arrays_ = [f"{TYPES[arrays.dtype_name(self.operands[k])]} x{k}[{self.batch}];" for k in self.read]
        index = f"const {self.index} i = first + k * THREADS < {last} ? first + k * THREADS : {last};"
        reads = [f"x{k}[k] = a{k}[{self._place(self.axes.steps[k])}];" for k in self.read]
        return [*arrays_, *self._batched([index, *self._positions(), *reads])]

    def _place(self, steps: Shape) -> str:
        if steps == self.axes.in_order():
            return "i"
        return " + ".join(f"p{axis}" if step == 1 else f"p{axis} * {step}" for axis, step in enumerate(steps) if step)

    def _positions(self) -> list[str]:
        """Statements that compute the positions along those axes that operands are indexed by."""
        order = self.axes.in_order()
        apart = [self.axes.steps[k] for k in self.read if self.axes.steps[k] != order]
        return [
            f"const {self.index} p{axis} = i{f' / {step}' if step > 1 else ''}{f' % {n}' if axis else ''};"
            for axis, (n, step) in enumerate(zip(self.axes.sizes, order))
            if any(steps[axis] for steps in apart)
        ]

    def _element(self, last: int) -> list[str]:
        """The statements that compute one element."""
        stores = [f"s{k}[i] = {self.terms[id(v)].text};" for k, v in enumerate(self.segment.stored)]
        joins = [f"r{k} = {_joining(e)}::join({self._operand(e)}, r{k});" for k, e in enumerate(self.reductions)]
        holds = [f"holds = holds && {self.terms[id(g)].text};" for g in self.segment.guards]
        body = [*self.statements.lines, *stores, *joins, *holds]
        index = f"const {self.index} i = first + k * THREADS;"
        return [index, f"if (i <= {last}) {{", *_indented(body), "}"]

    def _operand(self, equation: Equation) -> str:
        """The number that an element contributes to a reduction."""
        term = self._term(equation.inputs[0])
        return term.text if isinstance(term, CudaTerm) else literal(term, "float64")

    def _block_results(self) -> list[str]:
        """Statements that write the partial results of a block."""
        lines = [f"r{k} = combine_block<{_joining(e)}>(r{k});" for k, e in enumerate(self.reductions)]
        if not lines:
            return []
        writes = [f"partials[{k} * gridDim.x + blockIdx.x] = r{k};" for k in range(len(lines))]
        return [*lines, "if (threadIdx.x == 0) {", *_indented(writes), "}"]

    def _last(self, name: str, blocks: int) -> list[str]:
        parameters = [f"{TYPES[e.output.dtype]}* __restrict__ o{k}" for k, e in enumerate(self.reductions)]
        lines = []
        for k, equation in enumerate(self.reductions):
            join = _joining(equation)
            count = f" / {literal(self.size, 'float64')}" if equation.primitive is reductions.mean else ""
            lines += [
                f"if (blockIdx.x == {k}) {{",
                f"    const double result = combine_blocks<{join}>(partials + {k * blocks}, {blocks}){count};",
                f"    if (threadIdx.x == 0) *o{k} = ({TYPES[equation.output.dtype]})result;",
                "}",
            ]
        return _function(name, ["const double* __restrict__ partials", *parameters], lines)


def _joining(reduction: Equation) -> str:
    primitive = reduction.primitive.reduces
    assert primitive is not None
    return primitive.name.capitalize()


def _function(name: str, parameters: Sequence[str], body: Sequence[str]) -> list[str]:
    head = f'extern "C" __global__ void __launch_bounds__(THREADS) {name}({", ".join(parameters)})'
    return [head, "{", *_indented(body), "}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
