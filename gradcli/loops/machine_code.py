"""A rolled loop as machine code, where `llvmlite` is installed."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli.executors.llvm_ufuncs import MachineCode, compile_loop
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers, special, trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Variable
from gradcli.timing import phase

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Operations that a loop has to compute before it is compiled: Python computes as many in the time of compiling, which
# is 50 ms, most of it for loading the compiler.
_WORTH_COMPILING = 1_500_000
# Bound on the equations of a round; compiling takes 0.1 ms for each.
_MOST_EQUATIONS = 5_000


class _State:
    """The operations that a loop has computed without machine code, and its code, if it was compiled."""

    def __init__(self) -> None:
        self.computed = 0
        self.tried = False
        self.code: MachineCode | None = None
        self.function: Callable[..., None] | None = None


_states: WeakKeyDictionary[RolledLoop, _State] = WeakKeyDictionary()
_lock = Lock()


def run(loop: RolledLoop, starts: Any, sequences: Sequence[Any], found: Any, *, last: bool) -> bool:
    """Compute the carries of all rounds of independent loops by machine code; returns False where there is none.

    `starts` has the carries and reads of each loop, of shape [loops, carries + reads], `sequences` are of shape [rows,
    loops or 1, width], and `found`, of shape [rounds + 1, loops, carries], or [1, loops, carries] for the `last` carries,
    receives the results. All are contiguous.
    """
    state = _states.get(loop)
    if state is None:
        state = _states.setdefault(loop, _State())
    if state.function is None:
        state.computed += loop.cost * len(starts)
        if state.tried or state.computed < _WORTH_COMPILING:
            return False
        with _lock:
            if not state.tried:
                _compile(loop, state)
                state.tried = True
        if state.function is None:
            return False
    pointers = (ctypes.c_void_p * max(1, len(sequences)))(*(s.ctypes.data for s in sequences))
    lanes = (ctypes.c_int64 * max(1, len(sequences)))(*(s.shape[1] for s in sequences))
    # With a distance of 0 each row of the results is written over the one before.
    distance = 0 if last else found.shape[1] * found.shape[2]
    state.function(len(starts), distance, starts.ctypes.data, found.ctypes.data, pointers, lanes)
    return True


@phase("compile")
def _compile(loop: RolledLoop, state: _State) -> None:
    if len(loop.program.equations) > _MOST_EQUATIONS:
        return
    writer = _LoopCode(loop)
    text = writer.text()
    if text is None:
        return
    state.code = compile_loop("loop", text, sorted(writer.called))
    if state.code is not None:
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 4)
        state.function = prototype(state.code.address)


_COMPARISONS = {
    comparisons.less: "olt", comparisons.less_equal: "ole", comparisons.greater: "ogt",
    comparisons.greater_equal: "oge", comparisons.equal: "oeq", comparisons.not_equal: "une",
}  # fmt: skip
_LOGIC = {comparisons.logical_and: "and", comparisons.logical_or: "or"}
_ARITHMETIC = {
    arithmetic.add: "fadd", arithmetic.subtract: "fsub", arithmetic.multiply: "fmul", arithmetic.divide: "fdiv",
}  # fmt: skip
_INTRINSICS = {arithmetic.absolute: "fabs", powers.sqrt: "sqrt"}
# Functions of the C library whose results are those of Python's `math`.
_LIBRARY = frozenset(
    [
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "atan2",
        "hypot",
        "erf",
        "erfc",
        "pow",
        "floor",
        "ceil",
        "trunc",
    ]
)


@cache
def _writers() -> Mapping[Primitive, Callable[..., str]]:
    """The primitives that are more than one instruction, as functions of the writer and the names of their operands."""
    one, zero = _literal(1.0), _literal(0.0)
    return {
        arithmetic.identity: lambda _w, x: x,
        arithmetic.zeros_like: lambda _w, _x: zero,
        arithmetic.ones_like: lambda _w, _x: one,
        arithmetic.negative: lambda w, x: w.put(f"fneg double {x}"),
        arithmetic.reciprocal: lambda w, x: w.put(f"fdiv double {one}, {x}"),
        powers.rsqrt: lambda w, x: w.put(f"fdiv double {one}, {w.intrinsic('sqrt', x)}"),
        exponential.exp2: lambda w, x: w.call("pow", _literal(2.0), x),
        exponential.sigmoid: lambda w, x: w.sigmoid(x),
        comparisons.maximum: lambda w, x, y: w.selected("ogt", x, y),
        comparisons.minimum: lambda w, x, y: w.selected("olt", x, y),
        special.relu: lambda w, x: w.selected("ogt", x, zero),
        trigonometric.sech_square: lambda w, x: w.sech_square(x),
    }


def _literal(number: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


class _LoopCode:
    """The text of the loop in LLVM IR. Each operation rounds as that of Python: none are fused or reordered."""

    def __init__(self, loop: RolledLoop) -> None:
        self.loop = loop
        self.called: dict[str, int] = {}
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.names: dict[Variable, str] = {}

    def text(self) -> str | None:
        """The text; None where an operation is not written."""
        loop = self.loop
        inputs = loop.program.inputs
        carries, reads = loop.carries, loop.reads
        width = carries + reads
        given = [f"%given.{k}" for k in range(width)]
        before = [
            line for k in range(width)
            for line in (
                f"  %given.at.{k} = getelementptr double, ptr %start, i64 {k}",
                f"  %given.{k} = load double, ptr %given.at.{k}",
            )
        ]  # fmt: skip
        sequences = []
        for j, columns in enumerate(loop.widths):
            sequences += [
                f"  %seq.slot.{j} = getelementptr ptr, ptr %sequences, i64 {j}",
                f"  %seq.{j} = load ptr, ptr %seq.slot.{j}",
                f"  %seq.lanes.at.{j} = getelementptr i64, ptr %lanes, i64 {j}",
                f"  %seq.lanes.{j} = load i64, ptr %seq.lanes.at.{j}",
                f"  %seq.row.{j} = mul i64 %seq.lanes.{j}, {columns}",
                f"  %seq.shared.{j} = icmp eq i64 %seq.lanes.{j}, 1",
                f"  %seq.step.{j} = select i1 %seq.shared.{j}, i64 0, i64 {columns}",
            ]
        own = []
        for j in range(len(loop.widths)):
            own += [
                f"  %own.skip.{j} = mul i64 %lane, %seq.step.{j}",
                f"  %own.{j} = getelementptr double, ptr %seq.{j}, i64 %own.skip.{j}",
            ]
        self.names[inputs[0]] = "%counter"
        for k, variable in enumerate(inputs[1 : 1 + width]):
            self.names[variable] = f"%carry.{k}" if k < carries else given[k]
        rest = iter(inputs[1 + width :])
        for j, columns in enumerate(loop.widths):
            row = self.put(f"add i64 %i, {loop.offsets[j]}")
            skip = self.put(f"mul i64 {row}, %seq.row.{j}")
            base = self.put(f"getelementptr double, ptr %own.{j}, i64 {skip}")
            for k in range(columns):
                at = self.put(f"getelementptr double, ptr {base}, i64 {k}")
                self.names[next(rest)] = self.put(f"load double, ptr {at}")
        for equation in loop.program.equations:
            written = self._computed(equation)
            if written is None:
                return None
            self.names[equation.output] = written
        results = [self._number(a) for a in loop.program.outputs]
        stored = [
            line for k, name in enumerate(results)
            for line in (
                f"  %to.{k} = getelementptr double, ptr %after, i64 {k}",
                f"  store double {name}, ptr %to.{k}",
            )
        ]  # fmt: skip
        phis = [
            f"  %carry.{k} = phi double [ {given[k]}, %lane.begin ], [ {results[k]}, %round ]" for k in range(carries)
        ]
        first = loop.rounds if loop.reverse else 0
        stores = [
            line for k in range(carries)
            for line in (
                f"  %first.{k} = getelementptr double, ptr %first, i64 {k}",
                f"  store double {given[k]}, ptr %first.{k}",
            )
        ]  # fmt: skip
        begin, last, step = (loop.rounds - 1, 0, -1) if loop.reverse else (0, loop.rounds - 1, 1)
        newline = "\n"
        return f"""
{newline.join(sorted(self.declared))}
define void @loop(i64 %count, i64 %found.row, ptr %starts, ptr %found, ptr %sequences, ptr %lanes) {{
entry:
{newline.join(sequences)}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %lane.begin, label %end
lane.begin:
  %lane = phi i64 [ 0, %entry ], [ %lane.next, %lane.end ]
  %start.skip = mul i64 %lane, {width}
  %start = getelementptr double, ptr %starts, i64 %start.skip
{newline.join(before)}
{newline.join(own)}
  %lane.skip = mul i64 %lane, {carries}
  %out = getelementptr double, ptr %found, i64 %lane.skip
  %first.skip = mul i64 %found.row, {first}
  %first = getelementptr double, ptr %out, i64 %first.skip
{newline.join(stores)}
  br label %round
round:
  %i = phi i64 [ {begin}, %lane.begin ], [ %i.next, %round ]
{newline.join(phis)}
  %place = sitofp i64 %i to double
  %scaled = fmul double %place, {_literal(loop.step)}
  %counter = fadd double %scaled, {_literal(loop.first)}
{newline.join(self.lines)}
  %after.row = add i64 %i, {0 if loop.reverse else 1}
  %after.skip = mul i64 %after.row, %found.row
  %after = getelementptr double, ptr %out, i64 %after.skip
{newline.join(stored)}
  %i.next = add i64 %i, {step}
  %done = icmp eq i64 %i, {last}
  br i1 %done, label %lane.end, label %round
lane.end:
  %lane.next = add i64 %lane, 1
  %more = icmp slt i64 %lane.next, %count
  br i1 %more, label %lane.begin, label %end
end:
  ret void
}}
"""

    def put(self, instruction: str) -> str:
        """Write an instruction, and return the name of its result."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def intrinsic(self, function: str, *operands: str) -> str:
        self.declared.add(f"declare double @llvm.{function}.f64({', '.join(['double'] * len(operands))})")
        return self.put(f"call double @llvm.{function}.f64({', '.join(f'double {o}' for o in operands)})")

    def call(self, function: str, *operands: str) -> str:
        """Call a function of the C library."""
        self.called[function] = len(operands)
        self.declared.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        return self.put(f"call double @{function}({', '.join(f'double {o}' for o in operands)})")

    def compared(self, order: str, x: str, y: str) -> str:
        return self.put(f"fcmp {order} double {x}, {y}")

    def chosen(self, condition: str, x: str, y: str, kind: str = "double") -> str:
        return self.put(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def selected(self, order: str, x: str, y: str) -> str:
        """`x` if it compares so with `y` or is nan, else `y`."""
        first = self.compared(order, x, y)
        either = self.put(f"or i1 {first}, {self.compared('uno', x, x)}")
        return self.chosen(either, x, y)

    def sigmoid(self, x: str) -> str:
        """1/(1 + exp(-x)), and exp(x) where exp(-x) overflows."""
        inverse = self.call("exp", self.put(f"fneg double {x}"))
        usual = self.put(f"fdiv double {_literal(1.0)}, {self.put(f'fadd double {_literal(1.0)}, {inverse}')}")
        overflows = self.compared("oeq", inverse, _literal(float("inf")))
        return self.chosen(overflows, self.call("exp", x), usual)

    def sech_square(self, x: str) -> str:
        t = self.call("exp", self.put(f"fmul double {self.intrinsic('fabs', x)}, {_literal(-2.0)}"))
        below = self.put(f"fadd double {_literal(1.0)}, {t}")
        square = self.put(f"fmul double {below}, {below}")
        return self.put(f"fdiv double {self.put(f'fmul double {t}, {_literal(4.0)}')}, {square}")

    def _computed(self, equation: Equation) -> str | None:
        primitive, inputs, output = equation.primitive, equation.inputs, equation.output
        if primitive in _LOGIC:
            return self.put(f"{_LOGIC[primitive]} i1 {self._truth(inputs[0])}, {self._truth(inputs[1])}")
        if primitive is comparisons.logical_not:
            return self.put(f"xor i1 {self._truth(inputs[0])}, true")
        if primitive is conversions.cast:
            return {"bool": self._truth, "float64": self._number}.get(output.dtype, lambda _a: None)(inputs[0])
        if primitive is comparisons.where:
            read, kind = (self._truth, "i1") if output.dtype == "bool" else (self._number, "double")
            return self.chosen(self._truth(inputs[0]), read(inputs[1]), read(inputs[2]), kind)
        operands = [self._number(a) for a in inputs]
        if primitive in _ARITHMETIC:
            return self.put(f"{_ARITHMETIC[primitive]} double {', '.join(operands)}")
        if primitive in _COMPARISONS:
            return self.compared(_COMPARISONS[primitive], *operands)
        if primitive is powers.whole_power:
            n = equation.params["n"]
            return (
                self.put(f"fmul double {operands[0]}, {operands[0]}")
                if n == 2
                else self.call("pow", operands[0], _literal(float(n)))
            )
        if primitive in _INTRINSICS:
            return self.intrinsic(_INTRINSICS[primitive], *operands)
        writer = _writers().get(primitive)
        if writer is not None:
            return writer(self, *operands)
        if primitive.elementwise and primitive.function in _LIBRARY and not equation.params:
            return self.call(primitive.function, *operands)
        return None

    def _number(self, atom: Atom) -> str:
        if not isinstance(atom, Variable):
            return _literal(float(atom))
        name = self.names[atom]
        return name if atom.dtype == "float64" else self.put(f"uitofp i1 {name} to double")

    def _truth(self, atom: Atom) -> str:
        if not isinstance(atom, Variable):
            return "true" if atom else "false"
        name = self.names[atom]
        return name if atom.dtype == "bool" else self.compared("une", name, _literal(0.0))
