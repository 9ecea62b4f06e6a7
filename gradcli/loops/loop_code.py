"""The text of a rolled loop in LLVM IR, from which `loop_execution` compiles it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from gradcli.executors.llvm_equations import LOGIC, EquationCode, writers
from gradcli.loops.body_tracing import chosen, frozen
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, powers
from gradcli.primitives.entries.elementwise import trigonometric
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Equation

if TYPE_CHECKING:
    from gradcli.loops.rolled_loop import RolledLoop

# Bound on the equations of a round.
_MOST_EQUATIONS = 5_000

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
        arithmetic.copysign: lambda code, x, y: code.intrinsic("copysign", x, y),
        arithmetic.identity: lambda _code, x: x,
        frozen: lambda _code, x: x,
        arithmetic.zeros_like: lambda code, _x: code.literal(0.0),
        arithmetic.ones_like: lambda code, _x: code.literal(1.0),
        powers.rsqrt: lambda code, x: code.operation("fdiv", code.literal(1.0), code.intrinsic("sqrt", x)),
        exponential.exp2: lambda code, x: code.call("pow", code.literal(2.0), x),
        exponential.sigmoid: lambda code, x: code.sigmoid(x),
        comparisons.maximum: lambda code, x, y: code.selected("ogt", x, y),
        comparisons.minimum: lambda code, x, y: code.selected("olt", x, y),
        exponential.relu: lambda code, x: code.selected("ogt", x, code.literal(0.0)),
        trigonometric.sech_square: lambda code, x: code.sech_square(x),
    }


def writes(primitive: Primitive) -> bool:
    """Return whether `NumberCode` writes an elementwise primitive."""
    plain = (chosen, comparisons.where, conversions.cast, powers.whole_power)
    return (
        primitive in plain
        or primitive in writers()
        or primitive in LOGIC
        or primitive in _writers()
        or (primitive.elementwise and primitive.function in _LIBRARY)
    )


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
        inverse = self.operation("fdiv", self.literal(1.0), self.call("cosh", x))
        return self.operation("fmul", inverse, inverse)

    def computed(self, equation: Equation) -> str:
        if equation.primitive is chosen:
            return super().computed(equation._replace(primitive=comparisons.where))
        if equation.primitive is powers.whole_power and equation.params["n"] != 2:
            return self.call("pow", self.number(equation.inputs[0]), self.literal(float(equation.params["n"])))
        return super().computed(equation)

    def written(self, primitive: Primitive, operands: Sequence[str]) -> str:
        if primitive.elementwise and primitive.function in _LIBRARY:
            return self.call(primitive.function, *operands)
        own = _writers().get(primitive)
        return super().written(primitive, operands) if own is None else own(self, *operands)


def loop_code(loop: RolledLoop, name: str) -> NamedCode | None:
    """The function `name` that computes loops, with the operands of an inner loop of NumPy's ufuncs: the addresses of the
    bounds, the carries and reads, the sequences and the results; and the lengths of their axes, the first of which is not
    read. None where an operation is not written."""
    if loop.has_arrays or len(loop.program.equations) > _MOST_EQUATIONS:
        return None
    writer = _LoopCode(loop, name)
    text = writer.text()
    return None if text is None else NamedCode(text, writer.called, writer.declared)


def single_loop(loop: RolledLoop) -> str:
    """The function for arrays without an axis of loops, which calls the other one with the sizes of one loop."""
    places = [2, *(5 + 3 * j for j in range(len(loop.widths)))]
    size = f"[{6 + 3 * len(loop.widths)} x i64]"
    lines = [f"  %one.{k} = getelementptr i64, ptr %all, i64 {k}\n  store i64 1, ptr %one.{k}" for k in places]
    newline = "\n"
    return f"""
define void @single(ptr %arguments, ptr %sizes, ptr %steps, ptr %data) {{
  %all = alloca {size}
{newline.join(lines)}
  call void @loop(ptr %arguments, ptr %all, ptr %steps, ptr %data)
  ret void
}}
"""


class NamedCode(NamedTuple):
    """The text of a function in LLVM IR, the functions of the C library that it calls, and the declarations that it
    needs."""

    text: str
    called: set[str]
    declared: set[str]


class _LoopCode(NumberCode):
    """The text of a loop in LLVM IR. Each operation rounds as that of Python: none are fused or reordered."""

    def __init__(self, loop: RolledLoop, name: str) -> None:
        super().__init__()
        self.loop, self.function = loop, name

    def text(self) -> str | None:
        """The text; None where an operation is not written."""
        loop = self.loop
        if any(e.output.dtype not in ("float64", "bool") for e in loop.program.equations):
            return None
        self.lines = entry = list[str]()
        begin, end, factor, result, *skipped = self._bounds(4 + len(loop.widths))
        lanes = [self._size(5 + 3 * j) for j in range(len(loop.widths))]
        steps = [self._distances(number, width) for number, width in zip(lanes, loop.widths)]
        distance = self.put(f"mul i64 {factor}, {self.put(f'mul i64 %count, {loop.carries}')}")
        first, last = begin, self.put(f"sub i64 {end}, 1")
        if loop.reverse:
            first, last = last, first
        row = self.put(f"sub i64 {end if loop.reverse else begin}, {result}")
        self.lines = before = list[str]()
        given = self._loaded(self._moved("%starts", "%lane", loop.carries + loop.reads), loop.carries + loop.reads)
        out = self._moved("%found", "%lane", loop.carries)
        self._store(self._moved(out, distance, row), given[: loop.carries])
        own = [self._moved(f"%sequence.{j}", "%lane", step) for j, (_, step) in enumerate(steps)]
        self.lines = top = list[str]()
        rows = [
            self._loaded(
                self._moved(pointer, self.put(f"sub i64 {self.put(f'add i64 %i, {offset}')}, {skip}"), step), width
            )
            for pointer, (step, _), offset, skip, width in zip(own, steps, loop.offsets, skipped, loop.widths)
        ]
        elements = [name for row in rows for name in row]
        self.lines = body = list[str]()
        carries = [f"%carry.{k}" for k in range(loop.carries)]
        self.names = dict(zip(loop.program.inputs, ["%counter", *carries, *given[loop.carries :], *elements]))
        try:
            for equation in loop.program.equations:
                self.names[equation.output] = self.computed(equation)
        except KeyError:
            return None
        results = [self.number(atom) for atom in loop.program.outputs]
        self.lines = bottom = list[str]()
        after = [f"%after.{k}" for k in range(loop.carries)]
        place = self.put(f"sub i64 {self.put(f'add i64 %i, {0 if loop.reverse else 1}')}, {result}")
        self._store(self._moved(out, distance, place), after)
        fill = self._stop(after, out, distance, end, factor, result, last)
        idle = self.literal(1.0) if loop.idle is None else elements[loop.idle]
        newline = "\n"
        arguments = newline.join(
            f"  %argument.{j} = getelementptr ptr, ptr %arguments, i64 {j}\n  {name} = load ptr, ptr %argument.{j}"
            for j, name in enumerate(["%bounds", "%starts", *(f"%sequence.{j}" for j in range(len(own))), "%found"])
        )
        return f"""
define void @{self.function}(ptr %arguments, ptr %sizes, ptr %steps, ptr %data) {{
entry:
{arguments}
  %count.place = getelementptr i64, ptr %sizes, i64 2
  %count = load i64, ptr %count.place
{newline.join(entry)}
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %lane.begin, label %end
lane.begin:
  %lane = phi i64 [ 0, %entry ], [ %lane.next, %lane.end ]
{newline.join(before)}
  br label %round
round:
  %i = phi i64 [ {first}, %lane.begin ], [ %i.next, %next ]
{newline.join(f"  {c} = phi double [ {g}, %lane.begin ], [ {a}, %next ]" for c, g, a in zip(carries, given, after))}
  %place = sitofp i64 %i to double
  %scaled = fmul double %place, {self.literal(loop.step)}
  %counter = fadd double %scaled, {self.literal(loop.first)}
{newline.join(top)}
  %works = fcmp une double {idle}, {self.literal(0.0)}
  br i1 %works, label %body, label %next
body:
{newline.join(body)}
  br label %next
next:
{newline.join(f"  {a} = phi double [ {c}, %round ], [ {r}, %body ]" for a, c, r in zip(after, carries, results))}
{newline.join(bottom)}
  %i.next = add i64 %i, {-1 if loop.reverse else 1}
  br i1 %done, label %{"lane.end" if loop.active is None else "ended"}, label %round
{fill}
lane.end:
  %lane.next = add i64 %lane, 1
  %more = icmp slt i64 %lane.next, %count
  br i1 %more, label %lane.begin, label %end
end:
  ret void
}}
"""

    def _stop(
        self, after: Sequence[str], out: str, distance: str, end: str, factor: str, result: str, last: str
    ) -> str:
        """Write `%done`, whether a round is the last one; returns the blocks after a loop that may end before."""
        bottom = self.lines
        is_last = self.put(f"icmp eq i64 %i, {last}")
        if self.loop.active is None:
            bottom.append(f"  %done = or i1 {is_last}, false")
            return ""
        ended = self.compared("oeq", after[self.loop.active], self.literal(0.0))
        bottom.append(f"  %done = or i1 {is_last}, {ended}")
        self.lines = before = list[str]()
        rows_end = self.put(f"mul i64 {end}, {factor}")
        self.lines = again = list[str]()
        place = self.put(f"sub i64 {self.put('add i64 %rest, 1')}, {result}")
        self._store(self._moved(out, distance, place), after)
        self.lines = bottom
        newline = "\n"
        return f"""ended:
{newline.join(before)}
  br label %rest.test
rest.test:
  %rest = phi i64 [ %i.next, %ended ], [ %rest.next, %rest.round ]
  %rest.more = icmp slt i64 %rest, {rows_end}
  br i1 %rest.more, label %rest.round, label %lane.end
rest.round:
{newline.join(again)}
  %rest.next = add i64 %rest, 1
  br label %rest.test
"""

    def _bounds(self, count: int) -> list[str]:
        """The first of the bounds: whole numbers, which are stored as floats."""
        return [self.put(f"fptosi double {number} to i64") for number in self._loaded("%bounds", count)]

    def _size(self, number: int) -> str:
        """The length of an axis of the arguments."""
        return self.put(f"load i64, ptr {self.put(f'getelementptr i64, ptr %sizes, i64 {number}')}")

    def _distances(self, lanes: str, width: int) -> tuple[str, str]:
        """The distance of the rows of a sequence, and that of the loops, 0 if all read the same."""
        shared = self.put(f"icmp eq i64 {lanes}, 1")
        return self.put(f"mul i64 {lanes}, {width}"), self.put(f"select i1 {shared}, i64 0, i64 {width}")

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
