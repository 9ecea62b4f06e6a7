"""Group elementwise equations into compiled loops, each of which is one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from gradcli.arrays.shapes import Shape
from gradcli.executors import llvm_loops, llvm_ufuncs
from gradcli.executors.schedule import Segment
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Equation, Variable

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
        text = llvm_loops.text("merged", [*equations.values()], inputs, outputs)
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
        if llvm_loops.takes(equation):
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
