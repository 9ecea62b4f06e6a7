"""Which results of a program of arrays are stored in memory, and which are computed where they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.loops.array_code.array_views import NotWrittenError, is_movement, is_strided
from gradcli.loops.array_code.element_code import cost, is_elementwise
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import conversions
from gradcli.primitives.entries import arithmetic, comparisons, exponential, indexing, linear, reductions, scans, shape
from gradcli.program.ir import Atom, Equation, Program, Variable

# The cost of computing elements again up to which they are not stored.
_AGAIN = 5
# The number of equations that are computed in one nest of loops at most, which bounds the depth of recursion.
_MOST_TOGETHER = 60
# The number of different places at most at which elements are computed again.
_MOST_PLACES = 12
_NO_PARAMS: Mapping[str, Any] = {}
REDUCTIONS = frozenset(
    [reductions.sum_, reductions.prod, reductions.max_, reductions.min_, reductions.any_, reductions.all_]
)


class Labels(NamedTuple):
    """The labels of the axes of both operands of a product and of its result; operands are summed over the others."""

    left: Sequence[Any]
    right: Sequence[Any]
    result: Sequence[Any]

    def sizes(self, equation: Equation) -> dict[Any, int]:
        """The size of each axis."""
        found: dict[Any, int] = {}
        for labels, atom in zip((self.left, self.right), equation.inputs):
            for label, size in zip(labels, atom.shape):
                found[label] = max(size, found.get(label, 1))
        return found

    def summed(self) -> list[Any]:
        return [a for a in dict.fromkeys((*self.left, *self.right)) if a not in self.result]


def labels_of(equation: Equation) -> Labels | None:
    """The labels of a product of two operands; None for other equations."""
    if equation.primitive is linear.matmul:
        (left, right), result = linear.matmul_letters([atom.shape for atom in equation.inputs])
        return Labels(left, right, result)
    if equation.primitive is linear.contract and len(equation.inputs) == 2:
        left, right = equation.params["terms"]
        return Labels(left, right, equation.params["result"])
    return None


def is_outer(equation: Equation) -> bool:
    """Return whether a product has no sum, so that its elements are products of two numbers."""
    labels = labels_of(equation)
    if labels is None:
        return False
    sizes = labels.sizes(equation)
    return all(sizes[label] == 1 for label in labels.summed())


def is_lazy(equation: Equation) -> bool:
    """Return whether each element of a result can be computed on its own from one element of each operand."""
    return is_elementwise(equation.primitive) or is_movement(equation) or is_outer(equation)


class ArrayProgram:
    """A program in terms of few kinds of equations, see `is_lazy` and `is_written`; `defined` has them by results.

    `constants` are the arrays that it reads. The results in `stored` are written to memory; those in `aliases` have the
    elements of other results or inputs in the same order; all others are computed where they are read.

    Raises NotWrittenError if there is another kind of equation.
    """

    def __init__(self, program: Program) -> None:
        self.inputs = program.inputs
        self.constants: dict[Variable, Any] = {}
        self.defined: dict[Variable, Equation] = {}
        self.aliases: dict[Variable, Atom] = {}
        for equation in program.equations:
            for simpler in _rewritten(self._with_variables(equation)):
                self._add(self._with_variables(simpler))
        self.outputs = [self._atom(a) for a in program.outputs]
        self.stored = self._stored()

    def _with_variables(self, equation: Equation) -> Equation:
        return equation._replace(inputs=tuple(map(self._atom, equation.inputs)))

    def _atom(self, atom: Atom) -> Atom:
        """An atom, with a variable for a constant array."""
        if isinstance(atom, Variable):
            return atom
        array = arrays.numpy_namespace().asarray(atom)
        if array.dtype.kind not in "biuf":
            raise NotWrittenError
        if not array.shape:
            return float(array)
        variable = Variable(array.shape, "float64")
        self.constants[variable] = array.astype("float64")
        return variable

    def _add(self, equation: Equation) -> None:
        output = equation.output
        if output.dtype not in ("float64", "bool") or 0 in output.shape:
            raise NotWrittenError
        self.defined[output] = equation
        if equation.primitive is conversions.reshape and not is_movement(equation):
            self.aliases[output] = equation.inputs[0]
        elif not (is_lazy(equation) or is_written(equation)):
            raise NotWrittenError

    def _stored(self) -> set[Variable]:
        forced = self._forced()
        costs = self._costs(forced)
        repeated = {a for e in self.defined.values() if _repeats(e) for a in _broadcast(e)}
        # The nests of loops in which each result is read, each with the views and broadcasts on the way to its equation.
        places: dict[Variable, set[tuple[Any, ...]]] = {}
        for number, atom in enumerate(self.outputs):
            if isinstance(atom, Variable):
                places.setdefault(self.base(atom), set()).add((number,))
        found = set[Variable]()
        for output, equation in reversed(self.defined.items()):
            own = places.get(output)
            if own is None or output in self.aliases:
                continue
            own_cost = costs[output]
            again = (len(own) - 1) * own_cost > _AGAIN or len(own) > _MOST_PLACES
            if output in forced or again or (own_cost > _AGAIN and output in repeated):
                found.add(output)
                own = {(id(equation),)}
            for atom, paths in _places_of_operands(equation, own):
                places.setdefault(self.base(atom), set()).update(paths)
        return found

    def base(self, variable: Variable) -> Variable:
        """The variable that has the elements of this one in the same order."""
        while variable in self.aliases:
            variable = self.aliases[variable]
        return variable

    def _forced(self) -> set[Variable]:
        """The results that have to be stored."""
        found = set[Variable]()
        for output, e in self.defined.items():
            if output in self.aliases:
                found.add(self.base(output))
            elif not is_lazy(e):
                found.add(output)
                if labels_of(e) is not None:
                    found.update(self.base(self._behind_views(a)) for a in e.inputs)
        return found & self.defined.keys()

    def _behind_views(self, variable: Variable) -> Variable:
        """The variable whose memory has the elements of this one at regular distances."""
        while variable in self.defined and is_strided(self.defined[variable]):
            variable = self.defined[variable].inputs[0]
        return variable

    def _costs(self, forced: set[Variable]) -> dict[Variable, int]:
        """The cost of computing an element of each result; with too many equations behind them, results are `forced`."""
        behind: dict[Variable, dict[Variable, int]] = {}
        for output, e in self.defined.items():
            together = {output: 0 if is_movement(e) else cost(e)}
            for atom in e.inputs:
                if atom not in forced:
                    together |= behind.get(atom, {})
            behind[output] = together
            if len(together) > _MOST_TOGETHER:
                forced.add(output)
        return {output: sum(together.values()) for output, together in behind.items()}


def _places_of_operands(
    equation: Equation, places: set[tuple[Any, ...]]
) -> Iterable[tuple[Variable, set[tuple[Any, ...]]]]:
    """The places where an equation that is computed at some places reads its operands."""
    moves = is_movement(equation) or is_outer(equation)
    for number, atom in enumerate(equation.inputs):
        if not isinstance(atom, Variable):
            continue
        if moves:
            yield atom, {(*p, id(equation), number) for p in places}
        elif atom.shape != equation.output.shape:
            yield atom, {(*p, atom.shape, equation.output.shape) for p in places}
        else:
            yield atom, places


def _broadcast(equation: Equation) -> list[Variable]:
    """The operands that are smaller than the result."""
    size = math.prod(equation.output.shape)
    return [a for a in equation.inputs if isinstance(a, Variable) and math.prod(a.shape) < size]


def _repeats(equation: Equation) -> bool:
    return is_elementwise(equation.primitive) or is_outer(equation) or equation.primitive is conversions.broadcast_to


def is_written(equation: Equation) -> bool:
    """Return whether code is written for an equation that is not lazy."""
    primitive = equation.primitive
    others = (scans.cumsum, scans.cumprod, indexing.scatter)
    return primitive in REDUCTIONS or primitive in others or labels_of(equation) is not None


def _rewritten(equation: Equation) -> Iterable[Equation]:
    """An equation in terms of simpler ones."""
    primitive, x, params, output = equation.primitive, equation.inputs[0], equation.params, equation.output
    if primitive is reductions.mean:
        total = Variable(output.shape, "float64")
        count = float(reductions.count_along(x.shape, params["axis"]))
        return [
            Equation(reductions.sum_, (x,), params, total),
            Equation(arithmetic.divide, (total, count), _NO_PARAMS, output),
        ]
    if primitive in (shape.tril, shape.triu):
        xp = arrays.numpy_namespace()
        kept = getattr(xp, primitive.name)(xp.ones(x.shape[-2:]), params["k"])
        return [Equation(comparisons.where, (kept, x, 0.0), _NO_PARAMS, output)]
    if primitive is scans.softmax:
        return _softmax(x, params["axis"], output)
    return [equation]


def _softmax(x: Variable, axis: int, output: Variable) -> Iterable[Equation]:
    along = {"axis": (axis,), "keepdims": True}
    kept: Shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    largest, total = Variable(kept, "float64"), Variable(kept, "float64")
    shifted, powers_ = Variable(x.shape, "float64"), Variable(x.shape, "float64")
    return [
        Equation(reductions.max_, (x,), along, largest),
        Equation(arithmetic.subtract, (x, largest), _NO_PARAMS, shifted),
        Equation(exponential.exp, (shifted,), _NO_PARAMS, powers_),
        Equation(reductions.sum_, (powers_,), along, total),
        Equation(arithmetic.divide, (powers_, total), _NO_PARAMS, output),
    ]
