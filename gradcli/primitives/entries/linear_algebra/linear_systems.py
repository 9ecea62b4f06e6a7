"""Linear algebra written in other functions: slogdet, triangular, banded and least-squares solvers, norms, cdist."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, LimitError, ShapeError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import batching
from gradcli.primitives.axes import boolean, integer, normalize_axis, one_float, one_number, option, whole_numbers
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.costs import matmul_cost
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import greater, where
from gradcli.primitives.entries.elementwise.complex_numbers import imag
from gradcli.primitives.entries.indexing import index, scatter
from gradcli.primitives.entries.linear import einsum, matmul
from gradcli.primitives.entries.linear_algebra.decompositions import pinv, solve_lower, svdvals
from gradcli.primitives.entries.linear_algebra.matrices import (
    adjoint,
    inv,
    jet_from_gradient,
    log_determinant_rule,
    matrix_cost,
    solve,
    square_matrix,
)
from gradcli.primitives.entries.powers import power, square
from gradcli.primitives.entries.reductions import max_, min_, sum_
from gradcli.primitives.entries.shape import (
    expand_dims,
    matrix_transpose,
    moveaxis,
    sequence,
    stack,
    tril,
    triu,
)
from gradcli.primitives.entries.statistics import norm
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients, locally_constant
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive

SUBJECT = "linear algebra"

_VECTOR = [1.0, 2.5, -3.0]
_OTHER = [0.5, -2.0, 1.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_BATCH = [_SQUARE, [[1.0, 0.2], [0.3, 2.0]]]
_TALL = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]
_NO_PARAMS: Mapping[str, Any] = {}
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _affine_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    _, (rows, _), weight = shapes
    return 2 * rows * weight[0] + matmul_cost(rows * math.prod(weight))


# One node, with its operands in the order of PyTorch's graph.
affine = Primitive(
    "affine", "bias, input, weight", "input@weight.T + bias, of a vector and two matrices",
    internal="linear",
    forward=lambda xp, bias, input, weight: xp.add(xp.matmul(input, xp.permute_dims(weight, (1, 0))), bias),
    vjp=(
        lambda g, _y, _bias, _input, _weight: g,
        lambda g, _y, _bias, _input, weight: bind(matmul, (g, weight), _NO_PARAMS),
        lambda g, _y, _bias, input, _weight: bind(matmul, (matrix_transpose(g), input), _NO_PARAMS),
    ),
    definition=lambda bias, input, weight: bind(add, (_linear(input, weight), bias), _NO_PARAMS),
    elements=_affine_elements,
    multilinear=True,
    node_name="AddmmBackward0",
    derivative="sum(g), g@weight, g.T@input",
    samples=(([0.5, -1.0], _MATRIX, [_VECTOR, _OTHER]),),
)  # fmt: skip


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    shapes = arrays.shape(input), arrays.shape(weight)
    if bias is not None and [*map(len, (*shapes, arrays.shape(bias)))] == [2, 2, 1] and shapes[0][1] == shapes[1][1]:
        return bind(affine, (bias, input, weight), _NO_PARAMS)
    product = matmul(input, matrix_transpose(weight) if len(shapes[1]) > 1 else weight)
    return product if bias is None else bind(add, (product, bias), _NO_PARAMS)


linear = Composite(
    "linear", "input, weight, bias=None", "input@weight.T + bias, a layer of a network", _linear,
    derivative="g@weight, g.T@input, sum(g)",
    samples=((_VECTOR, _MATRIX, [0.5, -1.0]), (_MATRIX, [_VECTOR])),
)  # fmt: skip


def _baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    return add(multiply(beta, input), multiply(alpha, matmul(batch1, batch2)))


baddbmm = Composite(
    "baddbmm", "input, batch1, batch2, beta=1.0, alpha=1.0", "beta*input + alpha*(batch1@batch2)", _baddbmm,
    node_name=lambda input, batch1, *_rest: "AddmmBackward0" if len(arrays.shape(batch1)) == 2 else "BaddbmmBackward0",
    derivative="beta*g, alpha*g@batch2.T, alpha*batch1.T@g",
    aliases=("addmm",),
    samples=((_BATCH, _BATCH, _BATCH), (_SQUARE, _BATCH, _BATCH, 0.5, 2.0)),
)  # fmt: skip


def _cdist(x1: Any, x2: Any, p: Any = 2.0, compute_mode: Any = None) -> Any:
    if compute_mode is not None:
        option(compute_mode, _WAYS_OF_CDIST, "compute_mode")
    if min(len(arrays.shape(x1)), len(arrays.shape(x2))) < 2:
        raise ShapeError("'cdist' needs matrices, of a point in each row")
    return norm(subtract(expand_dims(x1, -2), expand_dims(x2, -3)), p, -1)


# PyTorch's options for how cdist computes; they give the same numbers, so that they are accepted and ignored.
_WAYS_OF_CDIST = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip

cdist = Composite(
    "cdist", "x1, x2, p=2.0, compute_mode=None", "the distances of each row of x1 from each row of x2, in the norm of order p", _cdist,
    node_name="CdistBackward0",
    derivative="the sums of g*(x1 - x2)/distance over the rows, for p=2",
    domain="smooth where no two rows are equal",
    edges=("where two rows are equal, the derivative is 0",),
    samples=((_TALL, _SQUARE), (_TALL, _SQUARE, 1.0)),
)  # fmt: skip


# --- determinants

log_magnitude = Primitive(
    "log_magnitude", "A", "log(abs(det(A))), without overflow",
    internal="slogdet", numbers="complex",
    forward=lambda xp, x: xp.linalg.slogdet(x)[1],
    vjp=(log_determinant_rule,),
    jet=jet_from_gradient,
    prepare=square_matrix("slogdet"),
    elements=matrix_cost(call=1600),
    batch=batching.trailing,
    derivative="g*inv(A).T",
    domain="det(A) != 0",
    samples=((_SQUARE,), (_BATCH,), ([[1.0, 2.0], [2.0, 1.0]],)),
)  # fmt: skip


determinant_sign = Primitive(
    "determinant_sign", "A", "the sign of det(A)",
    internal="slogdet",
    forward=lambda xp, x: xp.linalg.slogdet(x)[0],
    vjp=None, jet=locally_constant,
    prepare=square_matrix("slogdet"),
    elements=matrix_cost(call=1600),
    batch=batching.trailing,
    derivative="none",
    samples=((_SQUARE,), (_BATCH,)),
)  # fmt: skip


def _phase_rule(g: Any, y: Any, x: Any) -> Any:
    """A change of the phase of det(A) is the imaginary part of the trace of inv(A)@dA."""
    turn = multiply(imag(multiply(g, y)), 1j)
    return multiply(reshape(turn, (*arrays.shape(turn), 1, 1)), matrix_transpose(inv(x)))


def _phase_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    (inner,) = y.inside_rule(primitive, (x,), {})
    turn = imag(sum_(multiply(matrix_transpose(inv(inner)), x.derivative()), (-2, -1)))
    yield from integrate_coefficients(y, multiply(y, multiply(turn, 1j)))


determinant_phase: Primitive = Primitive(
    "determinant_phase", "A", "det(A)/abs(det(A)) of complex numbers",
    internal="slogdet", numbers="complex",
    forward=lambda xp, x: xp.linalg.slogdet(x)[0],
    vjp=(_phase_rule,),
    jet=_phase_series,
    prepare=square_matrix("slogdet"),
    elements=matrix_cost(call=1600),
    batch=batching.trailing,
    derivative="1j*imag(g*y)*inv(A).T",
    domain="det(A) != 0",
)  # fmt: skip

slogdet = Composite(
    "slogdet", "A", "the sign of det(A), or its phase det(A)/abs(det(A)), and log(abs(det(A))), without overflow",
    lambda x: ((determinant_phase if arrays.is_complex(x) else determinant_sign)(x), log_magnitude(x)),
    derivative="g*inv(A).T of the logarithm",
    domain="det(A) != 0",
    edges=("where A is singular, the sign is 0 and the logarithm -inf",),
    example="'s, l = slogdet(A); s*l' A='[[1, 2], [3, 4]]'",
)  # fmt: skip


# --- linear systems


def _solve_triangular(
    A: Any,  # noqa: N803
    b: Any,
    trans: Any = 0,
    lower: Any = False,
    unit_diagonal: Any = False,
    upper: Any = None,
    left: Any = True,
    unitriangular: Any = False,
) -> Any:
    square_matrix("solve_triangular")(A)
    if not arrays.shape(b):
        raise ShapeError("'solve_triangular' needs a vector or a matrix behind the matrix, and this is a number")
    below = boolean(lower, "'lower'") if upper is None else not boolean(upper, "'upper'")
    triangle = tril(A) if below else triu(A)
    if boolean(unit_diagonal, "'unit_diagonal'") or boolean(unitriangular, "'unitriangular'"):
        identity = arrays.numpy_namespace().eye(arrays.shape(A)[-1], dtype=arrays.dtype_name(A))
        triangle = add(tril(A, -1) if below else triu(A, 1), identity)
    way = trans if isinstance(trans, str) else "NTC"[integer(trans, "'trans'") % 3]
    if way in ("T", "C"):
        triangle, below = (adjoint if way == "C" else matrix_transpose)(triangle), not below
    if boolean(left, "'left'"):
        return (solve_lower if below else solve)(triangle, b)
    return matrix_transpose((solve if below else solve_lower)(matrix_transpose(triangle), matrix_transpose(b)))


solve_triangular = Composite(
    "solve_triangular",
    "A, b, trans=0, lower=False, unit_diagonal=False, upper=None, left=True, unitriangular=False",
    "the x with T@x = b, T being the upper triangle of A, or the lower one; x@T = b where left=False",
    _solve_triangular,
    derivative="the triangle of -w@x.T, w, where w solves T.T@w = g",
    domain="no 0 on the diagonal",
    edges=("trans=1 solves with T.T", "upper= and unitriangular= are PyTorch's words for lower= and unit_diagonal="),
    samples=((_SQUARE, [1.0, -2.0]), (_SQUARE, _SQUARE, 0, True), (_BATCH, _SQUARE, 1, False, True)),
)  # fmt: skip


def _cholesky_solve(B: Any, L: Any, upper: Any = False) -> Any:  # noqa: N803
    square_matrix("cholesky_solve")(L)
    if not arrays.shape(B):
        raise ShapeError("'cholesky_solve' needs a vector or a matrix, and this is a number")
    below = adjoint(L) if boolean(upper, "'upper'") else L
    below = tril(below)
    return solve(adjoint(below), solve_lower(below, B))


cholesky_solve = Composite(
    "cholesky_solve", "B, L, upper=False", "the X with L@L.T@X = B, for a lower triangular L; an upper one where upper",
    _cholesky_solve,
    derivative="w, the lower triangle of -(w@X.T + X@w.T)@L, where L@L.T@w = g",
    domain="no 0 on the diagonal of L",
    samples=((_SQUARE, [[1.5, 0.0], [0.5, 2.0]]), (_SQUARE, [[1.5, 0.3], [0.0, 2.0]], True)),
)  # fmt: skip


def _cholesky_inverse(L: Any, upper: Any = False) -> Any:  # noqa: N803
    size = arrays.shape(L)[-1] if len(arrays.shape(L)) > 1 else 0
    unit = arrays.guard_memory(lambda xp: xp.broadcast_to(xp.eye(size), arrays.shape(L)))
    return _cholesky_solve(arrays.astype(unit, arrays.dtype_name(L)), L, upper)


cholesky_inverse = Composite(
    "cholesky_inverse", "L, upper=False", "inv(L@L.T) for a lower triangular L; inv(L.T@L) for an upper one where upper",
    _cholesky_inverse,
    derivative="the lower triangle of -y@(g + g.T)@y@L",
    domain="no 0 on the diagonal of L",
    samples=(([[1.5, 0.0], [0.5, 2.0]],), ([[1.5, 0.3], [0.0, 2.0]], True)),
)  # fmt: skip


def _solve_sylvester(A: Any, B: Any, Q: Any) -> Any:  # noqa: N803
    for x in (A, B):
        square_matrix("solve_sylvester")(x)
    rows, columns = arrays.shape(A)[-1], arrays.shape(B)[-1]
    if arrays.shape(Q)[-2:] != (rows, columns):
        raise ShapeError(f"'solve_sylvester' needs a right side of {rows} by {columns}, not {list(arrays.shape(Q))}")
    xp, dtype = arrays.numpy_namespace(), arrays.dtype_name(Q)
    # One equation per element of X: A@X couples the elements of a column, X@B those of a row.
    left = multiply(expand_dims(A, (-3, -1)), reshape(xp.eye(columns, dtype=dtype), (1, columns, 1, columns)))
    right = multiply(expand_dims(matrix_transpose(B), (-4, -2)), reshape(xp.eye(rows, dtype=dtype), (rows, 1, rows, 1)))
    both = add(left, right)
    equations = reshape(both, (*arrays.shape(both)[:-4], rows * columns, rows * columns))
    found = solve(equations, reshape(Q, (*arrays.shape(Q)[:-2], rows * columns, 1)))
    return reshape(found, (*arrays.shape(found)[:-2], rows, columns))


solve_sylvester = Composite(
    "solve_sylvester", "A, B, Q", "the X with A@X + X@B = Q, by one equation for each of its elements", _solve_sylvester,
    derivative="-W@X.T, -X.T@W, W, where A.T@W + W@B.T = g",
    domain="no eigenvalue of A is the negative of one of B",
    samples=((_SQUARE, [[1.5, 0.0], [0.5, 2.0]], _SQUARE), (_SQUARE, [[2.0]], [[1.0], [-0.5]])),
)  # fmt: skip


def _solve_banded(l_and_u: Any, ab: Any, b: Any) -> Any:
    bands, sizes = whole_numbers(l_and_u, "a number of diagonals"), arrays.shape(ab)
    if len(bands) != 2 or min(bands) < 0 or len(sizes) != 2 or sizes[0] != sum(bands) + 1:
        raise ShapeError(
            f"'solve_banded' does not fit diagonals of shape {list(sizes)}",
            hint="a row for each diagonal; the first argument is the numbers of those below and above the main one",
        )
    upper = bands[1]
    xp, size = arrays.numpy_namespace(), sizes[1]
    limits.charge(size * size)
    places, columns = xp.indices(sizes)
    rows = places + columns - upper
    inside = (rows >= 0) & (rows < size)
    elements = index(ab, (places[inside], columns[inside]))
    return solve(scatter(elements, (rows[inside], columns[inside]), (size, size)), b)


solve_banded = Composite(
    "solve_banded", "l_and_u, ab, b",
    "the x with A@x = b, for a banded matrix; l_and_u are the numbers of diagonals below and above the main one, the rows of ab are the diagonals, the highest first",
    _solve_banded,
    derivative="that of solve, for the elements in the matrix",
    domain="det(A) != 0",
    samples=(((1, 1), [[0.0, 0.5, 0.25], [2.0, 3.0, 1.5], [1.0, -0.5, 0.0]], _VECTOR),),
)  # fmt: skip


class Fit(NamedTuple):
    """A least-squares solution: the solution, the sums of squared residuals, the rank and the singular values of the
    matrix."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


def _lstsq(A: Any, b: Any, rcond: Any = None) -> Fit:  # noqa: N803
    sizes, right = arrays.shape(A), arrays.shape(b)
    if len(sizes) != 2 or not 1 <= len(right) <= 2 or right[0] != sizes[0]:
        raise ShapeError(f"'lstsq' does not fit a matrix of shape {list(sizes)} and a right side of {list(right)}")
    if rcond is not None and one_number(rcond, "'rcond'") > 1e-8:
        raise EvaluationError(
            "'lstsq' takes singular values as 0 below the rounding error alone", hint="leave rcond out"
        )
    found = matmul(pinv(A), b)
    rest = subtract(b, matmul(A, found))
    columns = reshape(rest, (-1, 1)) if len(right) == 1 else rest
    residuals = (
        sum_(square(absolute(columns) if arrays.is_complex(columns) else columns), 0)
        if sizes[0] > sizes[1]
        else index(reshape(columns, -1), slice(0, 0))
    )
    if is_exact():
        # With exact numbers pinv raises for a rank-deficient A, so that the rank is full.
        return Fit(found, residuals, float(min(sizes)), None)
    values = svdvals(A)
    smallest = max_(values) * (max(sizes) * arrays.epsilon(arrays.dtype_name(values)))
    rank = sum_(where(greater(constant(values), constant(smallest)), 1.0, 0.0))
    return Fit(found, residuals, rank, values)


lstsq = Composite(
    "lstsq", "A, b, rcond=None",
    "the x that makes sum((A@x - b)**2) smallest, that sum, the rank of A and its singular values", _lstsq,
    derivative="of x: that of pinv(A)@b",
    domain="smooth where the rank of A is that of the matrices near it",
    edges=(
        "the sums are left out where A has no more rows than columns",
        "with proved digits A must be of full rank, and there are no singular values",
    ),
    example="'x, r, rank, s = lstsq(A, b); x@x' A='[[1, 2], [3, 4]]' b='[1, 0]'",
)  # fmt: skip


# --- products and norms


def _multi_dot(tensors: Any) -> Any:
    factors = sequence(tensors, "multi_dot")
    if not 2 <= len(factors) < len(_LETTERS):
        raise ShapeError(f"'multi_dot' multiplies 2 to {len(_LETTERS) - 1} matrices")
    ranks = [len(arrays.shape(x)) for x in factors]
    if any(rank != 2 for rank in ranks[1:-1]) or any(rank not in (1, 2) for rank in ranks):
        raise ShapeError("'multi_dot' needs matrices, and the first and the last may be vectors")
    first = 0 if ranks[0] == 2 else 1
    terms = [_LETTERS[i : i + 2] for i in range(len(factors))]
    terms[0] = terms[0][first:]
    terms[-1] = terms[-1][: ranks[-1]]
    result = terms[0][: ranks[0] - 1] + terms[-1][1:]
    return einsum(f"{','.join(terms)}->{result}", *factors)


multi_dot = Composite(
    "multi_dot", "tensors", "the product of several matrices, in the order that takes the least work", _multi_dot,
    derivative="the products of g with the other matrices",
    samples=(([_MATRIX, _TALL, _SQUARE],), ([_VECTOR, _TALL, [0.5, 2.0]],)),
)  # fmt: skip


# The largest number of columns of vander, each of which is an equation of a recorded program.
_MOST_COLUMNS = 10_000


def _vander(x: Any, N: Any = None, increasing: Any = False) -> Any:  # noqa: N803
    if len(arrays.shape(x)) != 1:
        raise ShapeError(f"'vander' needs a vector, and the tensor has shape {list(arrays.shape(x))}")
    count = arrays.shape(x)[0] if N is None else integer(N, "a number of columns")
    if count < 1:
        raise ShapeError("'vander' needs at least one column")
    if count > _MOST_COLUMNS:
        raise LimitError(f"'vander' makes at most {_MOST_COLUMNS:,} columns, and {count:,} were asked for")
    limits.charge_steps(count)
    columns = [power(x, float(k)) for k in range(count)]
    return stack(columns if boolean(increasing, "'increasing'") else columns[::-1], -1)


vander = Composite(
    "vander", "x, N=None, increasing=False", "the matrix with the powers of x as columns, the highest first", _vander,
    derivative="sum(g*k*x**(k - 1)) over the columns k",
    samples=((_VECTOR,), (_VECTOR, 2), (_VECTOR, 4, True)),
)  # fmt: skip


def _matrix_norm(A: Any, ord: Any = "fro", axis: Any = None, keepdims: Any = False) -> Any:  # noqa: N803
    rank = len(arrays.shape(A))
    pair = (-2, -1) if axis is None else whole_numbers(axis, "an axis")
    if rank < 2 or len(pair) != 2:
        raise ShapeError(f"'matrix_norm' needs two axes, and the tensor has shape {list(arrays.shape(A))}")
    rows, columns = (normalize_axis(a, rank) for a in pair)
    if rows == columns:
        raise ShapeError("the same axis is named twice")
    if ord is None or (isinstance(ord, str) and ord == "fro"):
        return norm(A, 2, (rows, columns), keepdims)
    moved = moveaxis(A, (rows, columns), (-2, -1))
    found = _norm_of_last(moved, ord)
    return expand_dims(found, sorted((rows, columns))) if boolean(keepdims, "'keepdims'") else found


def _norm_of_last(x: Any, ord: Any) -> Any:
    if isinstance(ord, str) and ord == "nuc":
        return sum_(svdvals(x), -1)
    order = math.nan if isinstance(ord, str) else one_float(ord, "the order of a norm")
    if abs(order) == 2:
        return index(svdvals(x), (Ellipsis, 0 if order > 0 else -1))
    if abs(order) not in (1, math.inf):
        raise EvaluationError(
            f"there is no norm {str(ord) if isinstance(ord, str) else str(order):.40} of a matrix",
            hint="ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
        )
    sums = sum_(absolute(x), -2 if abs(order) == 1 else -1)
    return (max_ if order > 0 else min_)(sums, -1)


def _condition(A: Any, ord: Any = None) -> Any:  # noqa: N803
    order = 2 if ord is None else ord
    if type(order) in arrays.PYTHON_NUMBERS and abs(order) == 2:
        values = svdvals(A)
        largest, smallest = index(values, (Ellipsis, 0)), index(values, (Ellipsis, -1))
        return divide(largest, smallest) if order > 0 else divide(smallest, largest)
    return multiply(_matrix_norm(A, order), _matrix_norm(inv(A), order))


cond = Composite(
    "cond", "A, ord=None",
    "the condition number of matrices: the largest singular value over the smallest, or norm(A)*norm(inv(A)) in a norm of matrix_norm",
    _condition,
    derivative="that of the singular values, or of both norms",
    domain="A invertible; smooth where one singular value is the largest, and one the smallest",
    samples=((_SQUARE,), (_SQUARE, "fro"), (_SQUARE, 1), (_SQUARE, -2)),
)  # fmt: skip


matrix_norm = Composite(
    "matrix_norm", "A, ord='fro', axis=None, keepdims=False",
    "a norm of matrices, over the last two axes or those named: 'fro', the root of the sum of squares; 'nuc', 2 and -2, the sum, the largest and the smallest "
    "singular value; 1 and inf, the largest sum of magnitudes of a column and of a row, -1 and -inf the smallest",
    _matrix_norm,
    derivative="g*A/norm(A) for 'fro'; that of the singular values, or of the sums",
    domain="smooth where one is the largest, or the smallest",
    edges=("where all elements are 0, the derivative is 0",),
    samples=((_MATRIX,), (_SQUARE, "nuc"), (_MATRIX, 2), (_BATCH, 1), (_MATRIX, math.inf), (_BATCH, -2), (_BATCH, "fro", (0, 2))),
)  # fmt: skip
