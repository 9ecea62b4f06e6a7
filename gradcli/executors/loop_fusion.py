"""Group elementwise equations into compiled loops, each of which is one pass over memory, and decide when that pays.

Each primitive is one machine operation with the same rounding as in NumPy, so that a loop gives exactly the results of
NumPy's functions called one after the other, except for the signs of nan. No operations are contracted into fused ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from threading import Lock

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors import llvm_ufuncs
from gradcli.executors.llvm_equations import LOGIC, EquationCode, writers
from gradcli.executors.schedule import Segment
from gradcli.executors.vector_functions import PairsPolicy, Used
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions
from gradcli.primitives.entries import comparisons, powers
from gradcli.program.ir import Atom, Equation, Variable

# The number of elements that are computed at a time if the arrays are contiguous.
_WIDTH = 8
_SIZES = {"float64": 8, "bool": 1}
_IN_MEMORY = {"float64": "double", "bool": "i8"}


def may_be_fused(equation: Equation) -> bool:
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


def loop_text(name: str, equations: Sequence[Equation], inputs: Sequence[Variable], outputs: Sequence[Variable]) -> str:
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


# The maximum number of operands of a loop, because NumPy limits those of a ufunc.
_MOST_OPERANDS = 60
# A longer loop takes too long to compile.
_MOST_EQUATIONS = 200
# A loop over a single equation would not be faster than NumPy.
_FEWEST_EQUATIONS = 2

Readers = Mapping[Variable, Sequence[int]]


class FusedLoop(NamedTuple):
    """Equations over one shape that one loop computes, by their outputs and in order.

    `outputs` are the variables that are read elsewhere, and `inputs` the variables that are read from elsewhere.
    """

    equations: Mapping[Variable, Equation]
    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    loop: llvm_ufuncs.Loop

    @classmethod
    def of(
        cls, equations: Mapping[Variable, Equation], inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> FusedLoop | None:
        """The merged equations, or None if no loop can be compiled for them."""
        text = loop_text("merged", [*equations.values()], inputs, outputs)
        loop = llvm_ufuncs.as_ufunc(
            llvm_ufuncs.compile_loop("merged", text), [v.dtype for v in inputs], [v.dtype for v in outputs]
        )
        return None if loop is None else cls(equations, inputs, outputs, loop)


Step = Equation | Segment | FusedLoop


def fused(
    steps: Sequence[Equation | Segment], read: Container[Variable], may_move: Callable[[Equation], bool]
) -> list[Step]:
    """The steps, reordered so that as many equations as possible are computed in common loops.

    `read` are the variables that are read outside of these steps. Steps for which `may_move` is false keep their order
    relative to all others.
    """
    readers: dict[Variable, list[int]] = {}
    for number, step in enumerate(steps):
        for variable in _reads(step):
            readers.setdefault(variable, []).append(number)
    found: list[Step] = []
    run: dict[int, Equation] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Equation) and may_move(step):
            run[number] = step
        else:
            found += [*_merged(run, readers, read), step]
            run = {}
    return [*found, *_merged(run, readers, read)]


def _reads(step: Equation | Segment) -> Collection[Variable]:
    equations = [step] if isinstance(step, Equation) else step.equations.values()
    return dict.fromkeys(a for e in equations for a in e.inputs if isinstance(a, Variable))


def _merged(run: Mapping[int, Equation], readers: Readers, read: Container[Variable]) -> Iterator[Step]:
    order = _Order(run, readers)
    while not order.is_done():
        yield from _step(order.loop(), readers, read)
        yield from order.others()


class _Order:
    """A topological order of equations: it hands out those whose operands are all available."""

    def __init__(self, equations: Mapping[int, Equation], readers: Readers) -> None:
        self._equations = equations
        self._readers = readers
        made = {e.output for e in equations.values()}
        self._missing = {n: sum(v in made for v in _reads(e)) for n, e in equations.items()}
        # The ready equations that can be part of a loop, by shape, and the other ready ones.
        self._loops: dict[Shape, list[int]] = {}
        self._others: list[int] = []
        for number, missing in self._missing.items():
            if not missing:
                self._is_ready(number)

    def is_done(self) -> bool:
        return not self._loops and not self._others

    def loop(self) -> Mapping[int, Equation]:
        """The largest set of ready equations of one shape that fits in one loop."""
        group: dict[int, Equation] = {}
        shape = next(iter(self._loops), None)
        while shape in self._loops and len(group) < _MOST_EQUATIONS:
            ready = self._loops[shape]
            number = heappop(ready)
            if not ready:
                del self._loops[shape]
            group[number] = self._equations[number]
            self._take(number)
        return group

    def others(self) -> Sequence[Equation]:
        """The ready equations that cannot be part of a loop."""
        numbers, self._others = sorted(self._others), []
        for number in numbers:
            self._take(number)
        return [self._equations[n] for n in numbers]

    def _take(self, number: int) -> None:
        for reader in self._readers.get(self._equations[number].output, ()):
            if reader in self._missing:
                self._missing[reader] -= 1
                if not self._missing[reader]:
                    self._is_ready(reader)

    def _is_ready(self, number: int) -> None:
        equation = self._equations[number]
        if may_be_fused(equation):
            heappush(self._loops.setdefault(equation.output.shape, []), number)
        else:
            self._others.append(number)


def _step(group: Mapping[int, Equation], readers: Readers, read: Container[Variable]) -> Sequence[Step]:
    """A group as one step; as several if it has too many operands, or is not worth a loop."""
    if len(group) < _FEWEST_EQUATIONS:
        return [*group.values()]
    equations = {e.output: e for e in group.values()}
    inputs = list(dict.fromkeys(v for e in equations.values() for v in _reads(e) if v not in equations))
    outputs = [v for v in equations if v in read or any(n not in group for n in readers.get(v, ()))]
    if len(inputs) + len(outputs) > _MOST_OPERANDS:
        items, half = [*group.items()], len(group) // 2
        return [s for part in (items[:half], items[half:]) for s in _step(dict(part), readers, read)]
    # A ufunc needs at least one input and one output.
    found = FusedLoop.of(equations, inputs, outputs) if inputs and outputs else None
    return [*equations.values()] if found is None else [found]


# Compiling an equation takes as long as NumPy takes for ELEMENTS_PER_COMPILE elements, and loading the compiler as long
# as compiling _EQUATIONS_PER_LOADING equations.
ELEMENTS_PER_COMPILE = 2**20
_EQUATIONS_PER_LOADING = 32
# The maximum number of equations that are compiled; more would occupy the compiler for longer than some seconds.
_MOST_COMPILED = 10_000
# Calling a NumPy function takes as long as computing this many elements.
_ELEMENTS_PER_CALL = 512


class CompilePolicy:
    """Counts the work of runs until compiling pays.

    What is compiled are functions that compute pairs of others `together`, and loops for equations that are `merged`.
    Loops give the same results as NumPy, so that the time of the switch does not matter; for pairs see `PairsPolicy`.
    """

    def __init__(self, equations: Sequence[Equation], *, reproducible: bool) -> None:
        self._pairs = PairsPolicy(equations, reproducible=reproducible)
        self.merged = False
        shapes = [e.output.shape for e in equations if may_be_fused(e)]
        # A loop over a single equation would not be faster than NumPy.
        some = 1 < len(shapes) <= _MOST_COMPILED
        self._each = sum(math.prod(shape) + _ELEMENTS_PER_CALL for shape in shapes) if some else 0
        self._left = ELEMENTS_PER_COMPILE * (len(shapes) + _EQUATIONS_PER_LOADING)
        self._once = Lock()
        self._update()

    def count_run(self) -> bool:
        """Count one run; return whether something new is to be compiled. Of several threads, only one gets True."""
        pairs, loops = self._pairs.count_run(), self._are_many()
        self.merged = self.merged or loops
        self._update()
        return pairs or loops

    @property
    def together(self) -> Used:
        """The compiled functions of pairs."""
        return self._pairs.used

    def _update(self) -> None:
        # Whether counting can still lead to compiling.
        self.counts = self._pairs.may_compile() or (self._each > 0 and not self._once.locked())

    def _are_many(self) -> bool:
        self._left -= self._each
        return self._left < 0 < self._each and self._once.acquire(blocking=False) and llvm_ufuncs.is_available()
