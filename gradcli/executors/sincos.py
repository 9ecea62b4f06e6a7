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

import struct
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any

from gradcli.executors import llvm_ufuncs

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
def _code() -> llvm_ufuncs.Code | None:
    return llvm_ufuncs.compile_loop("sincos", _text(), ("sin", "cos"))


@cache
def _compiled() -> llvm_ufuncs.Loop | None:
    return llvm_ufuncs.as_ufunc(_code(), ["float64"], ["float64"] * 2)


def _text() -> str:
    """The loop in LLVM IR, for eight numbers at a time if the arrays are contiguous.

    The remaining numbers, and groups of eight with one beyond LIMIT, are computed one by one.
    """
    wide, narrow = _Body("wide", 8), _Body("narrow", 1)
    wide.write()
    narrow.write()
    return f"""
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
declare <1 x double> @llvm.fma.v1f64(<1 x double>, <1 x double>, <1 x double>)
declare <8 x double> @llvm.fabs.v8f64(<8 x double>)
declare <1 x double> @llvm.fabs.v1f64(<1 x double>)
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


class _Body:
    """The text of one iteration of a loop, with a name for every intermediate result."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.kind = f"<{width} x double>"
        self.whole = f"<{width} x i64>"
        self.lines: list[str] = []
        self.loads = self.stores = self.beyond = ""
        self.count = 0

    def write(self) -> None:
        self.lines += [
            f"  {self.pointer(a)}.offset = mul i64 %{self.name}.i, %step.{a}\n"
            f"  {self.pointer(a)} = getelementptr i8, ptr %{a}, i64 {self.pointer(a)}.offset"
            for a in _OPERANDS
        ]
        x = self._put(f"load {self.kind}, ptr {self.pointer('x')}, align 8")
        size = self._put(f"call {self.kind} @llvm.fabs.v{self.width}f64({self.kind} {x})")
        outside = self._put(f"fcmp ogt {self.kind} {size}, {self._number(LIMIT)}")
        mask = f"<{self.width} x i1>"
        self.beyond = self._put(f"call i1 @llvm.vector.reduce.or.v{self.width}i1({mask} {outside})")
        self.loads, self.lines = "\n".join(self.lines), []
        shifted = self._fma(x, self._number(_TWO_OVER_PI), self._number(_ROUNDING))
        k = self._put(f"fsub {self.kind} {shifted}, {self._number(_ROUNDING)}")
        minus_k = self._put(f"fneg {self.kind} {k}")
        r, t = self._reduced(x, minus_k)
        sine, cosine = self._sine(r, t), self._cosine(r, t)
        bits = self._put(f"bitcast {self.kind} {shifted} to {self.whole}")
        odd = self._put(f"trunc {self.whole} {bits} to {mask}")
        one = self._integer(1)
        self._store("sine", self._select(odd, cosine, sine), bits)
        self._store("cosine", self._select(odd, sine, cosine), self._put(f"add {self.whole} {bits}, {one}"))
        self.stores = "\n".join(self.lines)

    def _reduced(self, x: str, minus_k: str) -> tuple[str, str]:
        """x - k*pi/2 as the sum of two numbers."""
        first, second, third = map(self._number, _HALF_PI)
        high = self._fma(minus_k, first, x)
        product = self._two("fmul", minus_k, second)
        r = self._two("fadd", high, product)
        # The rounding errors of the product and the sum (Knuth's TwoSum).
        back = self._two("fsub", r, high)
        lost_high = self._two("fsub", high, self._two("fsub", r, back))
        lost = self._two("fadd", lost_high, self._two("fsub", product, back))
        low = self._fma(minus_k, second, self._put(f"fneg {self.kind} {product}"))
        return r, self._fma(minus_k, third, self._two("fadd", lost, low))

    def _sine(self, r: str, t: str) -> str:
        z = self._two("fmul", r, r)
        v = self._two("fmul", z, r)
        series = self._horner(z, _SINE[1:])
        half = self._two("fmul", t, self._number(0.5))
        inner = self._two("fsub", half, self._two("fmul", v, series))
        small = self._two("fsub", self._fma(z, inner, self._put(f"fneg {self.kind} {t}")), self._scaled(v, _SINE[0]))
        return self._two("fsub", r, small)

    def _cosine(self, r: str, t: str) -> str:
        z = self._two("fmul", r, r)
        series = self._two("fmul", self._two("fmul", z, z), self._horner(z, _COSINE))
        half = self._two("fmul", z, self._number(0.5))
        w = self._two("fsub", self._number(1.0), half)
        lost = self._two("fsub", self._two("fsub", self._number(1.0), w), half)
        minus_r = self._put(f"fneg {self.kind} {r}")
        return self._two("fadd", w, self._two("fadd", lost, self._fma(minus_r, t, series)))

    def _horner(self, z: str, coefficients: tuple[float, ...]) -> str:
        found = self._number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            found = self._fma(z, found, self._number(c))
        return found

    def _scaled(self, value: str, factor: float) -> str:
        return self._two("fmul", value, self._number(factor))

    def _store(self, name: str, value: str, quadrant: str) -> None:
        """Store `value`, with its sign changed in quadrants 2 and 3."""
        second = self._put(f"and {self.whole} {quadrant}, {self._integer(2)}")
        sign = self._put(f"shl {self.whole} {second}, {self._integer(62)}")
        bits = self._put(f"bitcast {self.kind} {value} to {self.whole}")
        signed = self._put(f"xor {self.whole} {bits}, {sign}")
        number = self._put(f"bitcast {self.whole} {signed} to {self.kind}")
        self.lines.append(f"  store {self.kind} {number}, ptr {self.pointer(name)}, align 8")

    def _select(self, condition: str, first: str, second: str) -> str:
        return self._put(f"select <{self.width} x i1> {condition}, {self.kind} {first}, {self.kind} {second}")

    def pointer(self, array: str) -> str:
        """The name of the pointer to the current element of an array."""
        return f"%{self.name}.{array}"

    def _fma(self, a: str, b: str, c: str) -> str:
        kind = self.kind
        return self._put(f"call {kind} @llvm.fma.v{self.width}f64({kind} {a}, {kind} {b}, {kind} {c})")

    def _two(self, operation: str, a: str, b: str) -> str:
        return self._put(f"{operation} {self.kind} {a}, {b}")

    def _put(self, text: str) -> str:
        self.count += 1
        name = f"%{self.name}.{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _number(self, value: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"<{', '.join([f'double 0x{bits:016X}'] * self.width)}>"

    def _integer(self, value: int) -> str:
        return f"<{', '.join([f'i64 {value}'] * self.width)}>"
