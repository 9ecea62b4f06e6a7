"""Transitions of the no-U-turn sampler as machine code, where `llvmlite` is installed and the program can be compiled.

A step of a trajectory takes some microseconds less than its parts do in Python: half a microsecond beyond the density.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli import limits
from gradcli.executors.llvm_ufuncs import compile_loop
from gradcli.models.sampling.density_code import ProgramCode, UncompiledError
from gradcli.models.sampling.no_u_turn import DIVERGED, NoUTurnSampler, PhasePoint, Transition
from gradcli.models.sampling.unconstrained_parameters import BoundedTransform
from gradcli.program.ir import Atom, Program, Variable, elements

# The function that is called where the recording does not hold: it reads a position and writes the gradient there.
_Fallback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)


class CompiledDensity:
    """A log density on the scale of the sampler, and the transitions of a sampler on it, as machine code.

    `outputs` are the value, and the gradient by each of the inputs at `places` of the vector of all, None where it is
    0. `fallback` computes both where a guard of the program does not hold. One thread uses it at a time.
    """

    def __init__(
        self,
        program: Program,
        places: Sequence[slice],
        outputs: Sequence[Atom | None],
        transform: BoundedTransform,
        fallback: Callable[[Any], tuple[float, Any]],
        deepest: int,
    ) -> None:
        self.size = size = len(transform.low)
        self.elements = elements(program.equations)
        self._fallback = fallback
        self.error: BaseException | None = None
        self._called = _Fallback(self._evaluated)
        address = ctypes.cast(self._called, ctypes.c_void_p).value
        code = ProgramCode(program)
        text = _density(code, places, outputs, transform, f"inttoptr (i64 {address} to ptr)")
        self.state = _State(size, deepest)
        compiled = compile_loop(
            "transition", text + self.state.code(sorted(code.declared)), sorted({*code.called, "exp", "log1p"})
        )
        if compiled is None:
            raise UncompiledError
        self._compiled, self._code = compiled, code
        self.transition = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(compiled.address)
        self.step = ctypes.CFUNCTYPE(ctypes.c_double)(compiled.engine.get_function_address("step"))

    def _evaluated(self, position: int, gradient: int) -> float:
        # An exception must not leave a function that machine code calls.
        try:
            value, found = self._fallback(_vector(position, self.size).copy())
        except BaseException as error:
            self.error = error
            value, found = -math.inf, 0.0
        _vector(gradient, self.size)[:] = found
        return value

    def begin(self, position: Any) -> None:
        """Let `step` evaluate at a position, without moving from there."""
        self.state.point[: self.size] = position
        self.state.numbers[1] = 0.0

    def check(self) -> None:
        """Raise what Python raised where the machine code called it."""
        error, self.error, self._code.error = self.error or self._code.error, None, None
        if error is not None:
            raise error


def _vector(address: int, size: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))


def _density(
    code: ProgramCode, places: Sequence[slice], outputs: Sequence[Atom | None], transform: BoundedTransform, other: str
) -> str:
    """The function @density in LLVM IR: reads a position %q, writes the gradient to %g, and returns the value."""
    size = len(transform.low)
    x, slope, bent, slopes = (code.allocated(size) for _ in range(4))
    logarithm = _transformed(code, transform, code.own(x), code.own(slope), code.own(bent))
    for variable, place in zip(code.program.inputs, places):
        code.given(variable, x + place.start)
    code.write()
    for atom, place in zip(outputs[1:], places):
        _stored(code, atom, code.own(slopes + place.start), place.stop - place.start)
    holds = [_truth(code, guard) for guard in code.program.guards]
    value = code.operation("fadd", code.scalar(outputs[0]), logarithm)
    # Not finite where a number is not.
    for i, totals, after in code.loop(size, 1):
        product = code.operation("fmul", code.load(code.own(slopes), i), code.load(code.own(slope), i))
        found = code.operation("fadd", product, code.load(code.own(bent), i))
        code.store(found, "%g", i)
        after.append(total := code.operation("fadd", totals[0], code.operation("fmul", found, code.literal(0.0))))
    whole = code.operation("fadd", total, code.operation("fmul", value, code.literal(0.0)))
    is_finite = code.compared("oeq", whole, code.literal(0.0))
    held = "true"
    for guard in holds:
        held = code.put(f"and i1 {held}, {guard}")
    body, code.lines = code.lines, []
    code.block = "none"
    for i, _, _ in code.loop(size):
        code.store("0.0", "%g", i)
    newline = "\n"
    text = f"""
define double @density(ptr %q, ptr %g) {{
entry:
{newline.join(body)}
  br i1 {held}, label %valid, label %invalid
invalid:
  %other = call double {other}(ptr %q, ptr %g)
  ret double %other
valid:
  br i1 {is_finite}, label %finite, label %none
finite:
  ret double {value}
none:
{newline.join(code.lines)}
  ret double {code.literal(-math.inf)}
}}
{newline.join(code.functions)}
"""
    return code.finished(text)


def _transformed(code: ProgramCode, transform: BoundedTransform, x: str, slope: str, bent: str) -> str:
    """Write the numbers between the bounds, their derivatives, and the gradient of the logarithm of the Jacobian, whose
    name is returned; see `BoundedTransform`."""
    total = code.literal(0.0)
    one = code.literal(1.0)
    for kind, places in transform.kinds().items():
        if not len(places):
            continue
        numbers = code.constant(places.astype(np.int64))
        low, high = code.constant(transform.low), code.constant(transform.high)
        for i, totals, after in code.loop(len(places), 1):
            place = code.integer(numbers, i)
            free = code.load("%q", place)
            found, derivative, gradient, logarithm = free, one, code.literal(0.0), code.literal(0.0)
            if kind in ("below", "above"):
                power = code.call("exp", free)
                end = code.load(low if kind == "below" else high, place)
                found = code.operation("fadd" if kind == "below" else "fsub", end, power)
                derivative = power if kind == "below" else code.operation("fneg", power)
                gradient, logarithm = one, free
            elif kind == "both":
                share = code.sigmoid(free)
                width = code.operation("fsub", code.load(high, place), code.load(low, place))
                part = code.operation("fmul", width, share)
                found = code.operation("fadd", code.load(low, place), part)
                derivative = code.operation("fmul", part, code.operation("fsub", one, share))
                gradient = code.operation("fsub", one, code.operation("fmul", code.literal(2.0), share))
                logarithm = _log_slope(code, free, width)
            for number, pointer in ((found, x), (derivative, slope), (gradient, bent)):
                code.store(number, pointer, place)
            after.append(result := code.operation("fadd", totals[0], logarithm))
        total = code.operation("fadd", total, result)
    return total


def _log_slope(code: ProgramCode, free: str, width: str) -> str:
    """log(width) - |x| - 2*log(1 + exp(-|x|)), the logarithm of the derivative of width/(1 + exp(-x))."""
    size = code.intrinsic("fabs", free)
    tail = code.call("log1p", code.call("exp", code.operation("fneg", size)))
    both = code.operation("fadd", size, code.operation("fmul", code.literal(2.0), tail))
    return code.operation("fsub", code.call("log", width), both)


def _stored(code: ProgramCode, atom: Atom | None, pointer: str, size: int) -> None:
    """Write an output of the program, which may be a number for all elements, to the memory."""
    if atom is None:
        return
    shape = atom.shape if isinstance(atom, Variable) else np.shape(atom)
    for i, _, _ in code.loop(size):
        code.store(code.element(atom, shape, i), pointer, i)


def _truth(code: ProgramCode, guard: Variable) -> str:
    """Write code that decides whether all elements of a guard are true, and return the name of the truth value."""
    for i, totals, after in code.loop(math.prod(guard.shape), 1):
        after.append(total := code.operation("fadd", totals[0], code.element(guard, guard.shape, i)))
    return code.compared("oeq", total, code.literal(float(math.prod(guard.shape))))


class _State:
    """The memory of a sampler of `size` numbers, whose trees are at most `deepest` deep, and the code that works on it.

    `point` is the end of a trajectory that moves, `ends` are the last and the first one: each is a position, a
    momentum and a gradient. `draw` is a position and its gradient, `drawn` its density and energy. `numbers` are the
    energy at the beginning, the step size, and the sum of acceptance probabilities; `counts` the state of the random
    numbers, the steps, the largest number of them, and whether the trajectory diverged.

    A tree is the first momentum, the sum of momenta, a draw with its density and energy, and the logarithm of its
    weight. There is one for each depth, and another with its last momentum for the first of two that are joined.
    """

    point: Any
    ends: Any
    draw: Any
    drawn: Any
    sums: Any
    variances: Any
    numbers: Any

    def __init__(self, size: int, deepest: int) -> None:
        self._size = size
        tree = 4 * size + 3
        widths = {
            "point": 3 * size, "ends": 6 * size, "draw": 2 * size, "drawn": 2, "sums": size, "variances": size,
            "numbers": 3, "trees": (deepest + 1) * tree, "firsts": (deepest + 1) * (tree + size),
        }  # fmt: skip
        self._memory = np.zeros(sum(widths.values()))
        self.counts = np.zeros(4, np.int64)
        self._addresses: dict[str, int] = {}
        at = 0
        for name, width in widths.items():
            self._addresses[name] = self._memory.__array_interface__["data"][0] + 8 * at
            setattr(self, name, self._memory[at : at + width])
            at += width
        self._addresses["counts"] = self.counts.__array_interface__["data"][0]

    def _at(self, name: str, offset: int = 0) -> str:
        return f"inttoptr (i64 {self._addresses[name] + 8 * offset} to ptr)"

    def code(self, declared: Sequence[str]) -> str:
        """The functions @transition, which gives the depth of a tree, and @step, one step of the integrator, which
        gives the energy; negative if the largest number of steps is too small."""
        n, at = self._size, self._at
        tree, first = 4 * n + 3, 5 * n + 3
        needed = {
            "declare double @exp(double)", "declare double @log1p(double)", "declare double @llvm.fabs.f64(double)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        }  # fmt: skip
        infinity = "0x7FF0000000000000"
        newline = "\n"
        return f"""
{newline.join(sorted(needed.union(declared)))}

; SplitMix64 (Steele, Lea and Flood, 2014)
define internal double @uniform() {{
  %s = load i64, ptr {at("counts")}
  %a = add i64 %s, -7046029254386353131
  store i64 %a, ptr {at("counts")}
  %b = lshr i64 %a, 30
  %c = xor i64 %a, %b
  %d = mul i64 %c, -4658895280553007687
  %e = lshr i64 %d, 27
  %f = xor i64 %d, %e
  %g = mul i64 %f, -7723592293110705685
  %h = lshr i64 %g, 31
  %i = xor i64 %g, %h
  %j = lshr i64 %i, 11
  %k = uitofp i64 %j to double
  %u = fmul double %k, 0x3CA0000000000000
  ret double %u
}}

define internal void @add(ptr %to, ptr %a, ptr %b) {{
entry:
  br label %sums
sums:
  %i = phi i64 [ 0, %entry ], [ %after, %sums ]
  %to.at = getelementptr double, ptr %to, i64 %i
  %a.at = getelementptr double, ptr %a, i64 %i
  %b.at = getelementptr double, ptr %b, i64 %i
  %x = load double, ptr %a.at
  %y = load double, ptr %b.at
  %sum = fadd double %x, %y
  store double %sum, ptr %to.at
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, {n}
  br i1 %more, label %sums, label %end
end:
  ret void
}}

define internal void @copy(ptr %to, ptr %from, i64 %count) {{
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}}

; log(exp(x) + exp(y))
define internal double @joined(double %x, double %y) {{
  %apart = fsub double %x, %y
  %size = call double @llvm.fabs.f64(double %apart)
  %least = fneg double %size
  %power = call double @exp(double %least)
  %tail = call double @log1p(double %power)
  %larger = fcmp ogt double %x, %y
  %most = select i1 %larger, double %x, double %y
  %found = fadd double %most, %tail
  ret double %found
}}

; whether the draw of the second of two trees is taken, by the logarithms of their weights
define internal i1 @takes(double %weight, double %other) {{
  %apart = fsub double %other, %weight
  %power = call double @exp(double %apart)
  %u = call double @uniform()
  %found = fcmp olt double %u, %power
  ret i1 %found
}}

; whether one of two momenta points backward along the sum of two others
define internal i1 @turns(ptr %one, ptr %other, ptr %sum, ptr %part) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  %x = phi double [ 0.0, %entry ], [ %x.after, %next ]
  %y = phi double [ 0.0, %entry ], [ %y.after, %next ]
  %one.at = getelementptr double, ptr %one, i64 %i
  %other.at = getelementptr double, ptr %other, i64 %i
  %sum.at = getelementptr double, ptr %sum, i64 %i
  %part.at = getelementptr double, ptr %part, i64 %i
  %v.at = getelementptr double, ptr {at("variances")}, i64 %i
  %p = load double, ptr %one.at
  %q = load double, ptr %other.at
  %s = load double, ptr %sum.at
  %t = load double, ptr %part.at
  %v = load double, ptr %v.at
  %both = fadd double %s, %t
  %scaled = fmul double %v, %both
  %px = fmul double %p, %scaled
  %qy = fmul double %q, %scaled
  %x.after = fadd double %x, %px
  %y.after = fadd double %y, %qy
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, {n}
  br i1 %more, label %next, label %end
end:
  %back = fcmp ole double %x.after, 0.0
  %behind = fcmp ole double %y.after, 0.0
  %found = or i1 %back, %behind
  ret i1 %found
}}

define double @step() {{
entry:
  %h = load double, ptr {at("numbers", 1)}
  %half = fmul double %h, 0.5
  br label %begin
begin:
  %i = phi i64 [ 0, %entry ], [ %i.after, %begin ]
  %q.at = getelementptr double, ptr {at("point")}, i64 %i
  %p.at = getelementptr double, ptr {at("point", n)}, i64 %i
  %g.at = getelementptr double, ptr {at("point", 2 * n)}, i64 %i
  %v.at = getelementptr double, ptr {at("variances")}, i64 %i
  %q = load double, ptr %q.at
  %p = load double, ptr %p.at
  %g = load double, ptr %g.at
  %v = load double, ptr %v.at
  %push = fmul double %half, %g
  %p.new = fadd double %p, %push
  %velocity = fmul double %v, %p.new
  %way = fmul double %h, %velocity
  %q.new = fadd double %q, %way
  store double %p.new, ptr %p.at
  store double %q.new, ptr %q.at
  %i.after = add i64 %i, 1
  %i.more = icmp slt i64 %i.after, {n}
  br i1 %i.more, label %begin, label %middle
middle:
  %density = call double @density(ptr {at("point")}, ptr {at("point", 2 * n)})
  store double %density, ptr {at("drawn")}
  br label %rest
rest:
  %j = phi i64 [ 0, %middle ], [ %j.after, %rest ]
  %kinetic = phi double [ 0.0, %middle ], [ %kinetic.after, %rest ]
  %r.at = getelementptr double, ptr {at("point", n)}, i64 %j
  %f.at = getelementptr double, ptr {at("point", 2 * n)}, i64 %j
  %w.at = getelementptr double, ptr {at("variances")}, i64 %j
  %r = load double, ptr %r.at
  %f = load double, ptr %f.at
  %w = load double, ptr %w.at
  %pushed = fmul double %half, %f
  %r.new = fadd double %r, %pushed
  store double %r.new, ptr %r.at
  %square = fmul double %r.new, %r.new
  %part = fmul double %w, %square
  %kinetic.after = fadd double %kinetic, %part
  %j.after = add i64 %j, 1
  %j.more = icmp slt i64 %j.after, {n}
  br i1 %j.more, label %rest, label %end
end:
  %energy = fmul double %kinetic.after, 0.5
  %total = fsub double %energy, %density
  %unknown = fcmp uno double %total, %total
  %found = select i1 %unknown, double {infinity}, double %total
  ret double %found
}}

; a tree of 2**depth further steps; whether it goes on
define internal i1 @built(i64 %depth) {{
entry:
  %place = mul i64 %depth, {tree}
  %tree = getelementptr double, ptr {at("trees")}, i64 %place
  %tree.sum = getelementptr double, ptr %tree, i64 {n}
  %tree.draw = getelementptr double, ptr %tree, i64 {2 * n}
  %tree.numbers = getelementptr double, ptr %tree, i64 {4 * n}
  %tree.weight = getelementptr double, ptr %tree, i64 {4 * n + 2}
  %leaf = icmp eq i64 %depth, 0
  br i1 %leaf, label %step, label %halves
step:
  %steps = load i64, ptr {at("counts", 1)}
  %steps.new = add i64 %steps, 1
  store i64 %steps.new, ptr {at("counts", 1)}
  %most = load i64, ptr {at("counts", 2)}
  %many = icmp sgt i64 %steps.new, %most
  br i1 %many, label %stop, label %go
go:
  %energy = call double @step()
  %energy.first = load double, ptr {at("numbers")}
  %excess = fsub double %energy, %energy.first
  %positive = fcmp ogt double %excess, 0.0
  %above = select i1 %positive, double %excess, double 0.0
  %below = fneg double %above
  %probability = call double @exp(double %below)
  %known = load double, ptr {at("numbers", 2)}
  %known.new = fadd double %known, %probability
  store double %known.new, ptr {at("numbers", 2)}
  call void @copy(ptr %tree, ptr {at("point", n)}, i64 {n})
  call void @copy(ptr %tree.sum, ptr {at("point", n)}, i64 {n})
  call void @copy(ptr %tree.draw, ptr {at("point")}, i64 {n})
  %tree.gradient = getelementptr double, ptr %tree, i64 {3 * n}
  call void @copy(ptr %tree.gradient, ptr {at("point", 2 * n)}, i64 {n})
  %density = load double, ptr {at("drawn")}
  store double %density, ptr %tree.numbers
  %tree.energy = getelementptr double, ptr %tree, i64 {4 * n + 1}
  store double %energy, ptr %tree.energy
  %weight.leaf = fneg double %excess
  store double %weight.leaf, ptr %tree.weight
  %near = fcmp ole double %excess, {DIVERGED:.1f}
  br i1 %near, label %goes, label %diverged
diverged:
  store i64 1, ptr {at("counts", 3)}
  br label %stop
halves:
  %lower = sub i64 %depth, 1
  %one.goes = call i1 @built(i64 %lower)
  br i1 %one.goes, label %second, label %stop
second:
  %lower.place = mul i64 %lower, {tree}
  %half = getelementptr double, ptr {at("trees")}, i64 %lower.place
  %first.place = mul i64 %depth, {first}
  %first = getelementptr double, ptr {at("firsts")}, i64 %first.place
  %first.last = getelementptr double, ptr %first, i64 {tree}
  call void @copy(ptr %first, ptr %half, i64 {tree})
  call void @copy(ptr %first.last, ptr {at("point", n)}, i64 {n})
  %two.goes = call i1 @built(i64 %lower)
  br i1 %two.goes, label %join, label %stop
join:
  %first.sum = getelementptr double, ptr %first, i64 {n}
  %first.weight.at = getelementptr double, ptr %first, i64 {4 * n + 2}
  %half.sum = getelementptr double, ptr %half, i64 {n}
  %half.weight.at = getelementptr double, ptr %half, i64 {4 * n + 2}
  %first.weight = load double, ptr %first.weight.at
  %half.weight = load double, ptr %half.weight.at
  %weight = call double @joined(double %first.weight, double %half.weight)
  %takes = call i1 @takes(double %weight, double %half.weight)
  %chosen = select i1 %takes, ptr %half, ptr %first
  %chosen.draw = getelementptr double, ptr %chosen, i64 {2 * n}
  call void @copy(ptr %tree, ptr %first, i64 {n})
  call void @copy(ptr %tree.draw, ptr %chosen.draw, i64 {2 * n + 2})
  store double %weight, ptr %tree.weight
  call void @add(ptr %tree.sum, ptr %first.sum, ptr %half.sum)
  %whole = call i1 @turns(ptr %first, ptr {at("point", n)}, ptr %first.sum, ptr %half.sum)
  %left = call i1 @turns(ptr %first, ptr %half, ptr %first.sum, ptr %half)
  %right = call i1 @turns(ptr %first.last, ptr {at("point", n)}, ptr %half.sum, ptr %first.last)
  %some = or i1 %whole, %left
  %any = or i1 %some, %right
  br i1 %any, label %stop, label %goes
goes:
  ret i1 true
stop:
  ret i1 false
}}

; from the draw, with the momentum in the sums
define i64 @transition(i64 %deepest) {{
entry:
  store i64 0, ptr {at("counts", 1)}
  store i64 0, ptr {at("counts", 3)}
  store double 0.0, ptr {at("numbers", 2)}
  call void @copy(ptr {at("ends")}, ptr {at("draw")}, i64 {n})
  call void @copy(ptr {at("ends", n)}, ptr {at("sums")}, i64 {n})
  call void @copy(ptr {at("ends", 2 * n)}, ptr {at("draw", n)}, i64 {n})
  call void @copy(ptr {at("ends", 3 * n)}, ptr {at("ends")}, i64 {3 * n})
  br label %kinetic
kinetic:
  %k = phi i64 [ 0, %entry ], [ %k.after, %kinetic ]
  %squares = phi double [ 0.0, %entry ], [ %squares.after, %kinetic ]
  %p.at = getelementptr double, ptr {at("sums")}, i64 %k
  %v.at = getelementptr double, ptr {at("variances")}, i64 %k
  %p = load double, ptr %p.at
  %v = load double, ptr %v.at
  %square = fmul double %p, %p
  %part = fmul double %v, %square
  %squares.after = fadd double %squares, %part
  %k.after = add i64 %k, 1
  %k.more = icmp slt i64 %k.after, {n}
  br i1 %k.more, label %kinetic, label %start
start:
  %half = fmul double %squares.after, 0.5
  %density = load double, ptr {at("drawn")}
  %energy = fsub double %half, %density
  store double %energy, ptr {at("numbers")}
  store double %energy, ptr {at("drawn", 1)}
  br label %doubled
doubled:
  %depth = phi i64 [ 0, %start ], [ %depth.new, %longer ]
  %weight = phi double [ 0.0, %start ], [ %weight.new, %longer ]
  %u = call double @uniform()
  %forward = fcmp olt double %u, 0.5
  %h = load double, ptr {at("numbers", 1)}
  %h.size = call double @llvm.fabs.f64(double %h)
  %h.back = fneg double %h.size
  %h.new = select i1 %forward, double %h.size, double %h.back
  store double %h.new, ptr {at("numbers", 1)}
  %near = select i1 %forward, ptr {at("ends")}, ptr {at("ends", 3 * n)}
  %far = select i1 %forward, ptr {at("ends", 3 * n)}, ptr {at("ends")}
  call void @copy(ptr {at("point")}, ptr %near, i64 {3 * n})
  %before = load double, ptr {at("drawn")}
  %goes = call i1 @built(i64 %depth)
  store double %before, ptr {at("drawn")}
  %depth.new = add i64 %depth, 1
  br i1 %goes, label %taken, label %end
taken:
  %place = mul i64 %depth, {tree}
  %tree = getelementptr double, ptr {at("trees")}, i64 %place
  %tree.sum = getelementptr double, ptr %tree, i64 {n}
  %tree.draw = getelementptr double, ptr %tree, i64 {2 * n}
  %tree.numbers = getelementptr double, ptr %tree, i64 {4 * n}
  %tree.weight.at = getelementptr double, ptr %tree, i64 {4 * n + 2}
  %tree.weight = load double, ptr %tree.weight.at
  %takes = call i1 @takes(double %weight, double %tree.weight)
  br i1 %takes, label %moved, label %joined
moved:
  call void @copy(ptr {at("draw")}, ptr %tree.draw, i64 {2 * n})
  call void @copy(ptr {at("drawn")}, ptr %tree.numbers, i64 2)
  br label %joined
joined:
  %weight.new = call double @joined(double %weight, double %tree.weight)
  %near.momentum = getelementptr double, ptr %near, i64 {n}
  %far.momentum = getelementptr double, ptr %far, i64 {n}
  %whole = call i1 @turns(ptr %far.momentum, ptr {at("point", n)}, ptr {at("sums")}, ptr %tree.sum)
  %left = call i1 @turns(ptr %far.momentum, ptr %tree, ptr {at("sums")}, ptr %tree)
  %right = call i1 @turns(ptr %near.momentum, ptr {at("point", n)}, ptr %tree.sum, ptr %near.momentum)
  call void @copy(ptr %near, ptr {at("point")}, i64 {3 * n})
  call void @add(ptr {at("sums")}, ptr {at("sums")}, ptr %tree.sum)
  %some = or i1 %whole, %left
  %any = or i1 %some, %right
  %full = icmp sge i64 %depth.new, %deepest
  %ends = or i1 %any, %full
  br i1 %ends, label %end, label %longer
longer:
  br label %doubled
end:
  ret i64 %depth.new
}}
"""


class CompiledSampler(NoUTurnSampler):
    """A sampler whose transitions are machine code."""

    def __init__(self, density: CompiledDensity, max_depth: int, random: np.random.Generator) -> None:
        self._compiled = density
        super().__init__(self._evaluated, density.size, max_depth, random)
        self._state = density.state
        self._state.counts[0] = random.integers(-(2**63), 2**63 - 1)
        # The position and the variances that the machine code has.
        self._position: Any = None
        self._scaled: Any = None

    def _evaluated(self, _position: Any) -> tuple[float, Any]:
        raise NotImplementedError("machine code evaluates the density")

    def transition(self, position: Any, density: float, gradient: Any) -> Transition:
        state, n = self._state, len(position)
        if position is not self._position:
            state.draw[:n], state.draw[n:], state.drawn[0] = position, gradient, density
        if self.variances is not self._scaled:
            state.variances[:] = self._scaled = self.variances
            self._deviations = np.sqrt(self.variances)
        np.divide(self.random.standard_normal(n), self._deviations, state.sums)
        state.numbers[1] = self.step_size
        state.counts[2] = self._most_steps()
        depth = self._compiled.transition(self.max_depth)
        self._compiled.check()
        _, steps, _, diverged = state.counts.tolist()
        limits.charge(steps * self._compiled.elements)
        density, energy = state.drawn.tolist()
        found = state.draw.copy()
        self._position = found[:n]
        acceptance = state.numbers.item(2) / steps
        return Transition(self._position, density, found[n:], depth, steps, acceptance, bool(diverged), energy)

    def _most_steps(self) -> int:
        """The number of steps that the budget allows."""
        budget = limits.budget()
        most: int = 2**self.max_depth
        return most if budget is None else min(most, int(budget.elements) // max(1, self._compiled.elements))

    def leapfrog(self, point: PhasePoint, direction: float) -> PhasePoint:
        state, n = self._state, len(point.position)
        state.variances[:] = self._scaled = self.variances
        self._deviations, self._position = np.sqrt(self.variances), None
        state.point[:n], state.point[n : 2 * n], state.point[2 * n :] = point.position, point.momentum, point.gradient
        state.numbers[1] = direction * self.step_size
        self._compiled.step()
        self._compiled.check()
        found = state.point.copy()
        return PhasePoint(found[:n], found[n : 2 * n], float(state.drawn[0]), found[2 * n :])
