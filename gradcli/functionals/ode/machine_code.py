"""The Taylor coefficients of the solution of a system as machine code, where `llvmlite` is installed."""

from __future__ import annotations

import ctypes
import math
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


# The value and the slope of a polynomial.
_POLYNOMIAL = """
define internal double @{name}(ptr %c, i64 %order, double %t) {{
entry:
  br label %next
next:
  %k = phi i64 [ %order, %entry ], [ %k.next, %next ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %next ]
  %p = getelementptr double, ptr %c, i64 %k
  %x = load double, ptr %p
  %n = sitofp i64 %k to double
  %factor = {factor}
  %term = fmul double %x, %factor
  %moved = fmul double %sum, %t
  %sum.next = fadd double %moved, %term
  %k.next = sub i64 %k, 1
  %more = icmp sge i64 %k.next, {last}
  br i1 %more, label %next, label %end
end:
  ret double %sum.next
}}
"""


class Machine:
    """The machine code of a system: its coefficients, and steps between places, of which each has a room for them."""

    def __init__(self, code: Any, writer: _SeriesCode) -> None:
        self._code = code
        numbers, pointers = [ctypes.c_double] * 5, [ctypes.c_void_p] * 4
        self._step = ctypes.CFUNCTYPE(None, ctypes.c_int64, *numbers, *pointers)(
            code.engine.get_function_address("step")
        )
        self._coefficients = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address)
        self.places = [writer.places[s] for s in writer.states]
        self.shape = writer.rows, _ROOM

    def series(self, order: int, *inputs: float) -> Any:
        """The coefficients of the states. Raises ValueError where they are not finite."""
        np = arrays.numpy_namespace()
        room, given = np.empty(self.shape), np.array(inputs)
        self._coefficients(order, given.ctypes.data, room.ctypes.data)
        found = room[self.places, : order + 1]
        if not np.isfinite(found).all():
            raise ValueError
        return found.tolist()


class Rooms:
    """The coefficients at the begin and at the end of a step."""

    def __init__(self, machine: Machine, order: int, inputs: Sequence[float]) -> None:
        np = arrays.numpy_namespace()
        self._machine, self.order = machine, order
        self._inputs, self._out = np.array(inputs), np.empty(3)
        self._here, self._next = np.empty(machine.shape), np.empty(machine.shape)
        machine._coefficients(order, self._inputs.ctypes.data, self._here.ctypes.data)
        self._pointers = [x.ctypes.data for x in (self._here, self._inputs, self._next, self._out)]

    def series(self) -> Any:
        """The coefficients of the states at the begin."""
        return self._here[self._machine.places, : self.order + 1].tolist()

    def step(self, end: float, lapse: float, share: float, most: float, shrink: float) -> tuple[bool, float]:
        """Go to the end of a step; returns whether it is consistent, and the length of the next one, nan if unknown."""
        self._machine._step(self.order, end, lapse, share, most, shrink, *self._pointers)
        consistent, length, unknown = self._out.tolist()
        return bool(consistent), math.nan if unknown else length

    def states(self) -> Any:
        """The states at the end of the step."""
        return self._inputs[1 : 1 + len(self._machine.places)].tolist()

    def turn(self) -> None:
        """Make the end of the step the begin of the next one."""
        self._here, self._next = self._next, self._here
        self._pointers[0], self._pointers[2] = self._pointers[2], self._pointers[0]


@phase("compile")
def machine(system: Recurrences, groups: Sequence[Sequence[int]]) -> Machine | None:
    """The code of the steps of a system; None without `llvmlite`, or where an operation is not written."""
    writer = _SeriesCode(system)
    text = writer.text()
    if text is None:
        return None
    code = compile_loop("coefficients", text + writer.step(groups), sorted({*writer.called, "pow"}))
    return None if code is None else Machine(code, writer)


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
    shape = writer.rows, _ROOM

    def run(order: int, *inputs: float) -> Any:
        if order >= _ROOM:
            raise ValueError
        room, given = np.empty(shape), np.array(inputs)
        function(order, given.ctypes.data, room.ctypes.data)
        # The last order is that of the states alone.
        states, rest = room[places, : order + 1], room[others, :order]
        if not (np.isfinite(states).all() and np.isfinite(rest).all()):
            raise ValueError
        return [*states.tolist(), *rest.tolist()]

    # The code lives as long as the function.
    run.code = code  # type: ignore[attr-defined]
    return run


class _SeriesCode(NumberCode):
    """The text of the function. Each varying value has a row of coefficients, and some one of those of its derivative."""

    def __init__(self, system: Recurrences) -> None:
        super().__init__()
        self.system = system
        self.time, self.states = system.time, system.states
        self.places = {v: i for i, v in enumerate(system.varying())}
        self.slopes = {x: len(self.places) + i for i, x in enumerate(system.sloped())}
        self.rows = len(self.places) + len(self.slopes)
        # The coefficients of the order that is computed.
        self.now: dict[Variable, str] = {}
        self._declared_before: set[str] = set()

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
        self._declared_before = set(self.declared)
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

    def step(self, groups: Sequence[Sequence[int]]) -> str:
        """The text of the function of a step."""
        lines: list[str] = []
        self.lines, zero = lines, self.literal(0.0)
        rows = [self.at("%before", self.places[s] * _ROOM) for s in self.states]
        values = [self.put(f"call double @value(ptr {row}, i64 %order, double %lapse)") for row in rows]
        slopes = [self.put(f"call double @slope(ptr {row}, i64 %order, double %lapse)") for row in rows]
        for i, value in enumerate(["%end", *values]):
            self.lines.append(f"  store double {value}, ptr {self.at('%given', i)}")
        self.lines.append("  call void @coefficients(i64 %order, ptr %given, ptr %room)")
        sizes = [self.intrinsic("fabs", value) for value in values]
        unknown = "false"
        for group in groups:
            largest = zero
            for i in group:
                largest = self.chosen(self.compared("ogt", sizes[i], largest), sizes[i], largest)
            unknown = self.put(f"or i1 {unknown}, {self.compared('oeq', largest, zero)}")
            least = self.operation("fmul", largest, "%share")
            for i in group:
                sizes[i] = self.operation("fadd", sizes[i], least)
        right, length = "true", self.literal(math.inf)
        self.order = self.put("sitofp i64 %order to double")
        before = self.put("sub i64 %order, 1")
        powers = {
            place: self.operation("fdiv", self.literal(1.0), self.put(f"sitofp i64 {place} to double"))
            for place in ("%order", before)
        }
        for state, slope, size in zip(self.states, slopes, sizes):
            place = self.places[state]
            moved = self.intrinsic("fabs", self.operation("fmul", "%lapse", slope))
            off = self.operation("fmul", "%lapse", self.operation("fsub", slope, self.load(place, 1)))
            most = self.operation("fmul", "%most", self.chosen(self.compared("ogt", moved, size), moved, size))
            small = self.compared("ole", self.intrinsic("fabs", off), most)
            right = self.put(f"and i1 {right}, {small}")
            for order, power in powers.items():
                c = self.intrinsic("fabs", self.load(place, order))
                radius = self.call("pow", self.operation("fdiv", size, c), power)
                radius = self.chosen(self.compared("ogt", c, zero), radius, self.literal(math.inf))
                # What is not finite has no radius.
                radius = self.chosen(self.compared("olt", c, self.literal(math.inf)), radius, zero)
                length = self.chosen(self.compared("olt", radius, length), radius, length)
        length = self.operation("fmul", length, "%shrink")
        results = [self.put(f"uitofp i1 {right} to double"), length, self.put(f"uitofp i1 {unknown} to double")]
        for i, result in enumerate(results):
            self.lines.append(f"  store double {result}, ptr {self.at('%out', i)}")
        declared = [line for line in sorted(self.declared) if line not in self._declared_before]
        newline = "\n"
        return f"""
{newline.join(declared)}
{_POLYNOMIAL.format(name="value", factor="fadd double 1.0, 0.0", last=0)}
{_POLYNOMIAL.format(name="slope", factor="fadd double %n, 0.0", last=1)}
define void @step(i64 %order, double %end, double %lapse, double %share, double %most, double %shrink, \
ptr %before, ptr %given, ptr %room, ptr %out) {{
{newline.join(lines)}
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
