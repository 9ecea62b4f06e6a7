"""Joins matrix products, sums of vectors and functions of vectors of a program into fewer and larger operations.

The gradient by the weights of a recurrent network is a sum of outer products, one for each step, that by its bias is a
sum of vectors, and its inputs are multiplied by the same weights in every step. A library computes one operation on
large matrices in a fraction of the time of many small ones. Sums are computed in another order, so that results may
change by rounding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.executors import ufuncs
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.entries.arithmetic import add
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import concat
from gradcli.primitives.primitive import Primitive
from gradcli.program.builder import equation_key, frozen
from gradcli.program.ir import Atom, Equation, Program, Variable
from gradcli.program.passes import needed_variables, without_dead_code

# The number of operations on vectors from which they are joined: stacking the vectors takes as long as some three
# products of a matrix with them.
_FEWEST_VECTORS = 8
# The largest vectors, in elements, that are stacked to be added or to be given to a function: adding two larger ones
# takes longer than calling NumPy.
_LARGEST_VECTOR = 512


def joined(program: Program) -> Program:
    """The program with sums of matrix products as one product, sums of vectors as one sum, and products of one matrix
    by many vectors, and functions of many vectors, as one.

    Only float64 matrices and vectors are joined.
    """
    if sum(e.primitive is matmul or _is_vector(e.output) for e in program.equations) < 2:
        return program
    program = _with_joined_sums(program)
    for matrix in _shared_matrices(program):
        products = {e.output: e.inputs[1] for e in program.equations if _is_by_vector(e) and e.inputs[0] is matrix}
        program = _with_joined_vectors(program, products, [matrix], partial(_products_with_vectors, matrix))
    for function, operands in _functions_of_vectors(program):
        program = _with_joined_vectors(program, operands, [], partial(_function_of_vectors, function))
    return without_dead_code(_with_shared_stacks(program), errors=True)


def _with_joined_sums(program: Program) -> Program:
    """The program in which a @ b + c @ d is the product of the matrices [a, c] and [b; d], and u + v + w + … of vectors
    is the sum over the rows of a matrix."""
    uses = _uses(program)
    definitions = {e.output: e for e in program.equations}
    replaced: dict[Variable, list[Equation]] = {}
    inner, dropped = set[Variable](), set[Variable]()
    # In reverse order, so that a sum is visited before its parts.
    for equation in reversed(program.equations):
        if equation.primitive is not add or equation.output in inner:
            continue
        terms = _Sum(equation, definitions, uses)
        inner |= terms.inner
        if len(terms.products) > 1 or len(terms.vectors) >= _FEWEST_VECTORS:
            replaced[equation.output] = [*terms.equations()]
            dropped |= terms.inner
    equations = [e for e in program.equations if e.output not in dropped]
    return program._replace(equations=tuple(n for e in equations for n in replaced.get(e.output, [e])))


class _Sum:
    """A sum of terms of one shape, from the last to the first: matrix products that nothing else reads, small vectors,
    and others.

    `inner` are its partial sums and those products.
    """

    def __init__(self, root: Equation, definitions: dict[Variable, Equation], uses: Counter[Variable]) -> None:
        self.root = root
        self.definitions = definitions
        self.products: list[Equation] = []
        self.vectors: list[Atom] = []
        self.others: list[Atom] = []
        self.inner: set[Variable] = set()
        # A backward pass adds the terms of the last step first, so that from the last to the first they are in the
        # order of the steps. Rows of a matrix in their order need not be stacked: they are that matrix.
        waiting = [*root.inputs]
        while waiting:
            atom = waiting.pop()
            made = definitions.get(atom) if isinstance(atom, Variable) and uses[atom] == 1 else None
            if made is not None and made.primitive is add and made.output.shape == root.output.shape:
                self.inner.add(made.output)
                waiting += made.inputs
            elif made is not None and _is_worth_joining(made, root.output.shape):
                self.inner.add(made.output)
                self.products.append(made)
            elif _is_small_vector(atom) and arrays.shape(atom) == root.output.shape:
                self.vectors.append(atom)
            else:
                self.others.append(atom)

    def equations(self) -> Iterator[Equation]:
        """The equations of the sum; the last one has the output of its root."""
        shape = self.root.output.shape
        outputs = [*(Variable(shape, "float64") for _ in self.others), self.root.output]
        yield from self._product(outputs[0]) if self.products else self._sum_of_vectors(outputs[0])
        for other, before, after in zip(self.others, outputs, outputs[1:]):
            yield Equation(add, (before, other), {}, after)

    def _product(self, output: Variable) -> Iterator[Equation]:
        lefts, rights = zip(*(e.inputs for e in self.products))
        (rows, columns), inner = output.shape, sum(arrays.shape(a)[1] for a in lefts)
        left, right = Variable((rows, inner), "float64"), Variable((inner, columns), "float64")
        yield from self._joined_columns(lefts, left)
        yield from self._joined_rows(rights, right)
        yield Equation(matmul, (left, right), {}, output)

    def _sum_of_vectors(self, output: Variable) -> Iterator[Equation]:
        rows = Variable((len(self.vectors), *output.shape), "float64")
        yield from _stacked(self.vectors, rows)
        yield Equation(sum_, (rows,), {"axis": (0,), "keepdims": False}, output)

    def _joined_columns(self, matrices: Sequence[Atom], output: Variable) -> Iterator[Equation]:
        """The matrices side by side. Columns are joined as rows, which are contiguous."""
        vectors = self._vectors(matrices, axis=1)
        if vectors is None:
            yield Equation(concat, tuple(matrices), {"axis": 1}, output)
        else:
            stacked = Variable(output.shape[::-1], "float64")
            yield from _stacked(vectors, stacked)
            yield Equation(permute, (stacked,), {"axes": (1, 0)}, output)

    def _joined_rows(self, matrices: Sequence[Atom], output: Variable) -> Iterator[Equation]:
        """The matrices one below the other."""
        vectors = self._vectors(matrices, axis=0)
        if vectors is None:
            yield Equation(concat, tuple(matrices), {"axis": 0}, output)
        else:
            yield from _stacked(vectors, output)

    def _vectors(self, matrices: Sequence[Atom], axis: int) -> Sequence[Atom] | None:
        """The vectors of which the matrices are columns or rows, of size 1 along the axis; None if one is not."""
        found = [self._vector(a) for a in matrices if arrays.shape(a)[axis] == 1]
        vectors = [v for v in found if v is not None]
        return vectors if len(vectors) == len(matrices) else None

    def _vector(self, matrix: Atom) -> Atom | None:
        if not isinstance(matrix, Variable):
            return arrays.numpy_namespace().reshape(matrix, (-1,))
        made = self.definitions.get(matrix)
        if made is None or made.primitive is not reshape or not _is_vector(made.inputs[0]):
            return None
        return made.inputs[0]


def _is_worth_joining(product: Equation, shape: Shape) -> bool:
    """Return whether a term is a product of two matrices that take no more memory than the product."""
    if product.primitive is not matmul or product.output.shape != shape or not _of_floats(product):
        return False
    left, right = map(arrays.shape, product.inputs)
    return len(left) == len(right) == 2 and left[1] * (left[0] + right[1]) <= left[0] * right[1]


def _shared_matrices(program: Program) -> Iterable[Variable]:
    """The matrices that are multiplied by many vectors."""
    counts = Counter(e.inputs[0] for e in program.equations if _is_by_vector(e))
    return [matrix for matrix, count in counts.items() if count >= _FEWEST_VECTORS]


def _functions_of_vectors(program: Program) -> Iterable[tuple[Primitive, dict[Variable, Atom]]]:
    """The functions of many vectors of one size that NumPy computes by several calls, with the vector by the variable
    of each result."""
    found: dict[tuple[Primitive, Shape], dict[Variable, Atom]] = {}
    for e in program.equations:
        if e.primitive in ufuncs.OF_SEVERAL_CALLS and _is_small_vector(e.output) and _of_floats(e):
            found.setdefault((e.primitive, e.output.shape), {})[e.output] = e.inputs[0]
    return [(function, vectors) for (function, _), vectors in found.items() if len(vectors) >= _FEWEST_VECTORS]


def _with_joined_vectors(
    program: Program,
    vectors: Mapping[Variable, Atom],
    others: Sequence[Variable],
    join: Callable[[Mapping[Variable, Atom]], Iterable[Equation]],
) -> Program:
    """The program in which `join` computes all results of an operation on `vectors`, by the variables of the results,
    that do not depend on each other. It reads `others` too.

    They are computed before all else but the guards, and not joined if a guard depends on one of them.
    """
    dependent = _dependent_variables(program, {*vectors})
    independent = {v: a for v, a in vectors.items() if not (isinstance(a, Variable) and a in dependent)}
    if len(independent) < _FEWEST_VECTORS or dependent.intersection(program.guards):
        return program
    needed = needed_variables(program.equations, [*program.guards, *others, *independent.values()])
    first = [e for e in program.equations if e.output in needed]
    rest = [e for e in program.equations if e.output not in needed and e.output not in independent]
    return program._replace(equations=(*first, *join(independent), *rest))


def _products_with_vectors(matrix: Variable, vectors: Mapping[Variable, Atom]) -> Iterator[Equation]:
    """The equations of the products of a matrix with vectors, by the variables of the results."""
    rows, columns = matrix.shape
    stacked, turned = Variable((len(vectors), columns), "float64"), Variable((columns, rows), "float64")
    product = Variable((len(vectors), rows), "float64")
    yield from _stacked([*vectors.values()], stacked)
    yield Equation(permute, (matrix,), {"axes": (1, 0)}, turned)
    yield Equation(matmul, (stacked, turned), {}, product)
    yield from _rows(product, vectors)


def _function_of_vectors(function: Primitive, vectors: Mapping[Variable, Atom]) -> Iterator[Equation]:
    """The equations of a function of vectors, by the variables of the results."""
    shape = len(vectors), *next(iter(vectors)).shape
    stacked, results = Variable(shape, "float64"), Variable(shape, "float64")
    yield from _stacked([*vectors.values()], stacked)
    yield Equation(function, (stacked,), {}, results)
    yield from _rows(results, vectors)


def _rows(matrix: Variable, outputs: Iterable[Variable]) -> Iterator[Equation]:
    for number, output in enumerate(outputs):
        yield Equation(index, (matrix,), {"key": (number,)}, output)


def _stacked(vectors: Sequence[Atom], output: Variable) -> Iterator[Equation]:
    """The vectors as the rows of a matrix."""
    joined_vectors = Variable((math.prod(output.shape),), "float64")
    yield Equation(concat, tuple(vectors), {"axis": 0}, joined_vectors)
    yield Equation(reshape, (joined_vectors,), {"shape": output.shape}, output)


def _with_shared_stacks(program: Program) -> Program:
    """The program in which the same vectors are stacked once, and all rows of a matrix, in order, are the matrix."""
    definitions = {e.output: e for e in program.equations}
    known: dict[Hashable, Variable] = {}
    same: dict[Variable, Variable] = {}
    equations = []
    for equation in program.equations:
        primitive, inputs, params, output = equation
        inputs = tuple(same.get(a, a) if isinstance(a, Variable) else a for a in inputs)
        equations.append(Equation(primitive, inputs, params, output))
        if primitive in (concat, reshape, permute):
            same[output] = known.setdefault(equation_key(primitive, inputs, params), output)
            matrix = _matrix_of_rows(inputs[0], definitions) if primitive is reshape else None
            if matrix is not None and matrix.shape == output.shape:
                same[output] = matrix
    return program._replace(equations=tuple(equations))


def _matrix_of_rows(stack: Atom, definitions: Mapping[Variable, Equation]) -> Variable | None:
    """The matrix of which all rows, in order, were joined to a vector; None if there is none."""
    made = definitions.get(stack) if isinstance(stack, Variable) else None
    if made is None or made.primitive is not concat or made.params["axis"] != 0:
        return None
    rows = [definitions.get(a) if isinstance(a, Variable) else None for a in made.inputs]
    matrix = None if rows[0] is None else rows[0].inputs[0]
    for number, row in enumerate(rows):
        if row is None or row.primitive is not index or row.inputs[0] is not matrix:
            return None
        if frozen(row.params) != frozen({"key": (number,)}):
            return None
    return matrix if isinstance(matrix, Variable) and matrix.shape[0] == len(rows) else None


def _dependent_variables(program: Program, variables: set[Variable]) -> set[Variable]:
    """The variables that depend on any of `variables`, and these."""
    found = {*variables}
    for equation in program.equations:
        if any(isinstance(a, Variable) and a in found for a in equation.inputs):
            found.add(equation.output)
    return found


def _is_by_vector(equation: Equation) -> bool:
    if equation.primitive is not matmul or not _of_floats(equation):
        return False
    matrix, vector = equation.inputs
    return isinstance(matrix, Variable) and len(matrix.shape) == 2 and _is_vector(vector)


def _is_vector(atom: Atom) -> bool:
    return len(arrays.shape(atom)) == 1


def _is_small_vector(atom: Atom) -> bool:
    return _is_vector(atom) and arrays.shape(atom)[0] <= _LARGEST_VECTOR and arrays.dtype_name(atom) == "float64"


def _of_floats(equation: Equation) -> bool:
    return all(arrays.dtype_name(a) == "float64" for a in equation.inputs)


def _uses(program: Program) -> Counter[Variable]:
    """The number of times that each variable is read, by equations, outputs and guards."""
    read = [a for e in program.equations for a in e.inputs]
    return Counter(a for a in (*read, *program.outputs, *program.guards) if isinstance(a, Variable))
