"""Vectorised sine and cosine of float64 arrays, compiled for this processor by LLVM.

NumPy computes the sine and cosine of float64 numbers one by one. If `llvmlite` is installed, a function is compiled
that processes eight at a time, and computes both together:

- x = k*pi/2 + r + t, with k an integer, |r| <= pi/4 and t the error of r, by fused multiplications with three parts of
  pi/2. x - k*P1 is exact: it is a multiple of the last place of P1 and below 1.
- sin(r + t) and cos(r + t) by the polynomials of fdlibm (k_sin.c and k_cos.c, Sun Microsystems 1993).
- The last two bits of k select which of them is the sine, and the signs.

The error is below 1 unit in the last place. Numbers beyond LIMIT are passed to the C library one by one, so that the
result for a number depends neither on its position nor on its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from threading import Thread
from typing import Any

from gradcli.executors import llvm_ufuncs
from gradcli.executors.llvm_equations import VectorCode
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.program.ir import Equation, Variable

# Beyond this magnitude three parts of pi/2 do not suffice for the argument reduction.
LIMIT = 2.0**20
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_TWO_OVER_PI = 0.6366197723675814
# Adding it to a number below 2**51 leaves the nearest integer in the last bits of the mantissa.
_ROUNDING = 1.5 * 2.0**52
_SINE = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COSINE = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip

# sincos(x, sine, cosine) writes both for a float64 array, into two arrays that do not overlap it.
SinCos = Callable[[Any, Any, Any], Any]

_OPERANDS = ("x", "sine", "cosine")
SINE_AND_COSINE = (trigonometric.sin, trigonometric.cos)
# Computing this many takes NumPy as long as compiling the function.
ELEMENTS_PER_COMPILE = 2**22


def ready() -> SinCos | None:
    """The compiled function, if it exists already; else None."""
    return compiled() if _compiled.cache_info().currsize else None


def compiled() -> SinCos | None:
    """The function as a NumPy ufunc, compiled at the first call; None without `llvmlite`."""
    with llvm_ufuncs.lock:
        loop = _compiled()
    return None if loop is None else loop.ufunc


def compile_in_background() -> None:
    """Compile the function in a background thread.

    The thread does not touch NumPy: if two threads import parts of it concurrently, one may see a partially initialised
    module.
    """

    def compile() -> None:
        with llvm_ufuncs.lock:
            _code()

    # Not a daemon thread, which could still be inside LLVM while the process shuts it down.
    Thread(target=compile, name="gradcli-sincos").start()


@cache
def _code() -> llvm_ufuncs.MachineCode | None:
    return llvm_ufuncs.compile_loop("sincos", _text(), ("sin", "cos"))


@cache
def _compiled() -> llvm_ufuncs.Loop | None:
    return llvm_ufuncs.as_ufunc(_code(), ["float64"], ["float64"] * 2)


def _text() -> str:
    """The loop in LLVM IR, for eight numbers at a time if the arrays are contiguous.

    The remaining numbers, and groups of eight with one beyond LIMIT, are computed one by one.
    """
    wide, narrow = _SinCosBody("wide", 8), _SinCosBody("narrow", 1)
    wide.write()
    narrow.write()
    newline = "\n"
    return f"""
{newline.join(sorted(wide.declared | narrow.declared))}
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare i1 @llvm.vector.reduce.or.v1i1(<1 x i1>)
declare double @sin(double)
declare double @cos(double)
define void @sincos(ptr %arrays, ptr %sizes, ptr %steps, ptr %data) {{
start:
  %n = load i64, ptr %sizes
{_pick("ptr", "arrays", "")}
{_pick("i64", "steps", "step.")}
  %dense.x = icmp eq i64 %step.x, 8
  %dense.sine = icmp eq i64 %step.sine, 8
  %dense.cosine = icmp eq i64 %step.cosine, 8
  %dense.both = and i1 %dense.sine, %dense.cosine
  %dense = and i1 %dense.x, %dense.both
  %last = sub i64 %n, 7
  %wide.end = select i1 %dense, i64 %last, i64 0
  br label %test
test:
  %wide.i = phi i64 [ 0, %start ], [ %wide.next, %wide.store ], [ %until, %narrow.done ]
  %wide.next = add i64 %wide.i, 8
  %wide.more = icmp slt i64 %wide.i, %wide.end
  br i1 %wide.more, label %wide, label %rest
wide:
{wide.loads}
  br i1 {wide.beyond}, label %narrow.start, label %wide.store
wide.store:
{wide.stores}
  br label %test
rest:
  %more = icmp slt i64 %wide.i, %n
  br i1 %more, label %narrow.start, label %end
narrow.start:
  %until = phi i64 [ %wide.next, %wide ], [ %n, %rest ]
  br label %narrow
narrow:
  %narrow.i = phi i64 [ %wide.i, %narrow.start ], [ %narrow.next, %narrow.end ]
{narrow.loads}
  br i1 {narrow.beyond}, label %far, label %narrow.store
narrow.store:
{narrow.stores}
  br label %narrow.end
far:
  %far.x = load double, ptr {narrow.pointer("x")}
  %far.sine = call double @sin(double %far.x)
  %far.cosine = call double @cos(double %far.x)
  store double %far.sine, ptr {narrow.pointer("sine")}
  store double %far.cosine, ptr {narrow.pointer("cosine")}
  br label %narrow.end
narrow.end:
  %narrow.next = add i64 %narrow.i, 1
  %narrow.more = icmp slt i64 %narrow.next, %until
  br i1 %narrow.more, label %narrow, label %narrow.done
narrow.done:
  br label %test
end:
  ret void
}}
"""


def _pick(kind: str, table: str, prefix: str) -> str:
    """Instructions that load the pointers or strides of the operand and both results from NumPy's arguments."""
    return "\n".join(
        f"  %{prefix}{name}.at = getelementptr {kind}, ptr %{table}, i64 {place}\n"
        f"  %{prefix}{name} = load {kind}, ptr %{prefix}{name}.at"
        for place, name in enumerate(_OPERANDS)
    )


class _SinCosBody(VectorCode):
    """The text of one iteration of a loop."""

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name, width)
        self.whole = self.vector("i64")
        self.loads = self.stores = self.beyond = ""

    def write(self) -> None:
        self.lines += [
            f"  {self.pointer(a)}.offset = mul i64 %{self.name}.i, %step.{a}\n"
            f"  {self.pointer(a)} = getelementptr i8, ptr %{a}, i64 {self.pointer(a)}.offset"
            for a in _OPERANDS
        ]
        x = self.put(f"load {self.kind}, ptr {self.pointer('x')}, align 8")
        outside = self.compared("ogt", self.intrinsic("fabs", x), self.literal(LIMIT))
        self.beyond = self.put(f"call i1 @llvm.vector.reduce.or.v{self.width}i1({self.truths} {outside})")
        self.loads, self.lines = "\n".join(self.lines), []
        shifted = self.intrinsic("fma", x, self.literal(_TWO_OVER_PI), self.literal(_ROUNDING))
        k = self.operation("fsub", shifted, self.literal(_ROUNDING))
        minus_k = self.operation("fneg", k)
        r, t = self._reduced(x, minus_k)
        sine, cosine = self._sine(r, t), self._cosine(r, t)
        bits = self.put(f"bitcast {self.kind} {shifted} to {self.whole}")
        odd = self.put(f"trunc {self.whole} {bits} to {self.truths}")
        one = self._integer(1)
        self._store("sine", self.chosen(odd, cosine, sine), bits)
        self._store("cosine", self.chosen(odd, sine, cosine), self.put(f"add {self.whole} {bits}, {one}"))
        self.stores = "\n".join(self.lines)

    def _reduced(self, x: str, minus_k: str) -> tuple[str, str]:
        """x - k*pi/2 as the sum of two numbers."""
        first, second, third = map(self.literal, _HALF_PI)
        high = self.intrinsic("fma", minus_k, first, x)
        product = self.operation("fmul", minus_k, second)
        r = self.operation("fadd", high, product)
        # The rounding errors of the product and the sum (Knuth's TwoSum).
        back = self.operation("fsub", r, high)
        lost_high = self.operation("fsub", high, self.operation("fsub", r, back))
        lost = self.operation("fadd", lost_high, self.operation("fsub", product, back))
        low = self.intrinsic("fma", minus_k, second, self.operation("fneg", product))
        return r, self.intrinsic("fma", minus_k, third, self.operation("fadd", lost, low))

    def _sine(self, r: str, t: str) -> str:
        z = self.operation("fmul", r, r)
        v = self.operation("fmul", z, r)
        series = self._horner(z, _SINE[1:])
        half = self.operation("fmul", t, self.literal(0.5))
        inner = self.operation("fsub", half, self.operation("fmul", v, series))
        small = self.operation(
            "fsub", self.intrinsic("fma", z, inner, self.operation("fneg", t)), self._scaled(v, _SINE[0])
        )
        return self.operation("fsub", r, small)

    def _cosine(self, r: str, t: str) -> str:
        z = self.operation("fmul", r, r)
        series = self.operation("fmul", self.operation("fmul", z, z), self._horner(z, _COSINE))
        half = self.operation("fmul", z, self.literal(0.5))
        w = self.operation("fsub", self.literal(1.0), half)
        lost = self.operation("fsub", self.operation("fsub", self.literal(1.0), w), half)
        minus_r = self.operation("fneg", r)
        return self.operation("fadd", w, self.operation("fadd", lost, self.intrinsic("fma", minus_r, t, series)))

    def _horner(self, z: str, coefficients: tuple[float, ...]) -> str:
        found = self.literal(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            found = self.intrinsic("fma", z, found, self.literal(c))
        return found

    def _scaled(self, value: str, factor: float) -> str:
        return self.operation("fmul", value, self.literal(factor))

    def _store(self, name: str, value: str, quadrant: str) -> None:
        """Store `value`, with its sign changed in quadrants 2 and 3."""
        second = self.put(f"and {self.whole} {quadrant}, {self._integer(2)}")
        sign = self.put(f"shl {self.whole} {second}, {self._integer(62)}")
        bits = self.put(f"bitcast {self.kind} {value} to {self.whole}")
        signed = self.put(f"xor {self.whole} {bits}, {sign}")
        number = self.put(f"bitcast {self.whole} {signed} to {self.kind}")
        self.lines.append(f"  store {self.kind} {number}, ptr {self.pointer(name)}, align 8")

    def pointer(self, array: str) -> str:
        """The name of the pointer to the current element of an array."""
        return f"%{self.name}.{array}"

    def _integer(self, value: int) -> str:
        return self.filled(f"i64 {value}")


def is_sine_or_cosine(equation: Equation) -> bool:
    """Return whether it is a sine or cosine that can be computed together with the other."""
    operand = equation.inputs[0] if equation.primitive in SINE_AND_COSINE else None
    return isinstance(operand, Variable) and operand.dtype == "float64" and operand.shape != ()


class SinCosPolicy:
    """Counts the sines and cosines that runs of equations compute.

    If `reproducible`, the function is compiled from the start, because results must not depend on earlier runs.
    """

    def __init__(self, equations: Iterable[Equation], *, reproducible: bool) -> None:
        self._each = sum(math.prod(e.output.shape) for e in equations if is_sine_or_cosine(e))
        # The compiled function, if it is used from the start.
        self.together = (compiled() if reproducible else ready()) if self._each else None
        # Whether counting can still lead to compiling.
        self.counts = self._each > 0 and self.together is None and not reproducible
        self._left = ELEMENTS_PER_COMPILE

    def count_run(self) -> bool:
        """Count one run; return whether the code is to be regenerated with the compiled function.

        That is so once compiling pays, or if the function exists already.
        """
        self._left -= self._each
        if not self.counts or (self._left > 0 and ready() is None):
            return False
        self.counts = False
        return True
