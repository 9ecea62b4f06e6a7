"""Write elementwise equations as one loop in LLVM IR.

Each primitive is one machine operation with the same rounding as in NumPy, so that a loop gives exactly the results of
NumPy's functions called one after the other, except for the signs of nan. No operations are contracted into fused ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradcli import arrays
from gradcli.executors.llvm_equations import LOGIC, EquationCode, writers
from gradcli.primitives import conversions
from gradcli.primitives.entries import comparisons, powers
from gradcli.program.ir import Atom, Equation, Variable

# The number of elements that are computed at a time if the arrays are contiguous.
_WIDTH = 8
_SIZES = {"float64": 8, "bool": 1}
_IN_MEMORY = {"float64": "double", "bool": "i8"}


def takes(equation: Equation) -> bool:
    """Return whether an equation can be part of a loop."""
    atoms = (*equation.inputs, equation.output)
    if not equation.output.shape or not all(map(_is_taken, atoms)):
        return False
    if any(isinstance(a, Variable) and a.shape not in ((), equation.output.shape) for a in equation.inputs):
        return False
    if equation.primitive is powers.whole_power:
        return bool(equation.params["n"] == 2)
    return equation.primitive in (*writers(), *LOGIC, comparisons.where, conversions.cast)


def _is_taken(atom: Atom) -> bool:
    return atom.dtype in _SIZES if isinstance(atom, Variable) else type(atom) in arrays.PYTHON_NUMBERS


def text(name: str, equations: Sequence[Equation], inputs: Sequence[Variable], outputs: Sequence[Variable]) -> str:
    """The IR of the function `name`, a ufunc inner loop that reads `inputs` and writes `outputs`, in this order.

    If all arrays are contiguous it processes eight elements at a time, and the remaining ones singly. 0-d inputs are
    read once.
    """
    operands = [*inputs, *outputs]
    wide = _LoopBody("wide", _WIDTH, equations, inputs, outputs)
    narrow = _LoopBody("narrow", 1, equations, inputs, outputs)
    dense = "true"
    lines = []
    for place, variable in enumerate(operands):
        lines += [
            f"  %at.{place} = getelementptr ptr, ptr %arrays, i64 {place}",
            f"  %array.{place} = load ptr, ptr %at.{place}",
            f"  %step.at.{place} = getelementptr i64, ptr %steps, i64 {place}",
            f"  %step.{place} = load i64, ptr %step.at.{place}",
        ]
        if variable.shape:
            lines += [
                f"  %near.{place} = icmp eq i64 %step.{place}, {_SIZES[variable.dtype]}",
                f"  %dense.{place} = and i1 {dense}, %near.{place}",
            ]
            dense = f"%dense.{place}"
    newline = "\n"
    return f"""
{newline.join(sorted({*wide.declared, *narrow.declared}))}
define void @{name}(ptr %arrays, ptr %sizes, ptr %steps, ptr %data) {{
start:
  %n = load i64, ptr %sizes
{newline.join(lines)}
{newline.join(wide.before)}
{newline.join(narrow.before)}
  %last = sub i64 %n, {_WIDTH - 1}
  %wide.end = select i1 {dense}, i64 %last, i64 0
  br label %wide.test
wide.test:
  %wide.i = phi i64 [ 0, %start ], [ %wide.next, %wide ]
  %wide.more = icmp slt i64 %wide.i, %wide.end
  br i1 %wide.more, label %wide, label %narrow.test
wide:
{newline.join(wide.lines)}
  %wide.next = add i64 %wide.i, {_WIDTH}
  br label %wide.test
narrow.test:
  %narrow.i = phi i64 [ %wide.i, %wide.test ], [ %narrow.next, %narrow ]
  %narrow.more = icmp slt i64 %narrow.i, %n
  br i1 %narrow.more, label %narrow, label %end
narrow:
{newline.join(narrow.lines)}
  %narrow.next = add i64 %narrow.i, 1
  br label %narrow.test
end:
  ret void
}}
"""


class _LoopBody(EquationCode):
    """One iteration of the loop, for `width` elements, with a name for every intermediate result."""

    def __init__(
        self,
        name: str,
        width: int,
        equations: Sequence[Equation],
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
    ) -> None:
        super().__init__(name, width)
        # Instructions that are executed once, before the loop.
        self.before: list[str] = []
        for place, variable in enumerate(inputs):
            self.names[variable] = self._loaded(place, variable) if variable.shape else self._spread(place, variable)
        for equation in equations:
            self.names[equation.output] = self.computed(equation)
        for place, variable in enumerate(outputs, len(inputs)):
            self._store(place, variable)

    def _loaded(self, place: int, variable: Variable) -> str:
        pointer, memory = self._pointer(place), self._memory(variable)
        loaded = self.put(f"load {memory}, ptr {pointer}, align {_SIZES[variable.dtype]}")
        return loaded if variable.dtype == "float64" else self._from_bytes(loaded)

    def _spread(self, place: int, variable: Variable) -> str:
        """A 0-d operand, broadcast to all elements before the loop."""
        within, self.lines = self.lines, self.before
        memory, element = self._memory(variable), _IN_MEMORY[variable.dtype]
        one = self.put(f"load {element}, ptr %array.{place}")
        first = self.put(f"insertelement {memory} undef, {element} {one}, i64 0")
        spread = self.put(f"shufflevector {memory} {first}, {memory} undef, {self.vector('i32')} zeroinitializer")
        found = spread if variable.dtype == "float64" else self._from_bytes(spread)
        self.lines = within
        return found

    def _store(self, place: int, variable: Variable) -> None:
        name, memory = self.names[variable], self._memory(variable)
        if variable.dtype == "bool":
            name = self.put(f"zext {self.truths} {name} to {memory}")
        self.lines.append(f"  store {memory} {name}, ptr {self._pointer(place)}, align {_SIZES[variable.dtype]}")

    def _pointer(self, place: int) -> str:
        offset = self.put(f"mul i64 %{self.name}.i, %step.{place}")
        return self.put(f"getelementptr i8, ptr %array.{place}, i64 {offset}")

    def _memory(self, variable: Variable) -> str:
        return self.vector(_IN_MEMORY[variable.dtype])

    def _from_bytes(self, name: str) -> str:
        return self.put(f"icmp ne {self.vector('i8')} {name}, zeroinitializer")
