"""Rewrites a program of tensors as a program of scalars: each element of an input becomes an input of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.primitives.entries import linear
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import not_equal, where
from gradcli.primitives.entries.exponential import exp, log
from gradcli.primitives.entries.indexing import scatter
from gradcli.primitives.entries.reductions import mean
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Atom, Element, Equation, Program, Variable
from gradcli.program.positions import broadcast_positions, source_positions, targets

# Bound on the number of equations: beyond it, nobody reads a formula by its elements.
_MOST_EQUATIONS = 5_000
# Bound on the side of a matrix: the determinant of a larger one has more terms than Gaussian elimination has
# operations.
_LARGEST_MATRIX = 3
# Cost of an equation in eighths of a step.
_EQUATION = 16

# The elements of a tensor in row-major order.
_Elements = list[Atom]


class TensorsNeededError(Exception):
    """A primitive has no elementwise form, or there are too many elements."""


def by_element(program: Program) -> Program:
    """Rewrite a program; the outputs of the result are the elements of each output, one output after the other.

    Its inputs are `Element`s of the inputs of `program`, or these inputs where they are scalars. Raises
    TensorsNeededError.
    """
    split = _Split(program.inputs)
    for equation in program.equations:
        split.known[equation.output] = split.equation(equation)
    outputs = itertools.chain.from_iterable(map(split.elements, program.outputs))
    return Program(tuple(split.inputs), tuple(split.equations), tuple(outputs))


class _Split:
    def __init__(self, inputs: Sequence[Variable]) -> None:
        self.inputs: list[Variable] = []
        self.equations: list[Equation] = []
        self.known: dict[Variable, _Elements] = {}
        for variable in inputs:
            self._check(math.prod(variable.shape))
            keys = itertools.product(*map(range, variable.shape))
            elements = [Element(variable, key) for key in keys] if variable.shape else [variable]
            self.known[variable] = [*elements]
            self.inputs += elements

    def elements(self, atom: Atom) -> _Elements:
        if isinstance(atom, Variable):
            return self.known[atom]
        if not arrays.shape(atom):
            return [atom]
        self._check(arrays.size(atom))
        found: _Elements = arrays.to_numpy(atom).ravel().tolist()
        return found

    def equation(self, equation: Equation) -> _Elements:
        primitive, inputs, params, output = equation
        operands = [self.elements(a) for a in inputs]
        if primitive.elementwise:
            return self._each(equation, operands)
        shapes = [arrays.shape(a) for a in inputs]
        if primitive.moves:
            return self._moved(equation, operands)
        if primitive is scatter:
            return self._scattered(operands[0], shapes[0], params, output)
        if primitive.reduces is not None:
            return self._reduced(primitive, operands[0], shapes[0], params, output.dtype)
        if primitive is linear.matmul:
            return self._contracted(operands, shapes, *linear.matmul_letters(shapes))
        if primitive is linear.contract:
            return self._contracted(operands, shapes, params["terms"], params["result"])
        rule = _RULES.get(primitive.name)
        if rule is not None:
            return rule(self, operands, shapes, params)
        parts = primitive.by_element(shapes, params) if primitive.by_element is not None else None
        if parts is None:
            raise TensorsNeededError
        return [self.apply(p, *(operands[i][k] for i, k in places), params=own) for p, places, own in parts]

    def apply(
        self, primitive: Primitive, *inputs: Atom, params: Mapping[str, Any] | None = None, dtype: str = "float64"
    ) -> Variable:
        self._check(len(self.equations))
        limits.charge_steps(_EQUATION)
        output = Variable((), dtype)
        self.equations.append(Equation(primitive, inputs, params or {}, output))
        return output

    def _check(self, count: int) -> None:
        if count > _MOST_EQUATIONS:
            raise TensorsNeededError

    def _each(self, equation: Equation, operands: Sequence[_Elements]) -> _Elements:
        primitive, inputs, params, output = equation
        self._check(math.prod(output.shape))
        spread = [self._spread(e, arrays.shape(a), output.shape) for e, a in zip(operands, inputs)]
        found = []
        for atoms in zip(*spread):
            known = primitive is where and type(atoms[0]) is bool
            chosen = (atoms[1] if atoms[0] else atoms[2]) if known else None
            same = chosen is not None and arrays.dtype_name(chosen) == output.dtype
            found.append(chosen if same else self.apply(primitive, *atoms, params=params, dtype=output.dtype))
        return found

    def _spread(self, elements: _Elements, given: Shape, wanted: Shape) -> _Elements:
        if given == wanted:
            return elements
        return [elements[i] for i in broadcast_positions(given, wanted).ravel().tolist()]

    def _moved(self, equation: Equation, operands: Sequence[_Elements]) -> _Elements:
        self._check(math.prod(equation.output.shape))
        zero = arrays.asarray(0.0, equation.output.dtype)
        everything = [zero, *itertools.chain.from_iterable(operands)]
        return [everything[i] for i in source_positions(equation).ravel().tolist()]

    def _scattered(self, elements: _Elements, given: Shape, params: Mapping[str, Any], output: Variable) -> _Elements:
        self._check(math.prod(output.shape))
        places = targets(params)
        sources = self._spread(elements, given, places.shape)
        found: list[_Elements] = [[] for _ in range(math.prod(output.shape))]
        for target, source in zip(places.ravel().tolist(), sources):
            found[target].append(source)
        return [self.total(parts) for parts in found]

    def total(self, parts: Sequence[Atom]) -> Atom:
        return reduce(lambda a, b: self.apply(add, a, b), parts) if parts else 0.0

    def product(self, parts: Sequence[Atom]) -> Atom:
        return reduce(lambda a, b: self.apply(multiply, a, b), parts)

    def _reduced(
        self, primitive: Primitive, elements: _Elements, shape: Shape, params: Mapping[str, Any], dtype: str
    ) -> _Elements:
        axes = params["axis"]
        join = primitive.reduces
        assert join is not None
        groups = self.groups(elements, shape, axes)
        if not all(groups):
            raise TensorsNeededError
        if primitive.truths and any(len(group) == 1 for group in groups):
            # A group of one element is not joined, so its element must be converted to a boolean.
            elements = [
                e if arrays.dtype_name(e) == dtype else self.apply(not_equal, e, 0.0, dtype=dtype) for e in elements
            ]
            groups = self.groups(elements, shape, axes)
        found = [reduce(lambda a, b: self.apply(join, a, b, dtype=dtype), group) for group in groups]
        return [self.apply(divide, f, float(len(groups[0]))) for f in found] if primitive is mean else found

    def groups(self, elements: _Elements, shape: Shape, axes: Sequence[int] | None) -> list[_Elements]:
        """Group the elements along `axes`: one group for each index of the other axes."""
        axes = range(len(shape)) if axes is None else axes
        found: list[_Elements] = [[] for _ in range(math.prod(s for a, s in enumerate(shape) if a not in axes))]
        for group, element in zip(_groups(shape, axes), elements):
            found[group].append(element)
        return found

    def _contracted(
        self,
        operands: Sequence[_Elements],
        shapes: Sequence[Shape],
        terms: Sequence[Sequence[Any]],
        result: Sequence[Any],
    ) -> _Elements:
        """A sum of products (einsum), with axes named by letters."""
        sizes: dict[Any, int] = {}
        for term, shape in zip(terms, shapes):
            for letter, size in zip(term, shape):
                sizes[letter] = max(size, sizes.get(letter, 1)) if size else 0
        order = [*result, *(letter for letter in sizes if letter not in result)]
        count = math.prod(sizes[letter] for letter in order)
        self._check(count * len(operands))
        xp = arrays.numpy_namespace()
        grid = dict(zip(order, xp.indices(tuple(sizes[letter] for letter in order))))
        factors = []
        for elements, term, shape in zip(operands, terms, shapes):
            places = xp.zeros(tuple(sizes[letter] for letter in order), "int64")
            for axis, (letter, size) in enumerate(zip(term, shape)):
                # An axis of size 1 is broadcast.
                places = places + grid[letter] * (math.prod(shape[axis + 1 :]) if size > 1 else 0)
            factors.append([elements[i] for i in places.ravel().tolist()])
        products = [self.product(parts) for parts in zip(*factors)]
        width = math.prod(sizes[letter] for letter in order[len(result) :])
        if not width:
            raise TensorsNeededError
        return [self.total(products[i : i + width]) for i in range(0, len(products), width)]

    # --- matrices

    def minor(self, matrix: Sequence[_Elements], row: int, column: int) -> Sequence[_Elements]:
        return [[e for j, e in enumerate(r) if j != column] for i, r in enumerate(matrix) if i != row]

    def determinant(self, matrix: Sequence[_Elements]) -> Atom:
        if not matrix:
            return 1.0
        total: Atom = None
        for column, element in enumerate(matrix[0]):
            term = self.apply(multiply, element, self.determinant(self.minor(matrix, 0, column)))
            total = term if total is None else self.apply(subtract if column % 2 else add, total, term)
        return total

    def inverse(self, matrix: Sequence[_Elements]) -> Sequence[_Elements]:
        determinant, size = self.determinant(matrix), range(len(matrix))

        def cofactor(i: int, j: int) -> Atom:
            found = self.determinant(self.minor(matrix, j, i))
            return self.apply(negative, found) if (i + j) % 2 else found

        return [[self.apply(divide, cofactor(i, j), determinant) for j in size] for i in size]


def _groups(shape: Shape, axes: Sequence[int]) -> Sequence[int]:
    """The group number of each element, as in `_Split.groups`."""
    kept = tuple(1 if a in axes else s for a, s in enumerate(shape))
    found: Sequence[int] = broadcast_positions(kept, shape).ravel().tolist()
    return found


_Rule = Callable[[_Split, Sequence[_Elements], Sequence[Shape], Mapping[str, Any]], _Elements]


def _accumulated(join: Primitive) -> _Rule:
    def rule(
        split: _Split, operands: Sequence[_Elements], shapes: Sequence[Shape], params: Mapping[str, Any]
    ) -> _Elements:
        places, axis = [*range(len(operands[0]))], params["axis"]
        found: dict[int, Atom] = {}
        for group in split.groups(places, shapes[0], [axis % len(shapes[0])]):
            for before, place in itertools.pairwise([None, *group]):
                assert isinstance(place, int)
                element = operands[0][place]
                found[place] = element if before is None else split.apply(join, found[before], element)
        return [found[place] for place in places]

    return rule


def _softmax(
    split: _Split, operands: Sequence[_Elements], shapes: Sequence[Shape], params: Mapping[str, Any]
) -> _Elements:
    shape = shapes[0]
    axes = [params["axis"] % len(shape)]
    powers: _Elements = [split.apply(exp, e) for e in operands[0]]
    totals = [split.total(group) for group in split.groups(powers, shape, axes)]
    return [split.apply(divide, power, totals[group]) for power, group in zip(powers, _groups(shape, axes))]


def _rows(elements: _Elements, shape: Shape) -> Sequence[_Elements]:
    """The rows of a small square matrix. Raises TensorsNeededError for other shapes."""
    if len(shape) != 2 or not 0 < shape[0] <= _LARGEST_MATRIX:
        raise TensorsNeededError
    side = shape[0]
    return [elements[i : i + side] for i in range(0, side * side, side)]


def _solved(
    split: _Split, operands: Sequence[_Elements], shapes: Sequence[Shape], _params: Mapping[str, Any]
) -> _Elements:
    inverse = split.inverse(_rows(operands[0], shapes[0]))
    columns = 1 if len(shapes[1]) == 1 else shapes[1][-1]
    if len(shapes[1]) > 2:
        raise TensorsNeededError
    given = [operands[1][j::columns] for j in range(columns)]
    return [split.total([split.apply(multiply, a, b) for a, b in zip(row, c)]) for row in inverse for c in given]


_RULES: Mapping[str, _Rule] = {
    "cumsum": _accumulated(add),
    "cumprod": _accumulated(multiply),
    "softmax": _softmax,
    "det": lambda split, operands, shapes, _params: [split.determinant(_rows(operands[0], shapes[0]))],
    "logdet": lambda split, operands, shapes, _params: [
        split.apply(log, split.determinant(_rows(operands[0], shapes[0])))
    ],
    "inv": lambda split, operands, shapes, _params: [
        *itertools.chain.from_iterable(split.inverse(_rows(operands[0], shapes[0])))
    ],
    "solve": _solved,
}
