"""Decide which equations of a program are computed together block by block, and in what order.

Elementwise equations on large arrays of one shape, and reductions of them, form a *segment*: one pass over blocks, in
which intermediate results never exist as whole arrays. Equations that depend on a reduction must wait until the pass is
over, so segments are arranged in *levels*. All other equations are computed on whole arrays in between.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.executors.vector_functions import pair_of
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, linear, reductions
from gradcli.primitives.entries.shape import concat
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Equation, Program, Variable

# The elements of a block: large enough to amortise the overhead of each NumPy call, small enough for several blocks to
# fit into the L2 cache of a core.
BLOCK = 32_768
# Partial reductions need blocks of whole rows, which may have up to this many elements.
LONGEST_ROW = 4 * BLOCK
# A variable that takes at most this many equations is recomputed in a later segment instead of being stored.
_CHEAP = 8

_MAY_BE_THE_SAME = (arithmetic.identity, conversions.cast)
_FLOATING = ("float64", "float32")


def is_reduction(primitive: Primitive) -> bool:
    """Return whether it reduces numbers by an associative operation on two elements.

    `prod` is excluded: a partial product may overflow where the whole does not, and is then recomputed.
    """
    return primitive.reduces is not None and not primitive.truths and primitive is not reductions.prod


class Segment:
    """Equations that are computed together, over blocks of `shape`.

    `stored` are the variables that are needed elsewhere as whole arrays.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.equations: dict[Variable, Equation] = {}
        self.stored: dict[Variable, None] = {}
        self.guards: list[Variable] = []

    def prune(self) -> None:
        """Drop the equations whose results are not needed any more, because other segments recompute them."""
        needed: set[Atom] = {*self.stored, *self.guards}
        kept = []
        for equation in reversed(self.equations.values()):
            if equation.output in needed or not equation.primitive.elementwise:
                kept.append(equation)
                needed.update(a for a in equation.inputs if isinstance(a, Variable))
        self.equations = {e.output: e for e in reversed(kept)}

    def reductions(self) -> Iterable[Equation]:
        return (e for e in self.equations.values() if not e.primitive.elementwise)

    def is_partial(self) -> bool:
        """Return whether a reduction runs over some axes only."""
        return any(len(e.params["axis"]) < len(self.shape) for e in self.reductions())


class Schedule(NamedTuple):
    """Steps in order: equations to be computed on whole arrays, and segments."""

    steps: tuple[Equation | Segment, ...]


class Fusion(NamedTuple):
    """The equations that an executor computes in segments: those over `smallest` elements that it `takes`.

    A partial reduction is included if the elements of one index of the first axis number at most `longest_row`. Results of
    equations that it `keeps` are stored rather than recomputed in a later segment.
    """

    smallest: int
    longest_row: int
    takes: Callable[[Equation], bool]
    keeps: Callable[[Equation], bool]


def schedule(program: Program, fusion: Fusion | None = None) -> Schedule:
    """The steps that compute `program`; by default in blocks that suit NumPy."""
    for_numpy = Fusion(BLOCK + 1, LONGEST_ROW, takes=lambda _equation: True, keeps=_is_slow)
    return _Scheduler(program, fusion or for_numpy).run()


def _is_slow(equation: Equation) -> bool:
    """Return whether computing an equation again takes NumPy longer than storing and reading its result.

    A compiled function computes it together with another one, which often is needed earlier.
    """
    return pair_of(equation) is not None


class _Placement(NamedTuple):
    """The segment `key` in which a variable is computed; None if it is computed on whole arrays.

    `level` is the first level at which it can be read whole.
    """

    key: tuple[Shape, int] | None
    level: int


_GIVEN = _Placement(None, 0)


class _Scheduler:
    def __init__(self, program: Program, fusion: Fusion) -> None:
        self.program = program
        self.fusion = fusion
        self.places: dict[Variable, _Placement] = dict.fromkeys(program.inputs, _GIVEN)
        self.segments: dict[tuple[Shape, int], Segment] = {}
        self.whole: dict[int, list[Equation]] = {}
        self.made: dict[Variable, Equation] = {}
        self.order = {e.output: i for i, e in enumerate(program.equations)}
        self.outputs = {a for a in program.outputs if isinstance(a, Variable)}

    def run(self) -> Schedule:
        for equation in map(self._without_broadcasting, self.program.equations):
            self.made[equation.output] = equation
            self._place(equation)
        for output in self.outputs:
            self._store(output)
        for guard in self.program.guards:
            key = self.places[guard].key
            if key is not None:
                self.segments[key].guards.append(guard)
        for segment in self.segments.values():
            segment.prune()
        levels = sorted({level for _, level in self.segments} | set(self.whole))
        steps: list[Equation | Segment] = []
        for level in levels:
            steps += self.whole.get(level, ())
            steps += [s for (_, at), s in self.segments.items() if at == level and s.equations]
        return Schedule(tuple(steps))

    def _without_broadcasting(self, equation: Equation) -> Equation:
        """An elementwise equation that reads the sources of broadcast operands, if the result shape stays the same."""
        if not equation.primitive.elementwise:
            return equation
        sources = [self._source(a) for a in equation.inputs]
        shapes = [arrays.shape(s) for s in sources]
        if sources and broadcast(shapes) == equation.output.shape:
            return equation._replace(inputs=tuple(sources))
        return equation

    def _source(self, atom: Atom) -> Atom:
        if isinstance(atom, Variable):
            made = self.made.get(atom)
            return made.inputs[0] if made is not None and made.primitive is conversions.broadcast_to else atom
        return _without_broadcast_axes(atom)

    def _place(self, equation: Equation) -> None:
        over = self._blocked_shape(equation)
        if over is None:
            level = max((self._level(a) for a in equation.inputs), default=0)
            self.whole.setdefault(level, []).append(equation)
            self.places[equation.output] = _Placement(None, level)
            for atom in equation.inputs:
                self._store(atom)
            return
        level = max(
            (p.key[1] if p.key and p.key[0] == over and self._blocked(a) else p.level)
            for a, p in ((a, self._placed(a)) for a in equation.inputs)
        )
        key = (over, level)
        segment = self.segments.setdefault(key, Segment(over))
        for atom in equation.inputs:
            self._make_available(atom, key, segment)
        segment.equations[equation.output] = equation
        self.places[equation.output] = _Placement(key, level + 1)

    def _make_available(self, atom: Atom, key: tuple[Shape, int], segment: Segment) -> None:
        """Make an operand available in a segment: recomputed there, or stored before it."""
        if not isinstance(atom, Variable) or atom in segment.equations:
            return
        again = self._recomputation(atom, key[0], segment)
        if again is None:
            self._store(atom)
            return
        for equation in again:
            segment.equations[equation.output] = equation
            for other in equation.inputs:
                if isinstance(other, Variable) and other not in segment.equations:
                    self._store(other)

    def _recomputation(self, variable: Variable, over: Shape, segment: Segment) -> Sequence[Equation] | None:
        """The equations, in order, that recompute a variable of an earlier segment of this shape.

        None if they are too many or slow, or the variable is stored anyway.
        """
        found: dict[Variable, Equation] = {}
        stack = [variable]
        while stack:
            atom = stack.pop()
            place = self._placed(atom)
            if atom in found or atom in segment.equations:
                continue
            if place.key is None or place.key[0] != over or not self._blocked(atom) or self._is_stored(atom, place.key):
                if atom is variable:
                    return None
                continue
            found[atom] = self.made[atom]
            if len(found) > _CHEAP or self.fusion.keeps(found[atom]):
                return None
            stack += [a for a in self.made[atom].inputs if isinstance(a, Variable)]
        return [found[v] for v in sorted(found, key=self.order.__getitem__)]

    def _is_stored(self, variable: Variable, key: tuple[Shape, int]) -> bool:
        return variable in self.outputs or variable in self.segments[key].stored

    def _blocked_shape(self, equation: Equation) -> Shape | None:
        """The shape over which an equation is computed block by block; None if it is computed on whole arrays."""
        if not self.fusion.takes(equation):
            return None
        if equation.primitive.elementwise:
            over = equation.output.shape
        elif is_reduction(equation.primitive) and arrays.dtype_name(equation.inputs[0]) in _FLOATING:
            over = arrays.shape(equation.inputs[0])
            partial = len(equation.params["axis"]) < len(over)
            if partial and (math.prod(over[1:]) > self.fusion.longest_row or over[0] < 2):
                return None
        else:
            return None
        return over if math.prod(over) >= self.fusion.smallest else None

    def _placed(self, atom: Atom) -> _Placement:
        return self.places[atom] if isinstance(atom, Variable) else _GIVEN

    def _level(self, atom: Atom) -> int:
        return self._placed(atom).level

    def _blocked(self, atom: Atom) -> bool:
        """Return whether an atom is computed block by block in a segment; a reduction is not."""
        return isinstance(atom, Variable) and atom in self.made and self.made[atom].primitive.elementwise

    def _store(self, atom: Atom) -> None:
        """Make a variable available as a whole array, wherever it is computed."""
        place = self._placed(atom)
        if place.key is not None and self._blocked(atom):
            self.segments[place.key].stored[atom] = None


def _without_broadcast_axes(constant: Any) -> Any:
    """A constant with its broadcast axes reduced to size 1."""
    strides = getattr(constant, "strides", ())
    if 0 not in strides:
        return constant
    kept = constant[tuple(slice(0, 1) if step == 0 else slice(None) for step in strides)]
    return kept.reshape(())[()] if kept.size == 1 else kept


def unshared(program: Program) -> frozenset[Variable]:
    """The variables whose arrays share memory with no other: not with an input, a view or a second output."""
    own = {e.output for e in program.equations if _makes_array(e)}
    for equation in program.equations:
        if not _makes_array(equation) and not is_reduction(equation.primitive):
            own.difference_update(a for a in equation.inputs if isinstance(a, Variable))
    given = Counter(a for a in program.outputs if isinstance(a, Variable))
    return frozenset(v for v in own if given[v] < 2)


def exclusive(program: Program) -> frozenset[Variable]:
    """The variables whose arrays are used nowhere else: those that are `unshared` and not outputs."""
    return unshared(program).difference(a for a in program.outputs if isinstance(a, Variable))


def _makes_array(equation: Equation) -> bool:
    """Return whether the result shares no memory with the operands."""
    elementwise = equation.primitive.elementwise and equation.primitive not in _MAY_BE_THE_SAME
    return elementwise or equation.primitive in (linear.matmul, concat)
