"""Pairs of functions of float64 arrays, vectorised and compiled for this processor by LLVM.

NumPy computes some functions one number at a time, and two of them share most of their work, as a sine and a cosine do.
If `llvmlite` is installed, a loop is compiled that processes eight numbers at a time, and computes both functions.
Numbers beyond a limit are passed to the C library one by one, so that the result for a number depends neither on its
position nor on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Thread
from typing import Any

from gradcli.executors import llvm_ufuncs
from gradcli.executors.llvm_equations import VectorCode
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation, Variable

# Called as function(x, first, second), it writes both results for a float64 array into two arrays that do not overlap it.
Together = Callable[[Any, Any, Any], Any]

_WIDTH = 8
_OPERANDS = ("x", "first", "second")


class PairCode(VectorCode):
    """The instructions of a pair of functions for a vector of numbers, or for a single one."""

    def __init__(self, name: str, width: int | None) -> None:
        super().__init__(name, width)
        self.whole = self.vector("i64")

    def integer(self, value: int) -> str:
        return self.filled(f"i64 {value}")

    def bits(self, number: str) -> str:
        return self.put(f"bitcast {self.kind} {number} to {self.whole}")

    def of_bits(self, bits: str) -> str:
        return self.put(f"bitcast {self.whole} {bits} to {self.kind}")

    def scaled(self, value: str, factor: float) -> str:
        return self.operation("fmul", value, self.literal(factor))

    def fma(self, x: str, y: str, z: str) -> str:
        """x*y + z with one rounding."""
        return self.intrinsic("fma", x, y, z)

    def horner(self, x: str, coefficients: Sequence[float]) -> str:
        """The polynomial of `x` whose `coefficients` are given from the constant one on."""
        found = self.literal(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            found = self.fma(x, found, self.literal(c))
        return found

    def sum_and_error(self, large: str, small: str) -> tuple[str, str]:
        """The sum of two numbers, the first of which is no smaller, and its rounding error (Dekker's Fast2Sum)."""
        total = self.operation("fadd", large, small)
        return total, self.operation("fsub", small, self.operation("fsub", total, large))

    def called(self, function: str, x: str) -> str:
        """Call a function of the C library; only in code for single numbers."""
        self.declared.add(f"declare double @{function}(double)")
        return self.put(f"call double @{function}(double {x})")

    def pointer(self, array: str) -> str:
        """The name of the pointer to the current element of an array."""
        return f"%{self.name}.{array}"

    def taken(self, instructions: Callable[[], object]) -> str:
        """The text of the instructions that a function writes."""
        self.lines = []
        instructions()
        return "\n".join(self.lines)


# From the name of a number, the names of both results.
Writer = Callable[[PairCode, str], tuple[str, str]]


class FunctionPair:
    """Two functions, `primitives`, that the loop `name` computes together.

    `near` writes the instructions for numbers of magnitude up to `limit`, and `far` those for a single number beyond it,
    which call the functions `symbols` of the C library.
    """

    def __init__(
        self,
        name: str,
        primitives: tuple[Primitive, Primitive],
        *,
        limit: float,
        near: Writer,
        far: Writer,
        symbols: Sequence[str],
    ) -> None:
        self.name = name
        self.primitives = primitives
        self.limit = limit
        self.near = near
        self.far = far
        self.symbols = symbols

    def ready(self) -> Together | None:
        """The compiled function, if it exists already; else None."""
        return self.compiled() if "_loop" in vars(self) else None

    def compiled(self) -> Together | None:
        """The function as a NumPy ufunc, compiled at the first call; None without `llvmlite`."""
        with llvm_ufuncs.lock:
            loop = self._loop
        return None if loop is None else loop.ufunc

    def computes(self, equation: Equation) -> bool:
        """Return whether an equation is one of the functions, and can be computed together with the other."""
        operand = equation.inputs[0] if equation.primitive in self.primitives else None
        return isinstance(operand, Variable) and operand.dtype == "float64" and operand.shape != ()

    @cached_property
    def code(self) -> llvm_ufuncs.MachineCode | None:
        """The machine code, which is compiled without NumPy. To be read while `llvm_ufuncs.lock` is held."""
        return llvm_ufuncs.compile_loop(self.name, _loop_text(self), self.symbols)

    @cached_property
    def _loop(self) -> llvm_ufuncs.Loop | None:
        return llvm_ufuncs.as_ufunc(self.code, ["float64"], ["float64"] * 2)


def compile_in_background(pairs: Sequence[FunctionPair]) -> None:
    """Compile the functions in a background thread.

    The thread does not touch NumPy: if two threads import parts of it concurrently, one may see a partially initialised
    module.
    """

    def compile() -> None:
        for pair in pairs:
            with llvm_ufuncs.lock:
                _ = pair.code

    if pairs:
        # Not a daemon thread, which could still be inside LLVM while the process shuts it down.
        Thread(target=compile, name="gradcli-function-pairs").start()


# --- the text of a function and of a loop


class FunctionCode(NamedTuple):
    """The name of a function in LLVM IR, with the texts that declare and define it."""

    name: str
    texts: frozenset[str]


def function_code(pair: FunctionPair, primitive: Primitive, width: int | None) -> FunctionCode:
    """One function of a pair, of a vector of `width` numbers or of a single one, for code that calls it."""
    place = pair.primitives.index(primitive)
    near, far = PairCode("near", width), PairCode("far", None)
    beyond = near.compared("ogt", near.intrinsic("fabs", "%x"), near.literal(pair.limit))
    found = pair.near(near, "%x")[place]
    any_beyond, result = beyond, found
    if width is None:
        result = pair.far(far, "%x")[place]
    else:
        reduce = f"@llvm.vector.reduce.or.v{width}i1"
        near.declared.add(f"declare i1 {reduce}({near.truths})")
        any_beyond = near.put(f"call i1 {reduce}({near.truths} {beyond})")
        for lane in range(width):
            number = far.put(f"extractelement {near.kind} %x, i64 {lane}")
            is_beyond = far.put(f"extractelement {near.truths} {beyond}, i64 {lane}")
            usual = far.put(f"extractelement {near.kind} {found}, i64 {lane}")
            own = far.chosen(is_beyond, pair.far(far, number)[place], usual)
            result = far.put(f"insertelement {near.kind} {result}, double {own}, i64 {lane}")
    name = f"{pair.name}.{place}.{width or 1}"
    text = f"""define internal {near.kind} @{name}({near.kind} %x) {{
{_joined(near.lines)}
  br i1 {any_beyond}, label %far, label %near
near:
  ret {near.kind} {found}
far:
{_joined(far.lines)}
  ret {near.kind} {result}
}}"""
    return FunctionCode(name, frozenset([*near.declared, *far.declared, text]))


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines)


def _loop_text(pair: FunctionPair) -> str:
    """The loop in LLVM IR, for eight numbers at a time if the arrays are contiguous.

    The remaining numbers, and groups of eight with one beyond the limit, are computed one by one.
    """
    wide, narrow, far = PairCode("wide", _WIDTH), PairCode("narrow", None), PairCode("far", None)
    wide_start, wide_beyond = _loaded(wide, pair.limit)
    wide_end = _stored(wide, wide, pair.near)
    narrow_start, narrow_beyond = _loaded(narrow, pair.limit)
    narrow_end, far_end = _stored(narrow, narrow, pair.near), _stored(far, narrow, pair.far)
    declarations = "\n".join(sorted(wide.declared | narrow.declared | far.declared))
    return f"""
{declarations}
declare i1 @llvm.vector.reduce.or.v{_WIDTH}i1(<{_WIDTH} x i1>)
define void @{pair.name}(ptr %arrays, ptr %sizes, ptr %steps, ptr %data) {{
start:
  %n = load i64, ptr %sizes
{_pick("ptr", "arrays", "")}
{_pick("i64", "steps", "step.")}
  %dense.x = icmp eq i64 %step.x, 8
  %dense.first = icmp eq i64 %step.first, 8
  %dense.second = icmp eq i64 %step.second, 8
  %dense.both = and i1 %dense.first, %dense.second
  %dense = and i1 %dense.x, %dense.both
  %last = sub i64 %n, {_WIDTH - 1}
  %wide.end = select i1 %dense, i64 %last, i64 0
  br label %test
test:
  %wide.i = phi i64 [ 0, %start ], [ %wide.next, %wide.store ], [ %until, %narrow.done ]
  %wide.next = add i64 %wide.i, {_WIDTH}
  %wide.more = icmp slt i64 %wide.i, %wide.end
  br i1 %wide.more, label %wide, label %rest
wide:
{wide_start}
  %wide.any = call i1 @llvm.vector.reduce.or.v{_WIDTH}i1({wide.truths} {wide_beyond})
  br i1 %wide.any, label %narrow.start, label %wide.store
wide.store:
{wide_end}
  br label %test
rest:
  %more = icmp slt i64 %wide.i, %n
  br i1 %more, label %narrow.start, label %end
narrow.start:
  %until = phi i64 [ %wide.next, %wide ], [ %n, %rest ]
  br label %narrow
narrow:
  %narrow.i = phi i64 [ %wide.i, %narrow.start ], [ %narrow.next, %narrow.end ]
{narrow_start}
  br i1 {narrow_beyond}, label %far, label %narrow.store
narrow.store:
{narrow_end}
  br label %narrow.end
far:
{far_end}
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


def _loaded(code: PairCode, limit: float) -> tuple[str, str]:
    """Instructions that find the current elements and load the operand, and the name of whether it is beyond `limit`."""
    found = ""

    def write() -> None:
        nonlocal found
        for array in _OPERANDS:
            offset = code.put(f"mul i64 %{code.name}.i, %step.{array}")
            code.lines.append(f"  {code.pointer(array)} = getelementptr i8, ptr %{array}, i64 {offset}")
        code.lines.append(f"  %{code.name}.operand = load {code.kind}, ptr {code.pointer('x')}, align 8")
        found = code.compared("ogt", code.intrinsic("fabs", f"%{code.name}.operand"), code.literal(limit))

    return code.taken(write), found


def _stored(code: PairCode, elements: PairCode, write: Writer) -> str:
    """Instructions that compute both results from the operand that `elements` loaded, and store them."""

    def store() -> None:
        results = write(code, f"%{elements.name}.operand")
        for array, result in zip(_OPERANDS[1:], results):
            code.lines.append(f"  store {code.kind} {result}, ptr {elements.pointer(array)}, align 8")

    return code.taken(store)
