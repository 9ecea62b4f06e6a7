"""The Taylor coefficients of the solution of a system as machine code, where `llvmlite` is installed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors.llvm_ufuncs import compile_loop
from gradcli.functionals.ode.recurrences import Recurrence, Recurrences
from gradcli.loops.machine_code import NumberCode
from gradcli.program.ir import Atom, Variable
from gradcli.timing import phase

# Room for the coefficients of a value.
_ROOM = 32

# Takes the order, the time, the states and the given values; returns arrays of coefficients, of states and other outputs.
Coefficients = Callable[..., Any]

# The sum of a[i]*b[-i] for i below a number.
_PRODUCT = """
define internal double @product(ptr %a, ptr %b, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %next, label %end
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %next ]
  %back = sub i64 0, %i
  %pa = getelementptr double, ptr %a, i64 %i
  %pb = getelementptr double, ptr %b, i64 %back
  %x = load double, ptr %pa
  %y = load double, ptr %pb
  %xy = fmul double %x, %y
  %sum.next = fadd double %sum, %xy
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %next, label %end
end:
  %result = phi double [ 0.0, %entry ], [ %sum.next, %next ]
  ret double %result
}
"""


@phase("compile")
def coefficients(system: Recurrences) -> Coefficients | None:
    """The function of a system; None without `llvmlite`, or where an operation is not written."""
    writer = _SeriesCode(system)
    text = writer.text()
    code = None if text is None else compile_loop("coefficients", text, sorted(writer.called))
    if code is None:
        return None
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address)
    np = arrays.numpy_namespace()
    places = [writer.places[s] for s in writer.states]
    others = [writer.places.get(o) if isinstance(o, Variable) else None for o in system.others]
    if None in others:
        return None
    shape, wanted = (writer.rows, _ROOM), [*places, *others]

    def run(order: int, *inputs: float) -> Any:
        if order >= _ROOM:
            raise ValueError
        room, given = np.empty(shape), np.array(inputs)
        function(order, given.ctypes.data, room.ctypes.data)
        found = room[wanted, : order + 1]
        if not np.isfinite(found).all():
            raise ValueError
        return found.tolist()

    # The code lives as long as the function.
    run.code = code  # type: ignore[attr-defined]
    return run


class _SeriesCode(NumberCode):
    """The text of the function. Each varying value has a row of coefficients, and some one of those of its derivative."""

    def __init__(self, system: Recurrences) -> None:
        super().__init__()
        self.system = system
        count = len(system.rates)
        self.time, self.states = system.program.inputs[0], system.program.inputs[1 : 1 + count]
        varying = [self.time, *self.states, *(r.output for r in system.recurrences)]
        self.places = {v: i for i, v in enumerate(varying)}
        self.slopes: dict[Variable, int] = {}
        for kind, operands, output in system.recurrences:
            pairs = zip(operands[::2], operands[1::2])
            sloped = [x for v, x in pairs if v in self.places] if kind == "chain" else [operands[0], output]
            for x in sloped if kind in ("chain", "power") else ():
                self.slopes.setdefault(x, len(varying) + len(self.slopes))
        self.rows = len(varying) + len(self.slopes)
        # The coefficients of the order that is computed.
        self.now: dict[Variable, str] = {}

    def text(self) -> str | None:
        """The text; None where an operation is not written."""
        program = self.system.program
        if any(e.output.dtype not in ("float64", "bool") for e in program.equations):
            return None
        entry: list[str] = []
        self.lines = entry
        try:
            for i, variable in enumerate(program.inputs):
                self.names[variable] = self.put(f"load double, ptr {self.at('%given', i)}")
            for equation in program.equations:
                self.names[equation.output] = self.computed(equation)
            for variable, place in self.places.items():
                self.store(self.number(variable), place, 0)
            states: list[str] = []
            self.lines = states
            self.before = self.put("sub i64 %k, 1")
            self.order = self.put("sitofp i64 %k to double")
            slopes = [self._rate(rate) for rate in self.system.rates]
            for state, slope in zip(self.states, slopes):
                self.now[state] = self.operation("fdiv", slope, self.order)
                self.store(self.now[state], self.places[state], "%k")
            further: list[str] = []
            self.lines = further
            self.now[self.time] = self.chosen(self.put("icmp eq i64 %k, 1"), self.literal(1.0), self.literal(0.0))
            self.store(self.now[self.time], self.places[self.time], "%k")
            for variable in (self.time, *self.states):
                self._further(variable)
            for recurrence in self.system.recurrences:
                self._recur(recurrence)
        except KeyError:
            return None
        newline = "\n"
        return f"""
{newline.join(sorted(self.declared))}
{_PRODUCT}
define void @coefficients(i64 %order, ptr %given, ptr %room) {{
entry:
{newline.join(entry)}
  %any = icmp sgt i64 %order, 0
  br i1 %any, label %begin, label %end
begin:
  %k = phi i64 [ 1, %entry ], [ %k.next, %further ]
{newline.join(states)}
  %last = icmp eq i64 %k, %order
  br i1 %last, label %end, label %further
further:
{newline.join(further)}
  %k.next = add i64 %k, 1
  br label %begin
end:
  ret void
}}
"""

    def at(self, pointer: str, place: int | str) -> str:
        """A pointer to an element."""
        return self.put(f"getelementptr double, ptr {pointer}, i64 {place}")

    def row(self, number: int, place: int | str = 0) -> str:
        """A pointer to a coefficient in a row."""
        return self.at(self.at("%room", number * _ROOM), place)

    def load(self, number: int, place: int | str) -> str:
        """A coefficient."""
        return self.put(f"load double, ptr {self.row(number, place)}")

    def store(self, value: str, number: int, place: int | str) -> None:
        """Store a coefficient."""
        pointer = self.row(number, place)
        self.lines.append(f"  store double {value}, ptr {pointer}")

    def product(self, a: int, b: int, top: str, count: str) -> str:
        """The sum of the products of coefficients of row `a` from 0 on with those of row `b` from `top` downwards."""
        return self.put(f"call double @product(ptr {self.row(a)}, ptr {self.row(b, top)}, i64 {count})")

    def _rate(self, rate: Atom) -> str:
        if isinstance(rate, Variable) and rate in self.places:
            return self.load(self.places[rate], self.before)
        return self.chosen(self.put("icmp eq i64 %k, 1"), self.number(rate), self.literal(0.0))

    def _further(self, x: Variable) -> None:
        if x in self.slopes:
            self.store(self.operation("fmul", self.now[x], self.order), self.slopes[x], self.before)

    def _recur(self, recurrence: Recurrence) -> None:
        kind, operands, output = recurrence
        self.now[output] = getattr(self, f"_{kind}")(operands, output)
        self.store(self.now[output], self.places[output], "%k")
        self._further(output)

    def _coefficient(self, atom: Atom) -> str:
        return self.now[atom] if isinstance(atom, Variable) and atom in self.places else self.literal(0.0)

    def _add(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.operation("fadd", *map(self._coefficient, operands))

    def _subtract(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.operation("fsub", *map(self._coefficient, operands))

    def _negative(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.operation("fneg", self._coefficient(operands[0]))

    def _scale(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.operation("fmul", self._coefficient(operands[0]), self.number(operands[1]))

    def _shrink(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.operation("fdiv", self._coefficient(operands[0]), self.number(operands[1]))

    def _multiply(self, operands: Sequence[Atom], _output: Variable) -> str:
        a, b = (self.places[o] for o in operands)
        return self.product(a, b, "%k", self.put("add i64 %k, 1"))

    def _divide(self, operands: Sequence[Atom], output: Variable) -> str:
        b = self.places[operands[1]]
        rest = self.operation("fsub", self._coefficient(operands[0]), self.product(self.places[output], b, "%k", "%k"))
        return self.operation("fdiv", rest, self.load(b, 0))

    def _choose(self, operands: Sequence[Atom], _output: Variable) -> str:
        return self.chosen(self.truth(operands[0]), *map(self._coefficient, operands[1:]))

    def _power(self, operands: Sequence[Atom], output: Variable) -> str:
        x, q = operands
        own, base = self.places[output], self.places[x]
        first = self.operation("fmul", self.number(q), self.product(own, self.slopes[x], self.before, "%k"))
        second = self.product(self.slopes[output], base, self.before, self.before)
        scale = self.operation("fmul", self.order, self.load(base, 0))
        return self.operation("fdiv", self.operation("fsub", first, second), scale)

    def _chain(self, operands: Sequence[Atom], _output: Variable) -> str:
        sums, scaled = [], []
        for v, x in zip(operands[::2], operands[1::2]):
            if isinstance(v, Variable) and v in self.places:
                sums.append(self.product(self.places[v], self.slopes[x], self.before, "%k"))
            else:
                scaled.append(self.operation("fmul", self.number(v), self.now[x]))
        if sums:
            total = sums[0]
            for term in sums[1:]:
                total = self.operation("fadd", total, term)
            scaled.append(self.operation("fdiv", total, self.order))
        total = scaled[0]
        for term in scaled[1:]:
            total = self.operation("fadd", total, term)
        return total
