"""Write a segment as two CUDA kernels: one pass over its elements, and the final step of its reductions.

In the pass, a thread processes elements one grid apart. It reads each operand once, writes the stored variables, and
accumulates its own partial result of every reduction and whether the guards hold. The threads of a block combine these
in a fixed order into one partial result. The second kernel combines the partial results, with one block for each
reduction. Partial results are in double precision: even devices with few double-precision units perform some ten such
additions in the time that memory needs to deliver an element.

Elementwise equations are written by running the `forward` of primitives on names instead of arrays, so that the edge
values of a function have the same definition as in every other backend. Only functions of CUDA itself are spelled here,
and those whose edge values differ from NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from gradcli import arrays
from gradcli.arrays import spellings
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.shapes import Shape
from gradcli.arrays.spellings import Spelling
from gradcli.executors.schedule import Segment
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions
from gradcli.primitives.entries import reductions
from gradcli.primitives.entries.powers import by_squaring
from gradcli.primitives.entries.special_functions import distributions, special
from gradcli.primitives.primitive import Primitive
from gradcli.program import program_constants
from gradcli.program.ir import Atom, Equation, Variable

TYPES = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}
_FLOATING = ("float64", "float32")

# Functions that the templates below call. T is float or double, which selects the overload of CUDA's functions.
PRELUDE = r"""
template <class T> __device__ T infinity() { return T(__longlong_as_double(0x7ff0000000000000LL)); }
template <class T> __device__ T not_a_number() { return T(__longlong_as_double(0x7ff8000000000000LL)); }
template <class T> __device__ T sign_of(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x; }
template <class T> __device__ T larger(T x, T y) { return x > y || x != x ? x : y; }
template <class T> __device__ T smaller(T x, T y) { return x < y || x != x ? x : y; }

template <class T> __device__ T remainder_by(T x, T y)
{
    const T rest = fmod(x, y);
    if (rest == 0) return copysign(T(0), y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

template <class T> __device__ T floor_quotient(T x, T y)
{
    if (y == 0) return x / y;
    const T rest = fmod(x, y);
    const T quotient = (x - rest) / y - T(rest != 0 && (rest < 0) != (y < 0));
    return quotient == 0 ? copysign(T(0), x / y) : rint(quotient);
}

template <class T> __device__ T log_of_sum(T x, T y)
{
    if (x == y) return x + T(0.6931471805599453);
    return x > y ? x + log1p(exp(y - x)) : y + log1p(exp(x - y));
}

template <class T> __device__ T log2_of_sum(T x, T y)
{
    if (x == y) return x + T(1);
    return x > y ? x + log1p(exp2(y - x)) * T(1.4426950408889634) : y + log1p(exp2(x - y)) * T(1.4426950408889634);
}

template <class T> __device__ T log_of_normal(T x)
{
    const T t = x * T(0.7071067811865476);
    return x < T(-1) ? log(erfcx(-t) * T(0.5)) - t * t : log1p(-erfc(t) * T(0.5));
}

/* Between 1 and 2, where it has a zero, g*(Y + P/Q) with the distance g from there (Boost, digamma.hpp);
   elsewhere DLMF 5.5.2, 5.5.4 and 5.11.2. */
__device__ double digamma(double x)
{
    if (x == 0) return -copysign(infinity<double>(), x);
    if (x < 0 && x == floor(x)) return not_a_number<double>();
    double rest = 0;
    if (x < 0) {
        rest = -3.141592653589793 / tan(3.141592653589793 * (x - rint(x)));
        x = 1 - x;
    }
    if (x < 1) {
        rest -= 1 / x;
        x += 1;
    } else if (x < 10) {
        for (; x > 2; rest += 1 / x) x -= 1;
    }
    if (x <= 2) {
        const double g = x - 1569415565.0 / 1073741824.0 - (381566830.0 / 1073741824.0) / 1073741824.0
                         - 0.9016312093258695918615325266959189453125e-19;
        const double z = x - 1;
        const double p = 0.25479851061131551 + z * (-0.32555031186804491 + z * (-0.65031853770896507
                         + z * (-0.28919126444774784 + z * (-0.045251321448739056 + z * -0.0020713321167745952))));
        const double q = 1 + z * (2.0767117023730469 + z * (1.4606242909763515 + z * (0.43593529692665969
                         + z * (0.054151797245674225 + z * (0.0021284987017821144 + z * -0.55789841321675513e-6)))));
        return rest + (g * 0.99558162689208984 + g * (p / q));
    }
    const double z = 1 / (x * x);
    return rest + log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
           - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
}

/* Hurwitz's zeta function for s >= 2 and q > 0: the first terms, and Euler-Maclaurin for the rest, DLMF 25.11.5. */
__device__ double zeta(double s, double q)
{
    /* B(2k)/(2k)! */
    const double coefficients[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
                                   -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3.389680296322582717e-13,
                                   8.5860620562778451694e-15, -2.1748686985580619227e-16,
                                   5.5090028283602295302e-18, -1.3954464685812524713e-19};
    double first = 0;
    for (; q < 10 || q < s; q += 1) first += pow(q, -s);
    const double last = pow(q, -s);
    double total = last * q / (s - 1) + 0.5 * last, factor = last * s / q;
    for (int k = 0; k < 12; ++k) {
        total += coefficients[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return first + total;
}
"""

# Templates of functions that are neither operators nor called in CUDA by the name in their spelling, by their names in
# namespaces.
_TEMPLATES = {
    "negative": "-{0}",
    "sign": "sign_of({0})",
    "maximum": "larger({0}, {1})",
    "minimum": "smaller({0}, {1})",
    "remainder": "remainder_by({0}, {1})",
    "floor_divide": "floor_quotient({0}, {1})",
    "logaddexp": "log_of_sum({0}, {1})",
    "logaddexp2": "log2_of_sum({0}, {1})",
    "log_ndtr": "log_of_normal({0})",
    "digamma": "digamma({0})",
    "zeta": "zeta({0}, {1})",
    # SciPy returns nan at the infinities, and the other backends too.
    "i0": "cyl_bessel_i0({0}) + ({0} - {0})",
    "i1": "cyl_bessel_i1({0}) + ({0} - {0})",
    "j0": "j0({0}) + ({0} - {0})",
    "j1": "j1({0}) + ({0} - {0})",
}
_WAVES = {"sin": "cos", "cos": "sin"}
# Functions computed in double precision also for float32, as in SciPy, because they lose most digits in single
# precision.
_WIDE = frozenset(
    {special.digamma, special.polygamma, special.betaln, distributions.beta, special.bessel_i, special.bessel_j}
)
# Powers with these exponents are computed as products, which takes a fraction of the time of `pow`.
_PRODUCTS = frozenset({1.0, 2.0, 3.0, 4.0})


def takes(equation: Equation) -> bool:
    """Return whether an equation can be computed in a kernel.

    CUDA must have its functions if it is elementwise, it must return floats or truth values, and integer operands must
    be converted to floats.
    """
    floating = equation.output.dtype in _FLOATING
    if not floating and equation.output.dtype != "bool":
        return False
    known = (*_FLOATING, "bool", "int64") if floating else (*_FLOATING, "bool")
    if not all(type(a) is int or arrays.dtype_name(a) in known for a in equation.inputs):
        return False
    primitive = equation.primitive
    return not primitive.elementwise or _is_written(primitive, len(equation.inputs), tuple(equation.params.items()))


@cache
def _is_written(primitive: Primitive, operands: int, params: tuple[tuple[str, Any], ...]) -> bool:
    """Return whether CUDA has all functions that an elementwise primitive is composed of."""
    if primitive is conversions.cast:
        return True
    functions = Functions(Statements(), "float64")
    given = [Value(functions, CudaTerm(f"x{i}", "float64")) for i in range(operands)]
    try:
        primitive.forward(functions, *given, **dict(params))
    except spellings.MissingFunctionError:
        return False
    return True


def _called(spelling: Spelling) -> str | None:
    """The name of a function in CUDA, which includes the C library; None if CUDA lacks it."""
    return spelling.names.get("cuda") or spelling.names.get("c")


def literal(number: Any, dtype: str) -> str:
    """A number as a CUDA literal."""
    if dtype == "bool":
        return "true" if number else "false"
    kind = TYPES[dtype]
    value = float(arrays.numpy_namespace().asarray(number, dtype))
    if value != value:
        return f"not_a_number<{kind}>()"
    text = f"infinity<{kind}>()" if math.isinf(value) else repr(abs(value)) + "f" * (dtype == "float32")
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text


class CudaTerm(NamedTuple):
    """A name or literal in the text, and its dtype."""

    text: str
    dtype: str


class Statements:
    """The statements that compute the requested expressions, each expression once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        # The statements by the name that each defines.
        self._lines: dict[str, str] = {}

    @property
    def lines(self) -> Sequence[str]:
        return tuple(self._lines.values())

    def name(self, dtype: str, expression: str) -> str:
        """The name of the value of an expression."""
        name = self._names.get((dtype, expression))
        if name is None:
            name = self._named(dtype, expression)
            self._lines[name] = f"const {TYPES[dtype]} {name} = {expression};"
        return name

    def sine_or_cosine(self, dtype: str, function: str, operand: str) -> str:
        """The name of a sine or cosine; if both are requested, one call of `sincos` computes them."""
        expression = f"{function}({operand})"
        other = self._names.get((dtype, f"{_WAVES[function]}({operand})"))
        if other is None or (dtype, expression) in self._names:
            return self.name(dtype, expression)
        name = self._named(dtype, expression)
        sine, cosine = (name, other) if function == "sin" else (other, name)
        self._lines[other] = f"{TYPES[dtype]} {sine}, {cosine}; sincos({operand}, &{sine}, &{cosine});"
        return name

    def _named(self, dtype: str, expression: str) -> str:
        return self._names.setdefault((dtype, expression), f"v{len(self._names)}")

    def write(self, equation: Equation, operands: Sequence[CudaTerm | float]) -> CudaTerm:
        """Write an elementwise equation for which `takes` holds, and return its result."""
        primitive = equation.primitive
        functions = Functions(self, _working_dtype(equation))
        given = [functions.given(o, truths=primitive.truths) for o in operands]
        same = primitive is conversions.cast
        result = given[0] if same else primitive.forward(functions, *given, **equation.params)
        return functions.converted(result.term, equation.output.dtype)


def _working_dtype(equation: Equation) -> str:
    """The dtype in which an equation is computed.

    0-d numbers are weakly typed like Python numbers: they take the dtype of the other operands.
    """
    if equation.primitive in _WIDE:
        return "float64"
    output = equation.output.dtype
    if equation.primitive is conversions.cast and output in _FLOATING:
        return output
    strong = {arrays.dtype_name(a) for a in equation.inputs if not _is_weak(a)}
    return next((d for d in _FLOATING if d in strong), output if output in _FLOATING else "float64")


def _is_weak(atom: Atom) -> bool:
    if isinstance(atom, Variable):
        return not atom.shape and atom.dtype == "float64"
    return type(atom) in arrays.PYTHON_NUMBERS


class Value:
    """An operand of a `forward`: a term with operators that write statements."""

    __slots__ = ("functions", "term")

    def __init__(self, functions: Functions, term: CudaTerm) -> None:
        self.functions = functions
        self.term = term

    @property
    def dtype(self) -> str:
        return self.term.dtype

    def __add__(self, other: Any) -> Value:
        return self.functions.call("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.functions.call("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self.functions.call("subtract", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.functions.call("subtract", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.functions.call("multiply", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.functions.call("multiply", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.functions.call("divide", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.functions.call("divide", other, self)

    def __neg__(self) -> Value:
        return self.functions.call("negative", self)


class Functions(common_definitions.SpecialFunctions):
    """The namespace in which the `forward` of an elementwise primitive writes statements."""

    name = "cuda"

    def __init__(self, statements: Statements, dtype: str) -> None:
        self.statements = statements
        self.dtype = dtype

    def __getattr__(self, name: str) -> Callable[..., Value]:
        spelling = spellings.of(name)
        if name in _TEMPLATES or spelling.operator or _called(spelling):
            return partial(self.call, name)
        return spellings.defined(self, name)

    def given(self, operand: CudaTerm | float, *, truths: bool) -> Value:
        """An operand of an equation, converted to the working dtype unless truth values are kept."""
        kept = truths and isinstance(operand, CudaTerm) and operand.dtype == "bool"
        return Value(self, operand if kept else self._number(operand))  # type: ignore[arg-type]

    def converted(self, term: CudaTerm, dtype: str) -> CudaTerm:
        if term.dtype == dtype:
            return term
        expression = f"{term.text} != 0" if dtype == "bool" else f"({TYPES[dtype]}){term.text}"
        return CudaTerm(self.statements.name(dtype, expression), dtype)

    def _number(self, operand: Any) -> CudaTerm:
        """A term, a value or a Python number as a term of the working dtype."""
        if type(operand) in arrays.PYTHON_NUMBERS:
            return CudaTerm(literal(operand, self.dtype), self.dtype)
        return self.converted(operand.term if isinstance(operand, Value) else operand, self.dtype)

    def _truth(self, operand: Value) -> str:
        return self.converted(operand.term, "bool").text

    def call(self, name: str, *operands: Any) -> Value:
        texts = [self._number(o).text for o in operands]
        spelling = spellings.of(name)
        if name in _TEMPLATES:
            expression = _TEMPLATES[name].format(*texts)
        elif _called(spelling):
            expression = f"{_called(spelling)}({', '.join(texts)})"
        else:
            expression = f" {spelling.operator} ".join(texts)
        return self._result(expression, "bool" if spelling.truths else self.dtype)

    def _result(self, expression: str, dtype: str) -> Value:
        return Value(self, CudaTerm(self.statements.name(dtype, expression), dtype))

    def sin(self, x: Any) -> Value:
        return Value(
            self, CudaTerm(self.statements.sine_or_cosine(self.dtype, "sin", self._number(x).text), self.dtype)
        )

    def cos(self, x: Any) -> Value:
        return Value(
            self, CudaTerm(self.statements.sine_or_cosine(self.dtype, "cos", self._number(x).text), self.dtype)
        )

    def logical_and(self, x: Value, y: Value) -> Value:
        return self._result(f"{self._truth(x)} && {self._truth(y)}", "bool")

    def logical_or(self, x: Value, y: Value) -> Value:
        return self._result(f"{self._truth(x)} || {self._truth(y)}", "bool")

    def logical_not(self, x: Value) -> Value:
        return self._result(f"!{self._truth(x)}", "bool")

    def where(self, condition: Value, x: Any, y: Any) -> Value:
        truths = all(isinstance(o, Value) and o.dtype == "bool" for o in (x, y))
        first, second = (o.term if truths else self._number(o) for o in (x, y))
        return self._result(f"{self._truth(condition)} ? {first.text} : {second.text}", first.dtype)

    def zeros_like(self, _x: Value) -> Value:
        return Value(self, self._number(0.0))

    def ones_like(self, _x: Value) -> Value:
        return Value(self, self._number(1.0))

    def pow(self, x: Any, q: Any) -> Any:
        if q in _PRODUCTS:
            return by_squaring(self.multiply, x, int(q))
        return self.divide(1.0, x) if q == -1.0 else self.call("pow", x, q)


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
    return f"#define THREADS {THREADS}\n{PRELUDE}{_REDUCTIONS}"


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
