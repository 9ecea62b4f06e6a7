"""Products of vectors and matrices with added terms, distances, block matrices, tensor equations, and solvers from LU
factors."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import ShapeError
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import equal, nowhere, where
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import diagonal, einsum, matmul, outer
from gradcli.primitives.entries.linear_algebra.linear_systems import solve_triangular
from gradcli.primitives.entries.linear_algebra.matrices import conjugated, inv, solve
from gradcli.primitives.entries.manipulation.gather_scatter import diag_embed, take_along_axis
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.sampled_data.sampling import padded
from gradcli.primitives.entries.shape import concat, matrix_transpose, moveaxis, ravel, tril, triu
from gradcli.primitives.entries.statistics import norm
from gradcli.primitives.operation import Composite

SUBJECT = "linear algebra"

_VECTOR, _OTHER = [1.0, 2.5, -3.0], [0.5, -2.0, 1.0]
_PAIR = [0.5, -1.0]
_MATRIX, _SECOND = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]], [[0.5, -1.0, 2.0], [1.5, 0.25, -2.0]]
_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]

# --- products with an added term


def _beside(name: str, operands: str, product: Any, doc: str, derivative: str, samples: tuple[Any, ...]) -> Composite:
    """PyTorch's functions beta*input + alpha*(product of two operands), such as addmm."""

    def definition(input: Any, first: Any, second: Any, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
        return add(multiply(beta, input), multiply(alpha, product(first, second)))

    return Composite(
        name, f"input, {operands}, beta=1.0, alpha=1.0", f"beta*input + alpha*{doc}", definition,
        derivative=derivative, samples=samples,
    )  # fmt: skip


addmv = _beside(
    "addmv", "mat, vec", matmul, "(mat@vec)",
    "beta*g, alpha*outer(g, vec), alpha*mat.T@g",
    ((_PAIR, _MATRIX, _OTHER), (_PAIR, _MATRIX, _OTHER, 0.5, 2.0)),
)  # fmt: skip
addr = _beside(
    "addr", "vec1, vec2", outer, "outer(vec1, vec2)",
    "beta*g, alpha*g@vec2, alpha*g.T@vec1",
    ((_MATRIX, _PAIR, _OTHER), (_MATRIX, _PAIR, _OTHER, 0.5, 2.0)),
)  # fmt: skip
addbmm = _beside(
    "addbmm", "batch1, batch2", lambda first, second: sum_(matmul(first, second), 0), "sum(batch1@batch2, 0)",
    "beta*g, alpha*g@batch2.T, alpha*batch1.T@g",
    ((_SQUARE, [_SQUARE, _SQUARE], [_SQUARE, _SQUARE], 0.5, 2.0),),
)  # fmt: skip

# --- products of vectors

vecdot = Composite(
    "vecdot", "x, y, axis=-1", "sum(conj(x)*y) along an axis, which may be broadcast",
    lambda x, y, axis=-1: sum_(multiply(*_broadcast(conjugated(x), y)), axis),
    derivative="g*y, g*x",
    samples=((_VECTOR, _OTHER), (_MATRIX, _SECOND, 0)),
)  # fmt: skip


def _broadcast(x: Any, y: Any) -> tuple[Any, Any]:
    shape = broadcast([arrays.shape(x), arrays.shape(y)])
    return broadcast_to(x, shape), broadcast_to(y, shape)


def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    result = einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else add(result, bias)


bilinear = Composite(
    "bilinear", "input1, input2, weight, bias=None",
    "for each matrix in weight input1@matrix@input2, plus bias, along the last axes", _bilinear,
    derivative="the sums of g*(weight@input2), g*(input1@weight), g*outer(input1, input2), g",
    samples=((_PAIR, _OTHER, [_MATRIX, _SECOND], _PAIR),),
)  # fmt: skip

dist = Composite(
    "dist", "input, other, p=2", "norm(input - other, p) over all elements",
    lambda input, other, p=2.0: norm(subtract(input, other), p),
    derivative="g*(input - other)/y for p=2, its negative",
    domain="smooth where y != 0",
    edges=("where input and other are equal, the derivative is 0",),
    samples=((_VECTOR, _OTHER), (_MATRIX, _OTHER, 3.0)),
)  # fmt: skip


def _pdist(input: Any, p: Any = 2.0) -> Any:
    shape = arrays.shape(input)
    if len(shape) != 2:
        raise ShapeError(f"'pdist' needs a matrix, of a point in each row, not a tensor of {list(shape)}")
    limits.charge(shape[0] * shape[0])
    first, second = arrays.numpy_namespace().triu_indices(shape[0], 1)
    return norm(subtract(index(input, (first,)), index(input, (second,))), p, -1)


pdist = Composite(
    "pdist", "input, p=2.0", "the distances of each row from those behind it, in the norm of order p", _pdist,
    derivative="the sums of g*(row - other)/distance for p=2",
    domain="smooth where no two rows are equal",
    edges=("where two rows are equal, the derivative is 0",),
    samples=(([_VECTOR, _OTHER, [2.0, 0.0, 0.5]],), ([_VECTOR, _OTHER, [2.0, 0.0, 0.5]], 1.0)),
)  # fmt: skip

# --- block matrices and tensor equations


def _block(x: Any) -> Any:
    sizes = arrays.shape(x)
    if len(sizes) > 2:
        raise ShapeError(f"'block_diag' takes matrices, vectors and numbers, not a tensor of {list(sizes)}")
    return x if len(sizes) == 2 else reshape(x, (1, -1))


def _block_diag(*tensors: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    blocks = [*map(_block, tensors)]
    width, before, rows = sum(arrays.shape(b)[1] for b in blocks), 0, []
    for block in blocks:
        height, own = arrays.shape(block)
        limits.charge(height * width)
        rows.append(padded(block, [(0, 0), (before, width - before - own)], "constant", 0.0))
        before += own
    return concat(rows, 0)


block_diag = Composite(
    "block_diag", "*tensors", "the matrix with matrices along its diagonal, and 0 elsewhere; a vector is a row", _block_diag,
    derivative="the block of g that each tensor became",
    samples=((_MATRIX, _SQUARE), (_VECTOR, 0.5)),
)  # fmt: skip


def _tensorsolve(A: Any, B: Any, axes: Any = None) -> Any:  # noqa: N803
    rank = len(arrays.shape(A))
    if axes is not None:
        moved = [normalize_axis(a, rank) for a in whole_numbers(axes, "an axis")]
        A = moveaxis(A, moved, range(rank - len(moved), rank))  # noqa: N806
    sizes, right = arrays.shape(A), arrays.shape(B)
    if math.prod(sizes[: len(right)]) != math.prod(sizes[len(right) :]):
        raise ShapeError(f"'tensorsolve' does not fit a tensor of {list(sizes)} and a right side of {list(right)}")
    size = math.prod(right)
    return reshape(solve(reshape(A, (size, size)), ravel(B)), sizes[len(right) :])


tensorsolve = Composite(
    "tensorsolve", "A, B, axes=None", "the X with tensordot(A, X, X.ndim) = B; some axes of A may be moved behind first",
    _tensorsolve,
    derivative="that of solve",
    domain="A is regular as a matrix",
    samples=(([[[2.0, 0.5], [0.0, 1.0]], [[0.5, 3.0], [1.0, 0.0]], [[1.0, 0.0], [2.0, 0.5]], [[0.0, 1.0], [0.5, 3.0]]], [1.0, 2.0, -1.0, 0.5]),),
)  # fmt: skip


def _tensorinv(A: Any, ind: Any = 2) -> Any:  # noqa: N803
    sizes, count = arrays.shape(A), integer(ind, "'ind'")
    size = math.prod(sizes[:count])
    if count < 1 or size != math.prod(sizes[count:]):
        raise ShapeError(f"'tensorinv' does not fit a tensor of {list(sizes)}, cut behind {count} axes")
    return reshape(inv(reshape(A, (size, size))), sizes[count:] + sizes[:count])


tensorinv = Composite(
    "tensorinv", "A, ind=2", "the inverse of A as a matrix whose rows are its first ind axes", _tensorinv,
    derivative="that of inv",
    domain="A is regular as a matrix",
    samples=(([[[2.0, 0.5], [0.0, 1.0]], [[0.5, 3.0], [1.0, 0.0]], [[1.0, 0.0], [2.0, 0.5]], [[0.0, 1.0], [0.5, 3.0]]], 1),),
)  # fmt: skip

# --- solvers from factors


def _order(pivots: Any, size: int) -> Any:
    """The permutation of the rows that LAPACK's pivots describe, a number of a row for each row."""
    numbers = integer_array(concrete(pivots), "a pivot")
    if numbers.shape[-1:] != (size,) or (numbers.size and not 1 <= numbers.min() <= numbers.max() <= size):
        raise ShapeError(f"pivots of shape {list(numbers.shape)} are not {size} numbers of rows, from 1 on")
    return _permutation(numbers, size)


def _permutation(pivots: Any, size: int) -> Any:
    """The order of `size` rows of which row i was exchanged with row pivots[i], counted from 1, one after the other."""
    limits.charge(pivots.size * size)
    xp = arrays.numpy_namespace()
    rows = xp.broadcast_to(xp.arange(size), (*pivots.shape[:-1], size)).copy()
    for place in range(pivots.shape[-1]):
        other = pivots[..., place : place + 1] - 1
        moved = xp.take_along_axis(rows, other, -1)
        xp.put_along_axis(rows, other, rows[..., place : place + 1].copy(), -1)
        rows[..., place : place + 1] = moved
    return rows


def solved_by_factors(LU: Any, pivots: Any, B: Any, left: Any = True, adjoint: Any = False) -> Any:  # noqa: N803
    """The X with A@X = B (X@A = B unless `left`), from the LU factors of A in one matrix and the pivots."""
    sizes, right = arrays.shape(LU), arrays.shape(B)
    if len(sizes) < 2 or sizes[-1] != sizes[-2] or len(right) < 2:
        raise ShapeError(f"'lu_solve' does not fit factors of shape {list(sizes)} and a right side of {list(right)}")
    transposed = boolean(adjoint, "'adjoint'")
    if not boolean(left, "'left'"):
        right_side = conjugated(matrix_transpose(B))
        return conjugated(matrix_transpose(solved_by_factors(LU, pivots, right_side, True, not transposed)))
    rows = _order(pivots, sizes[-1])
    if transposed:
        conjugate = conjugated(matrix_transpose(LU))
        below = solve_triangular(conjugate, B, upper=False)
        found = solve_triangular(conjugate, below, upper=True, unitriangular=True)
        return _rows_taken(found, arrays.numpy_namespace().argsort(rows, -1))
    below = solve_triangular(LU, _rows_taken(B, rows), upper=False, unitriangular=True)
    return solve_triangular(LU, below, upper=True)


def _rows_taken(x: Any, rows: Any) -> Any:
    batch: Shape = broadcast([arrays.shape(x)[:-2], rows.shape[:-1]])
    wide = broadcast_to(x, (*batch, *arrays.shape(x)[-2:]))
    xp = arrays.numpy_namespace()
    return take_along_axis(wide, xp.broadcast_to(rows[..., None], arrays.shape(wide)), -2)


lu_solve = Composite(
    "lu_solve", "b, LU_data, LU_pivots",
    "the X with A@X = b, from the factors L and U of A in one matrix and the exchanges of its rows, counted from 1",
    lambda b, LU_data, LU_pivots: solved_by_factors(LU_data, LU_pivots, b),  # noqa: N803
    derivative="those of solving with L and with U",
    domain="no element on the diagonal of U is 0",
    samples=(([[1.0], [2.0]], [[2.0, 1.0], [0.5, 3.0]], [2, 2]),),
)  # fmt: skip

# --- factors


class Factors(NamedTuple):
    """The factors L and U of a matrix with its rows exchanged, in one matrix, and the exchanges, counted from 1."""

    LU: Any
    pivots: Any


class Triangles(NamedTuple):
    """A permutation P, a lower triangular L with ones on its diagonal, and an upper triangular U."""

    P: Any
    L: Any
    U: Any


def _pivots(A: Any) -> Any:  # noqa: N803
    """LAPACK's exchanges of rows, counted from 1, for which no element of L is larger than 1."""
    # Imported here, because few programs need it.
    from scipy.linalg import get_lapack_funcs

    matrices, xp = arrays.to_numpy(concrete(A)), arrays.numpy_namespace()
    *batch, rows, columns = matrices.shape
    limits.charge(matrices.size * min(rows, columns))
    found = xp.zeros((math.prod(batch), min(rows, columns)), int)
    if found.size:
        (factorised,) = get_lapack_funcs(("getrf",), (matrices,))
        for place, matrix in zip(found, matrices.reshape(-1, rows, columns)):
            place[:] = factorised(matrix)[1] + 1
    return found.reshape(*batch, min(rows, columns))


def _eliminated(x: Any) -> Any:
    """The factors L and U of matrices whose rows need no exchange, in one matrix, by halves of its diagonal."""
    size = min(arrays.shape(x)[-2:])
    half = max(size // 2, 1)
    here, behind = slice(half), slice(half, None)
    if size <= 1:
        if arrays.shape(x)[-2] <= 1 or not size:
            return x
        first = index(x, (Ellipsis, here, slice(None)))
        # As LAPACK has it, a column of zeros is left as it is.
        return concat(
            [first, divide(index(x, (Ellipsis, behind, slice(None))), where(equal(first, 0), 1.0, first))], -2
        )
    factors = _eliminated(index(x, (Ellipsis, here, here)))
    right = solve_triangular(factors, index(x, (Ellipsis, here, behind)), lower=True, unit_diagonal=True)
    below = solve_triangular(_without_zeros(factors), index(x, (Ellipsis, behind, here)), left=False)
    rest = _eliminated(subtract(index(x, (Ellipsis, behind, behind)), matmul(below, right)))
    return concat([concat([factors, right], -1), concat([below, rest], -1)], -2)


def _without_zeros(upper: Any) -> Any:
    """Triangular matrices with ones in place of zeros on the diagonal: below such a pivot there are zeros alone, so that
    any divisor leaves them as they are, as LAPACK does."""
    zeros = equal(diagonal(upper, 0, -2, -1), 0)
    return upper if nowhere(zeros) else add(upper, diag_embed(where(zeros, 1.0, 0.0)))


def _lu_factor(A: Any) -> Factors:  # noqa: N803
    if len(arrays.shape(A)) < 2:
        raise ShapeError(f"'lu_factor' needs a matrix, and the tensor has shape {list(arrays.shape(A))}")
    pivots = _pivots(A)
    factors = _eliminated(_rows_taken(A, _permutation(pivots, arrays.shape(A)[-2])))
    return Factors(factors, arrays.in_default_namespace(pivots))


_FACTORS_RULE = "inv(L).T@(tril(L.T@gL, -1) + triu(gU@U.T))@inv(U).T in the old order of the rows"
_FACTORS_DOMAIN = "no element on the diagonal of U is 0, but for the last"

lu_factor = Composite(
    "lu_factor", "A", "the factors L and U of A in one matrix, and the exchanges of its rows, counted from 1, as lu_solve takes them",
    _lu_factor,
    derivative=_FACTORS_RULE, domain=_FACTORS_DOMAIN,
    example="'LU, p = lu_factor(A); LU[0, 0]*LU[1, 1]' A='[[1, 2], [4, 3]]'",
)  # fmt: skip


def _lu(A: Any) -> Triangles:  # noqa: N803
    factors, pivots = _lu_factor(A)
    rows, columns = arrays.shape(A)[-2:]
    size, xp = min(rows, columns), arrays.numpy_namespace()
    order = _permutation(arrays.to_numpy(pivots), rows)
    moved = xp.eye(rows, dtype=arrays.dtype_name(factors))[order].swapaxes(-1, -2)
    lower = tril(index(factors, (Ellipsis, slice(None), slice(size))), -1)
    return Triangles(
        arrays.in_default_namespace(moved),
        add(lower, xp.eye(rows, size, dtype=arrays.dtype_name(factors))),
        triu(index(factors, (Ellipsis, slice(size), slice(None)))),
    )


lu = Composite(
    "lu", "A", "P, L and U with A = P@L@U: a permutation, and a lower and an upper triangular matrix, ones on the diagonal of L",
    _lu,
    derivative=_FACTORS_RULE, domain=_FACTORS_DOMAIN,
    example="'P, L, U = lu(A); U[0, 0]*U[1, 1]' A='[[1, 2], [4, 3]]'",
)  # fmt: skip
