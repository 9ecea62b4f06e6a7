"""Functions of square matrices, over the last two axes; the axes before them are a batch.

The rules are those of M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008). Decompositions are in `gradcli.primitives.entries.linear_algebra.decompositions`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import integer, normalize_axis, whole_numbers
from gradcli.primitives.bind import assume, concrete, constant
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.costs import largest_operand_size, matmul_cost
from gradcli.primitives.entries.arithmetic import (
    absolute,
    add,
    divide,
    is_normal,
    minus,
    multiply,
    negative,
    ones_like,
    subtract,
    zeros_like,
)
from gradcli.primitives.entries.comparisons import (
    equal,
    greater_equal,
    logical_and,
    nowhere,
    where,
)
from gradcli.primitives.entries.elementwise.complex_numbers import conj, real
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.powers import by_squaring
from gradcli.primitives.entries.reductions import max_, prod, sum_
from gradcli.primitives.entries.shape import matrix_transpose, moveaxis, roll
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients, products
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "linear algebra"

_VECTOR = [1.0, 2.5, -3.0]
_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_BATCH = [_SQUARE, [[1.0, 0.2], [0.3, 2.0]]]
_DEFINITE = [[2.0, 0.5], [0.5, 3.0]]


# Up to this number of rows cofactors are computed as minors where the magnitude of the determinant is below this
# fraction of the product of the rows' maxima (see `_is_regular`).
_FEW_ROWS, _NEARLY_SINGULAR = 8, 2.0**-10


def square_matrix(name: str) -> Any:
    """`Primitive.prepare` of the function `name` of one square matrix, or a batch of them."""

    def prepare(x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
        sizes = arrays.shape(x)
        if len(sizes) < 2 or sizes[-1] != sizes[-2]:
            raise ShapeError(f"'{name}' needs a square matrix, and the tensor has shape {list(sizes)}")
        return (x,), {}

    return prepare


def matrix_cost(
    *, call: int = 1000, matrix: int = 10, row: int = 0, element: int = 1, cube: int = 1
) -> Callable[[Sequence[Shape], Mapping[str, Any]], int]:
    """The cost function of an operation on matrices, and on as many columns beside them, in elements.

    The parameters are the costs of a call, of each matrix, row and element, and of a matrix product of that size.
    """

    def elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
        size, side = largest_operand_size(shapes, {}), min(shapes[0][-2:])
        matrices = math.prod(shapes[0][:-2])
        return call + matrices * (matrix + row * side) + element * size + cube * matmul_cost(size * side)

    return elements


def conjugated(x: Any) -> Any:
    """The conjugate of complex numbers; real ones unchanged, at no cost."""
    return conj(x) if arrays.is_complex(x) else x


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices; of real ones the transpose."""
    return conjugated(matrix_transpose(x))


def _per_matrix(g: Any) -> Any:
    """One number for each matrix, with two axes of size 1 so that it broadcasts against the matrices."""
    return reshape(g, (*arrays.shape(g), 1, 1))


def _inv_series(_primitive: Primitive, y: Any, x: Any) -> Coefficients:
    # From x@y = 1: all coefficients of the product above the first are 0.
    for k in itertools.count(1):
        known = y.total(products(matmul, x, y, k, first=1))
        yield None if known is None else negative(matmul(y.inner, known))


inv: Primitive = Primitive(
    "inv", "A", "inverse matrix",
    numbers="analytic",
    forward=lambda xp, x: xp.linalg.inv(x),
    vjp=(lambda g, y, _x: -matmul(matmul(matrix_transpose(y), g), matrix_transpose(y)),),
    jet=_inv_series,
    prepare=square_matrix("inv"),
    elements=matrix_cost(),
    fails=True,
    batch=batching.trailing,
    spelling=names_elsewhere(numpy="linalg.inv"),
    derivative="-inv(A).T@g@inv(A).T",
    aliases=("inverse",),
    domain="det(A) != 0",
    edges=("a singular matrix is an error",),
    samples=((_SQUARE,), (_BATCH,)),
)  # fmt: skip


def _minors(x: Any) -> Any:
    """The submatrices without row i and column j, at [..., i, j, :, :]."""
    xp = arrays.numpy_namespace()
    n = arrays.shape(x)[-1]
    others = xp.asarray([[k for k in range(n) if k != i] for i in range(n)], dtype="int64").reshape(n, n - 1)
    return index(x, (Ellipsis, others[:, None, :, None], others[None, :, None, :]))


def _is_regular(x: Any, determinant: Any) -> bool:
    """Return whether cofactors and their derivatives may be computed as det(x)*inv(x).T without loss of precision.

    They may not where the determinant is far below the bound given by the product of the rows' maxima. With more rows
    than `_FEW_ROWS` there are too many minors, so only a determinant without full precision is rejected.
    """
    x, determinant = constant(x), constant(determinant)
    regular = is_normal(determinant)
    if arrays.shape(x)[-1] <= _FEW_ROWS:
        bound = prod(max_(absolute(x), -1), -1)
        regular = logical_and(regular, greater_equal(absolute(determinant), multiply(_NEARLY_SINGULAR, bound)))
    return assume(regular)


def _cofactors(x: Any, determinant: Any) -> Any:
    if not arrays.shape(x)[-1] or _is_regular(x, determinant):
        return _per_matrix(determinant) * matrix_transpose(inv(x))
    xp = arrays.numpy_namespace()
    signs = (-1.0) ** xp.indices(arrays.shape(x)[-2:]).sum(axis=0)
    return multiply(det(_minors(x)), signs)


def log_determinant_rule(g: Any, y: Any, x: Any) -> Any:
    """The cotangent of a matrix from that of log(abs(det)); where that is -inf, the cofactors divided by 0."""
    singular = equal(constant(y), -math.inf)
    if nowhere(singular):
        return _per_matrix(g) * matrix_transpose(inv(x))
    singular = _per_matrix(singular)
    inverse = inv(where(singular, arrays.numpy_namespace().eye(arrays.shape(x)[-1]), x))
    infinite = divide(_cofactors(x, zeros_like(y)), _per_matrix(det(x)))
    return _per_matrix(g) * where(singular, infinite, matrix_transpose(inverse))


def jet_from_gradient(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """Jet rule of a function with one number for each matrix: its derivative is the product with the gradient, the vjp
    of ones."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    gradient = primitive.rule(0)(ones_like(y.inner), y, inner)
    slope = sum_(gradient * x.derivative(), (-2, -1))
    yield from integrate_coefficients(
        y, real(slope) if arrays.is_complex(slope) and not arrays.is_complex(y) else slope
    )


det: Primitive = Primitive(
    "det", "A", "determinant",
    numbers="analytic",
    forward=lambda xp, x: xp.linalg.det(x),
    vjp=(lambda g, y, x: _per_matrix(g) * _cofactors(x, y),),
    jet=jet_from_gradient,
    prepare=square_matrix("det"),
    elements=matrix_cost(call=1600),
    batch=batching.trailing,
    spelling=names_elsewhere("latex", numpy="linalg.det"),
    derivative="g*det(A)*inv(A).T, the cofactors where A is singular",
    edges=("where A is singular, the derivative is the matrix of cofactors",),
    samples=((_SQUARE,), (_BATCH,), ([[1.0, 2.0], [2.0, 4.0]],)),
)  # fmt: skip


def _logdet(xp: Any, x: Any) -> Any:
    sign, logarithm = xp.linalg.slogdet(x)
    return xp.where(xp.greater_equal(sign, 0.0), logarithm, math.nan)


def _complex_logdet(xp: Any, x: Any) -> Any:
    sign, logarithm = xp.linalg.slogdet(x)
    return logarithm + 1j * xp.angle(sign)


logdet: Primitive = Primitive(
    "logdet", "A", "log(det(A)), without overflow; nan where det(A) < 0",
    numbers="analytic",
    forward=_logdet,
    of_complex=_complex_logdet,
    vjp=(log_determinant_rule,),
    jet=jet_from_gradient,
    prepare=square_matrix("logdet"),
    elements=matrix_cost(call=1600),
    batch=batching.trailing,
    derivative="g*inv(A).T",
    domain="det(A) > 0",
    edges=("-inf where A is singular, nan where det(A) < 0",),
    samples=((_SQUARE,), (_BATCH,)),
)  # fmt: skip


def _solve_call(a: Any, b: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    square_matrix("solve")(a)
    sizes, right = arrays.shape(a), arrays.shape(b)
    if not right or right[-2 if len(right) > 1 else 0] != sizes[-1]:
        raise ShapeError(f"'solve' does not fit a matrix of shape {list(sizes)} and a right side of {list(right)}")
    return (a, b), {}


def _column(x: Any) -> Any:
    """A vector (or a batch of vectors) as a matrix with one column."""
    return reshape(x, (*arrays.shape(x), 1))


def _solve_rule_matrix(g: Any, y: Any, a: Any, _b: Any) -> Any:
    x, w = (y, g) if len(_b.shape) > 1 else (_column(y), _column(g))
    return -matmul(solve(matrix_transpose(a), w), matrix_transpose(x))


def _solve_rule_right(g: Any, _y: Any, a: Any, _b: Any) -> Any:
    if len(_b.shape) > 1:
        return solve(matrix_transpose(a), g)
    return reshape(solve(matrix_transpose(a), _column(g)), arrays.shape(g))


def _solve_series(_primitive: Primitive, y: Any, a: Any, b: Any) -> Coefficients:
    """Coefficients of y from a@y = b: term k of the product contains the unknown y[k] times a[0]."""
    vectors = b.ndim == 1
    columns = y.growing(*_as_columns(y)) if vectors else y
    for k in itertools.count(1):
        part = b.coefficient(k)
        part = _column(part) if vectors and part is not None else part
        rest = minus(part, y.total(products(matmul, a, columns, k, first=1)))
        found = None if rest is None else solve(a.inner, rest)
        yield reshape(found, arrays.shape(found)[:-1]) if vectors and found is not None else found


def _as_columns(y: Any) -> tuple[Any, Any]:
    later = (None if part is None else _column(part) for part in map(y.coefficient, itertools.count(1)))
    return _column(y.inner), later


solve: Primitive = Primitive(
    "solve", "A, b", "the x with A@x = b, for a vector or the columns of a matrix",
    numbers="analytic",
    forward=lambda xp, a, b: xp.linalg.solve(a, b),
    vjp=(_solve_rule_matrix, _solve_rule_right),
    jet=_solve_series,
    prepare=_solve_call,
    elements=matrix_cost(),
    fails=True,
    batch=batching.solve,
    spelling=names_elsewhere(numpy="linalg.solve"),
    derivative="-w@x.T, w, where w = solve(A.T, g)",
    domain="det(A) != 0",
    edges=("a singular matrix is an error",),
    samples=((_SQUARE, [1.0, -2.0]), (_SQUARE, _DEFINITE), (_BATCH, _DEFINITE), (_BATCH, [1.0, -2.0])),
)  # fmt: skip


def _matrix_power(x: Any, n: Any) -> Any:
    square_matrix("matrix_power")(x)
    exponent = integer(n, "the exponent of 'matrix_power'")
    if exponent < 0:
        return _matrix_power(inv(x), -exponent)
    if exponent == 0:
        return add(0.0 * x, arrays.numpy_namespace().eye(arrays.shape(x)[-1], dtype=arrays.dtype_name(x)))
    return by_squaring(matmul, x, exponent)


matrix_power = Composite(
    "matrix_power", "A, n", "the product of n copies of A, of inverses where n < 0", _matrix_power,
    derivative="that of the products",
    domain="everywhere; n < 0: det(A) != 0",
    edges=("n = 0 is the identity matrix, with derivative 0",),
    samples=((_SQUARE, 3), (_BATCH, 2), (_SQUARE, -2), (_SQUARE, 1)),
)  # fmt: skip


def _kron(a: Any, b: Any) -> Any:
    rank = max(len(arrays.shape(a)), len(arrays.shape(b)))
    sizes = [(1,) * (rank - len(arrays.shape(x))) + arrays.shape(x) for x in (a, b)]
    left = reshape(a, [s for size in sizes[0] for s in (size, 1)])
    right = reshape(b, [s for size in sizes[1] for s in (1, size)])
    return reshape(multiply(left, right), [m * n for m, n in zip(*sizes)])


kron = Composite(
    "kron", "A, B", "Kronecker product: B scaled by each element of A", _kron,
    derivative="the sums of g over the blocks of B, and over the copies of A",
    samples=((_SQUARE, [[1.0, 2.0, 3.0]]), (_VECTOR, _VECTOR)),
)  # fmt: skip


def _cross(a: Any, b: Any, axis: Any = None, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _vectors_last(a, axisa), _vectors_last(b, axisb)
    product = subtract(multiply(roll(a, -1, -1), roll(b, -2, -1)), multiply(roll(a, -2, -1), roll(b, -1, -1)))
    return moveaxis(product, -1, axisc)


def _vectors_last(x: Any, axis: Any) -> Any:
    sizes = arrays.shape(x)
    if not sizes or sizes[normalize_axis(axis, len(sizes))] != 3:
        raise ShapeError(f"'cross' needs 3 elements along its axis, and a tensor has shape {list(sizes)}")
    return moveaxis(x, axis, -1)


cross = Composite(
    "cross", "a, b, axis=None, axisa=-1, axisb=-1, axisc=-1",
    "the vector product in three dimensions, along the last axes, along those of each and of the result, or along one for all",
    _cross,
    derivative="cross(b, g), cross(g, a)",
    samples=(
        (_VECTOR, [0.5, -1.0, 2.0]), ([_VECTOR, [0.1, 0.2, 0.3]], [0.5, -1.0, 2.0]),
        ([[1.0, 0.1], [2.5, 0.2], [-3.0, 0.3]], [_VECTOR, [0.5, -1.0, 2.0]], None, 0, 1, 0),
    ),
)  # fmt: skip


def _contracted_axes(axes: Any, ranks: tuple[int, int]) -> tuple[Shape, Shape]:
    """The axes of both tensors that `axes` selects, which is a number of axes or a pair of lists."""
    value = concrete(axes)
    if type(value) in arrays.PYTHON_NUMBERS:
        count = integer(value, "the number of axes")
        if not 0 <= count <= min(ranks):
            raise ShapeError(f"'tensordot' cannot sum over {count} axes of tensors of {list(ranks)} dimensions")
        return tuple(range(ranks[0] - count, ranks[0])), tuple(range(count))
    parts = arrays.tolist(value) if arrays.is_array(value) else value
    if not isinstance(parts, Sequence) or len(parts) != 2:
        raise EvaluationError("the axes of 'tensordot' are their number, or a list of axes of each tensor")
    first, second = (whole_numbers(part, "an axis") for part in parts)
    return (
        tuple(normalize_axis(a, ranks[0]) for a in first),
        tuple(normalize_axis(a, ranks[1]) for a in second),
    )


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    shapes = arrays.shape(a), arrays.shape(b)
    first, second = _contracted_axes(axes, (len(shapes[0]), len(shapes[1])))
    if [shapes[0][i] for i in first] != [shapes[1][i] for i in second]:
        raise ShapeError(f"the axes of {list(shapes[0])} and {list(shapes[1])} do not fit in 'tensordot'")
    free = [[i for i in range(len(s)) if i not in used] for s, used in zip(shapes, (first, second))]
    kept = [[s[i] for i in f] for s, f in zip(shapes, free)]
    count = 1
    for i in first:
        count *= shapes[0][i]
    left = reshape(permute(a, [*free[0], *first]) if shapes[0] else a, (-1 if count else 0, count))
    right = reshape(permute(b, [*second, *free[1]]) if shapes[1] else b, (count, -1 if count else 0))
    return reshape(matmul(left, right), kept[0] + kept[1])


tensordot = Composite(
    "tensordot", "a, b, axes=2", "sum of products over the last axes of a and the first of b, or over pairs of axes",
    _tensordot,
    derivative="tensordot of g with the other tensor over its free axes",
    samples=((_SQUARE, _SQUARE, 1), (_SQUARE, _SQUARE), (_SQUARE, _BATCH, ([1], [2]))),
)  # fmt: skip


def _dot(a: Any, b: Any) -> Any:
    left, right = len(arrays.shape(a)), len(arrays.shape(b))
    if not left or not right:
        return multiply(a, b)
    return matmul(a, b) if left < 3 and right < 3 else tensordot(a, b, ([-1], [-2 if right > 1 else -1]))


dot = Composite(
    "dot", "a, b", "inner product of vectors, matrix product of matrices; of more axes, over the last of a and the last but one of b",
    _dot,
    derivative="g*b, g*a",
    samples=((_VECTOR, _VECTOR), (_SQUARE, _SQUARE)),
)  # fmt: skip

inner = Composite(
    "inner", "a, b", "sum of products over the last axis of both",
    lambda a, b: tensordot(a, b, ([-1], [-1])) if arrays.shape(a) and arrays.shape(b) else multiply(a, b),
    derivative="g*b, g*a",
    samples=((_VECTOR, _VECTOR), (_SQUARE, _SQUARE)),
)  # fmt: skip

vdot = Composite(
    "vdot", "a, b", "sum of products of all elements, those of a conjugated",
    lambda a, b: matmul(conjugated(reshape(a, (-1,))), reshape(b, (-1,))),
    derivative="g*b, g*a",
    samples=((_VECTOR, _VECTOR), (_SQUARE, _SQUARE)),
)  # fmt: skip
