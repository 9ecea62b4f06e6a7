"""The Taylor coefficients of the solution of a system as machine code, where `llvmlite` is installed."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.executors.llvm_ufuncs import compile_loop
from gradcli.functionals.ode.hidden_peaks import UNSEEN, exponents_of_states
from gradcli.functionals.ode.recurrences import Recurrence, Recurrences
from gradcli.functionals.ode.solver_progress import LEAST_SIZE
from gradcli.loops.loop_code import NumberCode
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Atom, Variable
from gradcli.timing import phase

# Room for the coefficients of a value.
_ROOM = 32
# The length of a step, relative to the time that it starts from, that is too small.
SHORTEST = 1e-15

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


# The states, or their slopes, some time after the begin of a step.
_STATES = """
define void @{name}(i64 %order, double %lapse, ptr %series, ptr %found) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %row = add i64 %i, 1
  %place = mul i64 %row, {room}
  %coefficients = getelementptr double, ptr %series, i64 %place
  %value = call double @{polynomial}(ptr %coefficients, i64 %order, double %lapse)
  %at = getelementptr double, ptr %found, i64 %i
  store double %value, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {states}
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""


# A step: the states and slopes at its end, and the coefficients there. These are examined: the sizes of the states by
# their groups, whether the slopes are those of the coefficients, and the length of the next step.
_STEP = """
define void @step(i64 %order, double %end, double %lapse, double %share, double %most, double %shrink, \
ptr %before, ptr %given, ptr %room, ptr %out, ptr %slopes, ptr %largest) {{
entry:
  store double %end, ptr %given
  %states = getelementptr double, ptr %given, i64 1
  call void @states(i64 %order, double %lapse, ptr %before, ptr %states)
  call void @slopes(i64 %order, double %lapse, ptr %before, ptr %slopes)
  call void @coefficients(i64 %order, ptr %given, ptr %room)
  call void @examine(i64 %order, double %lapse, double %share, double %most, double %shrink, \
ptr %given, ptr %room, ptr %out, ptr %slopes, ptr %largest)
  ret void
}}

define void @examine(i64 %order, double %lapse, double %share, double %most, double %shrink, \
ptr %given, ptr %room, ptr %out, ptr %slopes, ptr %largest) {{
entry:
  br label %clearing
clearing:
  %g = phi i64 [ 0, %entry ], [ %g.next, %clearing ]
  %g.at = getelementptr double, ptr %largest, i64 %g
  store double 0.0, ptr %g.at
  %g.next = add i64 %g, 1
  %g.more = icmp slt i64 %g.next, {groups}
  br i1 %g.more, label %clearing, label %sizing
sizing:
  %j = phi i64 [ 0, %clearing ], [ %j.next, %sizing ]
  %j.row = add i64 %j, 1
  %j.at = getelementptr double, ptr %given, i64 %j.row
  %j.value = load double, ptr %j.at
  %j.size = call double @llvm.fabs.f64(double %j.value)
  %j.group.at = getelementptr i64, ptr @groups, i64 %j
  %j.group = load i64, ptr %j.group.at
  %j.most.at = getelementptr double, ptr %largest, i64 %j.group
  %j.most = load double, ptr %j.most.at
  %j.larger = fcmp ogt double %j.size, %j.most
  %j.new = select i1 %j.larger, double %j.size, double %j.most
  store double %j.new, ptr %j.most.at
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, {states}
  br i1 %j.more, label %sizing, label %examined
examined:
  %order.less = sub i64 %order, 1
  br label %examining
examining:
  %n = phi i64 [ 0, %examined ], [ %n.next, %examining ]
  %right = phi i1 [ true, %examined ], [ %right.next, %examining ]
  %unknown = phi i1 [ false, %examined ], [ %unknown.next, %examining ]
  %quotient = phi double [ {infinity}, %examined ], [ %quotient.next, %examining ]
  %quotient.less = phi double [ {infinity}, %examined ], [ %quotient.less.next, %examining ]
  %n.row = add i64 %n, 1
  %n.at = getelementptr double, ptr %given, i64 %n.row
  %n.value = load double, ptr %n.at
  %n.group.at = getelementptr i64, ptr @groups, i64 %n
  %n.group = load i64, ptr %n.group.at
  %n.most.at = getelementptr double, ptr %largest, i64 %n.group
  %n.most = load double, ptr %n.most.at
  %n.empty = fcmp oeq double %n.most, 0.0
  %unknown.next = or i1 %unknown, %n.empty
  %n.least = fmul double %n.most, %share
  %n.own = call double @llvm.fabs.f64(double %n.value)
  %n.size = fadd double %n.own, %n.least
  %n.small = fcmp olt double %n.size, {least}
  %size = select i1 %n.small, double {least}, double %n.size
  %n.slope.at = getelementptr double, ptr %slopes, i64 %n
  %n.slope = load double, ptr %n.slope.at
  %n.moved = fmul double %lapse, %n.slope
  %moved.size = call double @llvm.fabs.f64(double %n.moved)
  %n.place = mul i64 %n.row, {room}
  %n.series = getelementptr double, ptr %room, i64 %n.place
  %n.first.at = getelementptr double, ptr %n.series, i64 1
  %n.first = load double, ptr %n.first.at
  %n.off = fsub double %n.slope, %n.first
  %n.defect = fmul double %lapse, %n.off
  %defect = call double @llvm.fabs.f64(double %n.defect)
  %n.larger = fcmp ogt double %moved.size, %size
  %n.scale = select i1 %n.larger, double %moved.size, double %size
  %n.bound = fmul double %most, %n.scale
  %n.right = fcmp ole double %defect, %n.bound
  %right.next = and i1 %right, %n.right
  %n.quotient = call double @quotient(ptr %n.series, i64 %order, double %size)
  %n.quotient.less = call double @quotient(ptr %n.series, i64 %order.less, double %size)
  %smaller = fcmp olt double %n.quotient, %quotient
  %quotient.next = select i1 %smaller, double %n.quotient, double %quotient
  %smaller.less = fcmp olt double %n.quotient.less, %quotient.less
  %quotient.less.next = select i1 %smaller.less, double %n.quotient.less, double %quotient.less
  %n.next = add i64 %n, 1
  %n.more = icmp slt i64 %n.next, {states}
  br i1 %n.more, label %examining, label %done
done:
  %right.number = uitofp i1 %right.next to double
  store double %right.number, ptr %out
  %order.number = sitofp i64 %order to double
  %less.number = sitofp i64 %order.less to double
  %power = fdiv double 1.0, %order.number
  %power.less = fdiv double 1.0, %less.number
  %radius = call double @pow(double %quotient.next, double %power)
  %radius.less = call double @pow(double %quotient.less.next, double %power.less)
  %shorter = fcmp olt double %radius, %radius.less
  %length = select i1 %shorter, double %radius, double %radius.less
  %allowed = fmul double %length, %shrink
  %allowed.at = getelementptr double, ptr %out, i64 1
  store double %allowed, ptr %allowed.at
  %unknown.number = uitofp i1 %unknown.next to double
  %unknown.at = getelementptr double, ptr %out, i64 2
  store double %unknown.number, ptr %unknown.at
  ret void
}}

define internal double @quotient(ptr %series, i64 %order, double %size) {{
entry:
  %at = getelementptr double, ptr %series, i64 %order
  %coefficient = load double, ptr %at
  %c = call double @llvm.fabs.f64(double %coefficient)
  %ratio = fdiv double %size, %c
  %there = fcmp ogt double %c, 0.0
  %bound = select i1 %there, double %ratio, double {infinity}
  %finite = fcmp olt double %c, {infinity}
  %found = select i1 %finite, double %bound, double 0.0
  ret double %found
}}
"""


# Returns whether some exponent at the begin of a step has a magnitude above its bound.
_UNSEEN = """
define i1 @unseen(ptr %room) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %found = phi i1 [ false, %entry ], [ %found.next, %next ]
  %place.at = getelementptr i64, ptr @exponents, i64 %i
  %place = load i64, ptr %place.at
  %at = getelementptr double, ptr %room, i64 %place
  %exponent = load double, ptr %at
  %size = call double @llvm.fabs.f64(double %exponent)
  %bound.at = getelementptr double, ptr @bounds, i64 %i
  %bound = load double, ptr %bound.at
  %larger = fcmp ogt double %size, %bound
  %found.next = or i1 %found, %larger
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {count}
  br i1 %more, label %next, label %end
end:
  ret i1 %found.next
}}
"""


# Steps that need nothing from the caller, at most `count`: they end before the time `until`, are consistent, begin with
# no unseen exponential, and their lengths are known and below `examined`. Returns their number; `reached` has the time
# and the length of the next step.
_STEPS = """
define i64 @steps(i64 %order, i64 %count, double %until, double %sign, double %longest, double %examined, \
double %share, double %most, double %shrink, ptr %reached, \
ptr %before, ptr %given, ptr %room, ptr %out, ptr %slopes, ptr %largest) {{
entry:
  %length.at = getelementptr double, ptr %reached, i64 1
  %time.first = load double, ptr %reached
  %length.first = load double, ptr %length.at
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n.next, %made ]
  %time = phi double [ %time.first, %entry ], [ %end, %made ]
  %length = phi double [ %length.first, %entry ], [ %length.next, %made ]
  %here = phi ptr [ %before, %entry ], [ %there, %made ]
  %there = phi ptr [ %room, %entry ], [ %here, %made ]
  %counted = icmp slt i64 %n, %count
  %known = fcmp olt double %length, %examined
  %left = fsub double %until, %time
  %left.size = call double @llvm.fabs.f64(double %left)
  %ends.before = fcmp olt double %length, %left.size
  %moved = fmul double %length, %sign
  %end = fadd double %time, %moved
  %lapse = fsub double %end, %time
  %lapse.size = call double @llvm.fabs.f64(double %lapse)
  %time.size = call double @llvm.fabs.f64(double %time)
  %least = fmul double %time.size, {shortest}
  %long = fcmp ogt double %lapse.size, %least
  %one = and i1 %counted, %known
  %two = and i1 %ends.before, %long
  %both = and i1 %one, %two
  %unseen = call i1 @unseen(ptr %here)
  %seen = xor i1 %unseen, true
  %free = and i1 %both, %seen
  br i1 %free, label %stepping, label %done
stepping:
  call void @step(i64 %order, double %end, double %lapse, double %share, double %most, double %shrink, \
ptr %here, ptr %given, ptr %there, ptr %out, ptr %slopes, ptr %largest)
  %right = load double, ptr %out
  %consistent = fcmp une double %right, 0.0
  br i1 %consistent, label %made, label %done
made:
  %n.next = add i64 %n, 1
  %allowed.at = getelementptr double, ptr %out, i64 1
  %allowed = load double, ptr %allowed.at
  %shorter = fcmp olt double %allowed, %longest
  %limited = select i1 %shorter, double %allowed, double %longest
  %unknown.at = getelementptr double, ptr %out, i64 2
  %unknown.number = load double, ptr %unknown.at
  %unknown = fcmp une double %unknown.number, 0.0
  %length.next = select i1 %unknown, double {nan}, double %limited
  br label %next
done:
  store double %time, ptr %reached
  store double %length, ptr %length.at
  ret i64 %n
}}
"""


class Machine:
    """The machine code of a system: its coefficients, and steps between places, of which each has a room for them."""

    def __init__(self, code: Any, writer: _SeriesCode, groups: int) -> None:
        self._code, self.groups = code, groups
        numbers, pointers = [ctypes.c_double] * 5, [ctypes.c_void_p] * 6
        self._step = ctypes.CFUNCTYPE(None, ctypes.c_int64, *numbers, *pointers)(
            code.engine.get_function_address("step")
        )
        self._examine = ctypes.CFUNCTYPE(None, ctypes.c_int64, *numbers[:4], *pointers[:5])(
            code.engine.get_function_address("examine")
        )
        self._states = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)(
            code.engine.get_function_address("states")
        )
        integers = [ctypes.c_int64] * 2
        self._steps = ctypes.CFUNCTYPE(ctypes.c_int64, *integers, *[ctypes.c_double] * 7, *[ctypes.c_void_p] * 7)(
            code.engine.get_function_address("steps")
        )
        self._unseen = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(code.engine.get_function_address("unseen"))
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


class StepRules(NamedTuple):
    """The step size control: `share` of the largest state of a group is added to the size of each, the largest defect
    of a step relative to that is `most`, and a step is as long as the radius of convergence times `shrink`."""

    share: float
    most: float
    shrink: float


class Rooms:
    """The coefficients at the begin and at the end of a step."""

    def __init__(self, machine: Machine, order: int, inputs: Sequence[float], rules: StepRules) -> None:
        np = arrays.numpy_namespace()
        self._machine, self.order, self._rules = machine, order, rules
        self._inputs, self._out, self._reached = np.array(inputs), np.empty(3), np.empty(2)
        self._here, self._next = np.empty(machine.shape), np.empty(machine.shape)
        self._slopes, self._largest = np.zeros(len(machine.places)), np.empty(machine.groups)
        machine._coefficients(order, self._inputs.ctypes.data, self._here.ctypes.data)
        used = (self._here, self._inputs, self._next, self._out, self._slopes, self._largest)
        self._pointers = [x.ctypes.data for x in used]

    def series(self) -> Any:
        """The coefficients of the states at the begin."""
        return self._here[self._machine.places, : self.order + 1].tolist()

    def step(self, end: float, lapse: float) -> tuple[bool, float]:
        """Go to the end of a step; returns whether it is consistent, and the length of the next one, nan if unknown."""
        self._machine._step(self.order, end, lapse, *self._rules, *self._pointers)
        consistent, length, unknown = self._out.tolist()
        return bool(consistent), math.nan if unknown else length

    def free_steps(
        self, count: int, time: float, length: float, until: float, longest: float, examined: float
    ) -> tuple[int, float, float]:
        """Make steps that need nothing from the caller, at most `count`, the first from a time and of a length.

        They end before the time `until`, none is longer than `longest`, and each is shorter than `examined`. Returns
        their number, the time that is reached, and the length of the next step, nan if unknown.
        """
        self._reached[:] = time, length
        sign = math.copysign(1.0, until - time)
        made = self._machine._steps(
            self.order, count, until, sign, longest, examined, *self._rules, self._reached.ctypes.data, *self._pointers
        )
        if made % 2:
            self.turn()
        return made, *self._reached.tolist()

    def restart(self, time: float, states: Sequence[float]) -> float:
        """Go on from states at a time; returns the length of the next step, nan if unknown."""
        self._inputs[0], self._inputs[1 : 1 + len(states)] = time, states
        here, inputs, _, *rest = self._pointers
        self._machine._coefficients(self.order, inputs, here)
        # The step has length 0, so that its slopes need no comparison.
        rules = self._rules._replace(most=0.0)
        self._machine._examine(self.order, 0.0, *rules, inputs, here, *rest)
        _, length, unknown = self._out.tolist()
        return math.nan if unknown else length

    def has_unseen_exponentials(self) -> bool:
        """Return whether an exponential or the like of states is so small or large at the begin that no series shows
        it."""
        return bool(self._machine._unseen(self._pointers[0]))

    def states(self) -> Any:
        """The states at the end of the step."""
        return self._inputs[1 : 1 + len(self._machine.places)].tolist()

    def slopes_at_end(self) -> tuple[Any, Any]:
        """The slopes of the series at the end of the step, and those of the right side there."""
        return self._slopes.tolist(), self._next[self._machine.places, 1].tolist()

    def states_after(self, lapse: float) -> Any:
        """The states some time after the begin."""
        found = arrays.numpy_namespace().empty(len(self._machine.places))
        self._machine._states(self.order, lapse, self._pointers[0], found.ctypes.data)
        return found.tolist()

    def states_at_begin(self) -> Any:
        """The states at the begin."""
        return self._here[self._machine.places, 0].tolist()

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
    return None if code is None else Machine(code, writer, len(groups))


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
    """The text of the function. Each varying value has a row of coefficients, and some one of those of its
    derivative."""

    def __init__(self, system: Recurrences) -> None:
        super().__init__()
        self.system = system
        self.time, self.states = system.time, system.states
        self.places = {v: i for i, v in enumerate(system.varying())}
        self.slopes = {x: len(self.places) + i for i, x in enumerate(system.sloped())}
        self.rows = len(self.places) + len(self.slopes)
        # The places of the inputs. These and what varies are loaded where they are read: the compiler takes long for many
        # values that are alive at once.
        self._given = {v: i for i, v in enumerate(system.program.inputs)}

    def text(self) -> str | None:
        """The text; None where an operation is not written."""
        program = self.system.program
        if any(e.output.dtype not in ("float64", "bool") for e in program.equations):
            return None
        entry: list[str] = []
        self.lines = entry
        try:
            for variable in self._given:
                if variable in self.places:
                    self.store(self.number(variable), self.places[variable], 0)
            for equation in program.equations:
                found = self.computed(equation)
                if equation.output in self.places:
                    self.store(found, self.places[equation.output], 0)
                else:
                    self.names[equation.output] = found
            states: list[str] = []
            self.lines = states
            self.before = self.put("sub i64 %k, 1")
            self.order = self.put("sitofp i64 %k to double")
            # With one pointer for each order the compiler does not look for others in a loop of so many rows.
            self.lines += [
                "  %now = getelementptr double, ptr %room, i64 %k",
                f"  %last.order = getelementptr double, ptr %room, i64 {self.before}",
            ]
            for state, rate in zip(self.states, self.system.rates):
                self.store(self.operation("fdiv", self._rate(rate), self.order), self.places[state], "%k")
            further: list[str] = []
            self.lines = further
            moves = self.chosen(self.put("icmp eq i64 %k, 1"), self.literal(1.0), self.literal(0.0))
            self.store(moves, self.places[self.time], "%k")
            for variable in (self.time, *self.states):
                self._further(variable)
            for recurrence in self.system.recurrences:
                self._recur(recurrence)
        except KeyError:
            return None
        newline = "\n"
        # The loop of the orders is bound by memory and by the sums of products, which are a function of their own, and the
        # optimiser takes a time that grows with the square of the number of recurrences.
        return f"""
{newline.join(sorted(self.declared))}
{_PRODUCT}
define void @coefficients(i64 %order, ptr %given, ptr %room) noinline optnone {{
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
        """The text of the function of a step, whose size does not depend on the number of states but for a table."""
        group_of = [0] * len(self.states)
        for number, group in enumerate(groups):
            for i in group:
                group_of[i] = number
        table = ", ".join(f"i64 {number}" for number in group_of)
        exponents = exponents_of_states(self.system.program, len(self.states))
        bounds = [(self.places[x] * _ROOM, math.sqrt(UNSEEN) if is_root else UNSEEN) for x, is_root in exponents]
        # The table of a system without exponents has one place, whose bound is never exceeded.
        bounds = bounds or [(0, math.inf)]
        places = ", ".join(f"i64 {place}" for place, _ in bounds)
        largest = ", ".join(f"double {self.literal(bound)}" for _, bound in bounds)
        declared = "declare double @pow(double, double)" if "pow" not in self.called else ""
        fabs = "declare double @llvm.fabs.f64(double)"
        return (
            _POLYNOMIAL.format(name="value", factor="fadd double 1.0, 0.0", last=0)
            + _POLYNOMIAL.format(name="slope", factor="fadd double %n, 0.0", last=1)
            + f"{declared}\n{'' if fabs in self.declared else fabs}\n"
            + _STATES.format(name="states", polynomial="value", states=len(self.states), room=_ROOM)
            + _STATES.format(name="slopes", polynomial="slope", states=len(self.states), room=_ROOM)
            + f"@groups = internal constant [{len(group_of)} x i64] [{table}]\n"
            + _STEP.format(
                states=len(self.states),
                groups=len(groups),
                room=_ROOM,
                infinity=self.literal(math.inf),
                least=self.literal(LEAST_SIZE),
            )
            + f"@exponents = internal constant [{len(bounds)} x i64] [{places}]\n"
            + f"@bounds = internal constant [{len(bounds)} x double] [{largest}]\n"
            + _UNSEEN.format(count=len(bounds))
            + _STEPS.format(shortest=self.literal(SHORTEST), nan=self.literal(math.nan))
        )

    def at(self, pointer: str, place: int | str) -> str:
        """A pointer to an element."""
        return self.put(f"getelementptr double, ptr {pointer}, i64 {place}")

    def row(self, number: int, place: int | str = 0) -> str:
        """A pointer to a coefficient in a row: one of a fixed order, of the order that is computed, or of that
        before."""
        if isinstance(place, int):
            return self.at("%room", number * _ROOM + place)
        return self.at("%now" if place == "%k" else "%last.order", number * _ROOM)

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
            self.store(self.operation("fmul", self._coefficient(x), self.order), self.slopes[x], self.before)

    def _recur(self, recurrence: Recurrence) -> None:
        kind, operands, output = recurrence
        self.store(getattr(self, f"_{kind}")(operands, output), self.places[output], "%k")
        self._further(output)

    def number(self, atom: Atom) -> str:
        """A number at order 0."""
        if isinstance(atom, Variable) and atom not in self.names:
            if atom in self._given:
                return self.put(f"load double, ptr {self.at('%given', self._given[atom])}")
            return self.load(self.places[atom], 0)
        return super().number(atom)

    def _coefficient(self, atom: Atom) -> str:
        """A coefficient of the order that is computed."""
        varies = isinstance(atom, Variable) and atom in self.places
        return self.load(self.places[atom], "%k") if varies else self.literal(0.0)

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
                scaled.append(self.operation("fmul", self.number(v), self._coefficient(x)))
        if sums:
            total = sums[0]
            for term in sums[1:]:
                total = self.operation("fadd", total, term)
            scaled.append(self.operation("fdiv", total, self.order))
        total = scaled[0]
        for term in scaled[1:]:
            total = self.operation("fadd", total, term)
        return total
