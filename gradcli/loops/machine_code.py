"""A rolled loop as machine code, where `llvmlite` is installed."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli.executors.llvm_equations import EquationCode
from gradcli.executors.llvm_ufuncs import MachineCode, compile_loop
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers, special, trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation
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
    loops or 1, width], and `found`, of shape [rounds + 1, loops, carries], or [1, loops, carries] for the `last`
    carries, receives the results. All are contiguous. For a single loop the axis of loops may be absent.
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
    count = len(starts)
    pointers = (ctypes.c_void_p * max(1, len(sequences)))(*map(_address, sequences))
    lanes = (ctypes.c_int64 * max(1, len(sequences)))(*(s.shape[1] if s.ndim == 3 else 1 for s in sequences))
    # With a distance of 0 each row of the results is written over the one before.
    distance = 0 if last else count * loop.carries
    state.function(count, distance, _address(starts), _address(found), pointers, lanes)
    return True


def _address(array: Any) -> int:
    # A third of the time of `array.ctypes.data`.
    address: int = array.__array_interface__["data"][0]
    return address


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


# Functions of the C library that Python's `math` calls; its `hypot` may differ by a rounding.
_LIBRARY = frozenset(
    [
        "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
        "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot", "erf", "erfc", "pow", "floor", "ceil", "trunc",
    ]
)  # fmt: skip


@cache
def _writers() -> Mapping[Primitive, Callable[..., str]]:
    """The writers of further primitives, as functions of the code and the names of their operands."""
    return {
        arithmetic.identity: lambda _code, x: x,
        arithmetic.zeros_like: lambda code, _x: code.literal(0.0),
        arithmetic.ones_like: lambda code, _x: code.literal(1.0),
        powers.rsqrt: lambda code, x: code.operation("fdiv", code.literal(1.0), code.intrinsic("sqrt", x)),
        exponential.exp2: lambda code, x: code.call("pow", code.literal(2.0), x),
        exponential.sigmoid: lambda code, x: code.sigmoid(x),
        comparisons.maximum: lambda code, x, y: code.selected("ogt", x, y),
        comparisons.minimum: lambda code, x, y: code.selected("olt", x, y),
        special.relu: lambda code, x: code.selected("ogt", x, code.literal(0.0)),
        trigonometric.sech_square: lambda code, x: code.sech_square(x),
    }


class NumberCode(EquationCode):
    """The instructions of equations of numbers, which round as those of Python.

    `called` are the functions of the C library that they call.
    """

    def __init__(self) -> None:
        super().__init__("", None)
        self.called: set[str] = set()

    def call(self, function: str, *operands: str) -> str:
        """Call a function of the C library."""
        self.called.add(function)
        self.declared.add(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        return self.put(f"call double @{function}({', '.join(f'double {o}' for o in operands)})")

    def selected(self, order: str, x: str, y: str) -> str:
        """`x` if it compares so with `y` or is nan, else `y`."""
        either = self.put(f"or i1 {self.compared(order, x, y)}, {self.compared('uno', x, x)}")
        return self.chosen(either, x, y)

    def sigmoid(self, x: str) -> str:
        """1/(1 + exp(-x)), and exp(x) where exp(-x) overflows."""
        inverse = self.call("exp", self.operation("fneg", x))
        usual = self.operation("fdiv", self.literal(1.0), self.operation("fadd", self.literal(1.0), inverse))
        overflows = self.compared("oeq", inverse, self.literal(math.inf))
        return self.chosen(overflows, self.call("exp", x), usual)

    def sech_square(self, x: str) -> str:
        t = self.call("exp", self.operation("fmul", self.intrinsic("fabs", x), self.literal(-2.0)))
        below = self.operation("fadd", self.literal(1.0), t)
        return self.operation(
            "fdiv", self.operation("fmul", t, self.literal(4.0)), self.operation("fmul", below, below)
        )

    def computed(self, equation: Equation) -> str:
        if equation.primitive is powers.whole_power and equation.params["n"] != 2:
            return self.call("pow", self.number(equation.inputs[0]), self.literal(float(equation.params["n"])))
        return super().computed(equation)

    def written(self, primitive: Primitive, operands: Sequence[str]) -> str:
        if primitive.elementwise and primitive.function in _LIBRARY:
            return self.call(primitive.function, *operands)
        own = _writers().get(primitive)
        return super().written(primitive, operands) if own is None else own(self, *operands)


class _LoopCode(NumberCode):
    """The text of a loop in LLVM IR. Each operation rounds as that of Python: none are fused or reordered."""

    def __init__(self, loop: RolledLoop) -> None:
        super().__init__()
        self.loop = loop

    def text(self) -> str | None:
        """The text; None where an operation is not written."""
        loop = self.loop
        if any(e.output.dtype not in ("float64", "bool") for e in loop.program.equations):
            return None
        carries = range(loop.carries)
        entry: list[str] = []
        self.lines = entry
        sequences = [self._sequence(j, width) for j, width in enumerate(loop.widths)]
        before: list[str] = []
        self.lines = before
        given = self._loaded(self._moved("%starts", "%lane", loop.carries + loop.reads), loop.carries + loop.reads)
        out = self._moved("%found", "%lane", loop.carries)
        self._store(self._moved(out, "%found.row", loop.rounds if loop.reverse else 0), given[: loop.carries])
        own = [self._moved(pointer, "%lane", step) for pointer, _, step in sequences]
        body: list[str] = []
        self.lines = body
        rows = [
            self._loaded(self._moved(pointer, self.put(f"add i64 %i, {offset}"), row), width)
            for pointer, (_, row, _), offset, width in zip(own, sequences, loop.offsets, loop.widths)
        ]
        before_round = [
            *(f"%carry.{k}" for k in carries),
            *given[loop.carries :],
            *(name for row in rows for name in row),
        ]
        self.names = dict(zip(loop.program.inputs, ["%counter", *before_round]))
        try:
            for equation in loop.program.equations:
                self.names[equation.output] = self.computed(equation)
        except KeyError:
            return None
        results = [self.number(atom) for atom in loop.program.outputs]
        after = self.put(f"add i64 %i, {0 if loop.reverse else 1}")
        self._store(self._moved(out, after, "%found.row"), results)
        first, last, step = (loop.rounds - 1, 0, -1) if loop.reverse else (0, loop.rounds - 1, 1)
        phis = [f"  %carry.{k} = phi double [ {given[k]}, %lane.begin ], [ {results[k]}, %round ]" for k in carries]
        newline = "\n"
        return f"""
{newline.join(sorted(self.declared))}
define void @loop(i64 %count, i64 %found.row, ptr %starts, ptr %found, ptr %sequences, ptr %lanes) {{
entry:
{newline.join(entry)}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %lane.begin, label %end
lane.begin:
  %lane = phi i64 [ 0, %entry ], [ %lane.next, %lane.end ]
{newline.join(before)}
  br label %round
round:
  %i = phi i64 [ {first}, %lane.begin ], [ %i.next, %round ]
{newline.join(phis)}
  %place = sitofp i64 %i to double
  %scaled = fmul double %place, {self.literal(loop.step)}
  %counter = fadd double %scaled, {self.literal(loop.first)}
{newline.join(body)}
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

    def _sequence(self, number: int, width: int) -> tuple[str, str, str]:
        """The pointer to a sequence, the distance of its rows, and that of the loops, 0 if all read the same."""
        pointer = self.put(f"load ptr, ptr {self.put(f'getelementptr ptr, ptr %sequences, i64 {number}')}")
        lanes = self.put(f"load i64, ptr {self.put(f'getelementptr i64, ptr %lanes, i64 {number}')}")
        shared = self.put(f"icmp eq i64 {lanes}, 1")
        return pointer, self.put(f"mul i64 {lanes}, {width}"), self.put(f"select i1 {shared}, i64 0, i64 {width}")

    def _moved(self, pointer: str, count: int | str, distance: int | str) -> str:
        """A pointer to numbers, moved `count` times by a distance."""
        return self.put(f"getelementptr double, ptr {pointer}, i64 {self.put(f'mul i64 {count}, {distance}')}")

    def _loaded(self, pointer: str, count: int) -> list[str]:
        """Consecutive numbers."""
        places = [self.put(f"getelementptr double, ptr {pointer}, i64 {k}") for k in range(count)]
        return [self.put(f"load double, ptr {place}") for place in places]

    def _store(self, pointer: str, numbers: Sequence[str]) -> None:
        for k, number in enumerate(numbers):
            place = self.put(f"getelementptr double, ptr {pointer}, i64 {k}")
            self.lines.append(f"  store double {number}, ptr {place}")
