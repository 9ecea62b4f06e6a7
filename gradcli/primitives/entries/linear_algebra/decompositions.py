"""Decompositions of matrices and functions based on them, over the last two axes.

A decomposition with several results is composed of primitives with one result each. The rules: M. Giles, "An extended
collection of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008) for
eigenvalues and singular values, I. Murray, "Differentiation of the Cholesky decomposition" (2016), S. Walter and
L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010) for QR, and G. Golub and V. Pereyra, "The
differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import DifferentiationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import boolean, one_float, option
from gradcli.primitives.bind import Kind, constant, constant_for_branching
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import absolute, add, divide, minus, multiply, subtract, zeros_like
from gradcli.primitives.entries.comparisons import (
    equal,
    greater,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    nowhere,
    where,
)
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.linear_algebra.matrices import adjoint, conjugated, matrix_cost, solve, square_matrix
from gradcli.primitives.entries.reductions import max_, sum_
from gradcli.primitives.entries.shape import concat, expand_dims, flip, matrix_transpose, tril, triu
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients, products
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere
from gradcli.primitives.symmetric_parts import told_now

SUBJECT = "linear algebra"

_SYMMETRIC = [[2.0, 0.5], [0.5, 3.0]]
_SYMMETRIC_BATCH = [_SYMMETRIC, [[1.0, 0.2], [0.2, -2.0]]]
_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_TALL = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]

# Eigenvalues or singular values count as equal up to this many units of rounding of the largest one, times the number
# of rows: the error of LAPACK is a few such units.
EQUALITY_ROUNDINGS = 8.0
_WIDE = [[1.0, 0.5, 3.0], [2.0, -1.0, 0.25]]


def _matrix(name: str) -> Any:
    def prepare(x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
        sizes = arrays.shape(x)
        if len(sizes) < 2:
            raise ShapeError(f"'{name}' needs a matrix, and the tensor has shape {list(sizes)}")
        return (x,), {}

    return prepare


def _hermitian_part(x: Any) -> Any:
    """Half the sum of matrices and their conjugate transposes; of real ones the symmetric part."""
    return 0.5 * (x + adjoint(x))


def _symmetric_part(x: Any) -> Any:
    """The operand of a decomposition of symmetric matrices, in place of the arrays `x`: their symmetric parts.

    Where these differ from `x` by more than rounding errors, whoever listens is told.
    """
    part, tell = _hermitian_part(x), told_now()
    if tell is not None and arrays.size(x):
        rounding = math.sqrt(sys.float_info.epsilon) if arrays.dtype_name(x) in ("float64", "complex128") else 1e-4
        if arrays.all_true(greater(max_(absolute(x - part)), rounding * max_(absolute(x)))):
            tell("Hermitian" if arrays.is_complex(x) else "symmetric")
    return part


def identity_matrix(x: Any) -> Any:
    """The identity matrix of the size of matrices and in their precision, of real numbers."""
    return arrays.numpy_namespace().eye(arrays.shape(x)[-1], dtype=arrays.real_dtype(arrays.dtype_name(x)))


def equality_tolerance(values: Any) -> Any:
    """The distance up to which eigenvalues along the last axis count as equal, `[…, 1]`; 0 where numbers are exact."""
    values = constant_for_branching(values)
    if arrays.is_complex(values):
        values = absolute(values)
    if is_exact() or (isinstance(values, Kind) and values.one_sided) or not arrays.size(values):
        return zeros_like(index(values, (Ellipsis, slice(1))))
    unit = float(arrays.numpy_namespace().finfo(arrays.dtype_name(values)).eps)
    return multiply(EQUALITY_ROUNDINGS * arrays.shape(values)[-1] * unit, max_(absolute(values), -1, True))


def are_distinct(values: Any) -> bool:
    """Return whether no two neighbouring eigenvalues along the last axis count as equal."""
    above, below = (index(values, (Ellipsis, part)) for part in (slice(1, None), slice(-1)))
    return nowhere(less_equal(absolute(subtract(above, below)), equality_tolerance(values)))


def _real(x: Any) -> Any:
    """The real part of complex numbers; real ones unchanged, at no cost."""
    return real(x) if arrays.is_complex(x) else x


def _diagonal(x: Any) -> Any:
    return sum_(multiply(identity_matrix(x), x), -1)


def phase_tolerance(g: Any, vectors: Any, keepdims: bool = False) -> Any:
    """The size up to which the product of g with a vector counts as rounding error: sums of large terms leave such, and
    half of the digits tell them from a dependence."""
    size = sum_(multiply(absolute(constant(g)), absolute(constant(vectors))), -2, keepdims)
    return multiply(arrays.epsilon(arrays.dtype_name(vectors)) ** 0.5, size)


def check_phases(g: Any, vectors: Any, along: Any) -> None:
    """Raise DifferentiationError if a loss with the cotangent `g` of vectors depends on their phases: then the products
    of g with each of them, in `along`, have an imaginary part."""
    if not arrays.is_complex(along):
        return
    if not nowhere(greater(absolute(imag(constant(along))), phase_tolerance(g, vectors))):
        raise DifferentiationError(
            "the value depends on the phases of eigenvectors or singular vectors, which are arbitrary",
            hint="what is the same for a vector v and for v*exp(1j*phi), such as abs(v), has a derivative",
        )


def _as_row(x: Any) -> Any:
    """A vector (or a batch of vectors) as a matrix with one row."""
    return reshape(x, (*arrays.shape(x)[:-1], 1, arrays.shape(x)[-1]))


def _half_triangle(x: Any) -> Any:
    """The lower triangle, with its diagonal halved."""
    return multiply(tril(x), 1.0 - 0.5 * identity_matrix(x))


def solve_lower(a: Any, b: Any) -> Any:
    """Solve a lower triangular system, for a vector or the columns of a matrix, from the last row to the first.

    All eliminated entries are 0 then, so that no rows are exchanged; pivoting could underflow a small diagonal
    entry.
    """
    rows = -1 if len(arrays.shape(b)) == 1 else -2
    return flip(solve(flip(a, (-2, -1)), flip(b, rows)), rows)


def _cholesky_rule(g: Any, y: Any, _x: Any) -> Any:
    left = solve(matrix_transpose(y), _half_triangle(matmul(matrix_transpose(y), g)))
    return _hermitian_part(adjoint(solve(matrix_transpose(y), adjoint(left))))


def _times_adjoint(a: Any, b: Any) -> Any:
    return matmul(a, adjoint(b))


def _cholesky_series(_primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """Coefficients of y from y@y.H = x: the two terms with y[k] in coefficient k are solved for it."""
    for k in itertools.count(1):
        part = x.coefficient(k)
        symmetric = None if part is None else multiply(0.5, add(part, adjoint(part)))
        rest = minus(symmetric, y.total(products(_times_adjoint, y, y, k, first=1, last=1)))
        if rest is None:
            yield None
        else:
            both = solve_lower(y.inner, adjoint(solve_lower(y.inner, rest)))
            yield matmul(y.inner, _half_triangle(both))


cholesky: Primitive = Primitive(
    "cholesky", "A", "the lower triangular L with L@L.T = A; L@L.H of complex numbers",
    numbers="complex",
    forward=lambda xp, x: xp.linalg.cholesky(_symmetric_part(x)),
    vjp=(_cholesky_rule,),
    jet=_cholesky_series,
    prepare=square_matrix("cholesky"),
    elements=matrix_cost(),
    fails=True,
    batch=batching.trailing,
    spelling=names_elsewhere(numpy="linalg.cholesky"),
    derivative="S + S.T over 2, S = inv(L).T@P@inv(L), P = tril(L.T@g) with its diagonal halved",
    domain="A symmetric and positive definite",
    edges=(
        "of a matrix that is not symmetric, the symmetric part is taken",
        "a matrix that is not positive definite is an error",
    ),
    samples=((_SYMMETRIC,), ([_SYMMETRIC, [[1.0, 0.2], [0.2, 2.0]]],)),
)  # fmt: skip


def _eigenvalue_rule(g: Any, _y: Any, x: Any) -> Any:
    vectors = eigenvectors(x)
    return matmul(conjugated(vectors) * _as_row(g), matrix_transpose(vectors))


_EIGENVALUE_EDGES = (
    "of a matrix that is not symmetric, the symmetric part is taken",
    "where eigenvalues are equal, derivatives of their vectors and second ones are nan, unless the program's value is smooth",
)


def _turned(vectors: Any, x: Any) -> Any:
    """The Hermitian part of `x` in the basis of the columns of `vectors`."""
    return matmul(matmul(adjoint(vectors), _hermitian_part(x)), vectors)


def _eigenvalue_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """w' is the diagonal of V.H@x'@V."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    yield from integrate_coefficients(y, _diagonal(_real(_turned(eigenvectors(inner), x.derivative()))))


def _symmetric_matrix(x: Any, triangle: Any) -> Any:
    """The symmetric, or Hermitian, matrix whose lower or upper triangle is that of x."""
    square_matrix("eigh")(x)
    lower = option(triangle, ("L", "U", "l", "u"), "triangle") in ("L", "l")
    return tril(x) + adjoint(tril(x, -1)) if lower else triu(x) + adjoint(triu(x, 1))


eigvalsh: Primitive = Primitive(
    "eigvalsh", "A", "the eigenvalues of a symmetric or Hermitian matrix, in rising order",
    numbers="complex",
    forward=lambda xp, x: xp.linalg.eigvalsh(_symmetric_part(x)),
    vjp=(_eigenvalue_rule,),
    jet=_eigenvalue_series,
    prepare=square_matrix("eigvalsh"),
    elements=matrix_cost(element=2, cube=2),
    fails=True,
    batch=batching.trailing,
    spelling=names_elsewhere(numpy="linalg.eigvalsh"),
    derivative="V@diag(g)@V.T, with the eigenvectors V",
    domain="A symmetric; smooth where no two eigenvalues are equal",
    edges=_EIGENVALUE_EDGES,
    smooth=lambda x: are_distinct(eigvalsh(x)),
    samples=((_SYMMETRIC,), (_SYMMETRIC_BATCH,)),
)  # fmt: skip


def over_gaps(m: Any, eigenvalues: Any) -> Any:
    """m[i, j]/(w[j] - w[i]), 0 on the diagonal.

    Where eigenvalues are equal it is 0 if m[i, j] is 0, as the result does not depend on that pair, else nan.
    """
    gaps = _as_row(eigenvalues) - matrix_transpose(_as_row(eigenvalues))
    same = less_equal(absolute(constant_for_branching(gaps)), expand_dims(equality_tolerance(eigenvalues), -1))
    nothing = logical_or(identity_matrix(m) != 0, logical_and(same, equal(m, 0)))
    return where(nothing, 0.0, where(same, math.nan, divide(m, where(same, 1.0, gaps))))


def _eigenvector_rule(g: Any, y: Any, x: Any) -> Any:
    turned = matmul(matrix_transpose(y), g)
    check_phases(g, y, _diagonal(turned) if arrays.is_complex(turned) else turned)
    turned = over_gaps(turned, eigvalsh(x))
    return _hermitian_part(matmul(matmul(conjugated(y), turned), matrix_transpose(y)))


def _eigenvector_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """V' = V@K, where K is V.H@x'@V divided by the gaps between the eigenvalues."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    yield from integrate_coefficients(y, matmul(y, over_gaps(_turned(y, x.derivative()), eigvalsh(inner))))


eigenvectors: Primitive = Primitive(
    "eigenvectors", "A", "the eigenvectors of a symmetric or Hermitian matrix, as columns",
    internal="eigh", numbers="complex",
    forward=lambda xp, x: xp.linalg.eigh(_symmetric_part(x))[1],
    vjp=(_eigenvector_rule,),
    jet=_eigenvector_series,
    prepare=square_matrix("eigh"),
    elements=matrix_cost(element=2, cube=2),
    batch=batching.trailing,
    derivative="V@(V.T@g/(w[j] - w[i]))@V.T, its symmetric part",
    domain="A symmetric, no two eigenvalues equal",
    smooth=lambda x: are_distinct(eigvalsh(x)),
    nan_at_kinks=True,
    samples=((_SYMMETRIC,), (_SYMMETRIC_BATCH,)),
)  # fmt: skip


def _eigh(A: Any, UPLO: Any = None) -> tuple[Any, Any]:  # noqa: N803
    A = A if UPLO is None else _symmetric_matrix(A, UPLO)  # noqa: N806
    return eigvalsh(A), eigenvectors(A)


eigh = Composite(
    "eigh", "A, UPLO=None",
    "the eigenvalues w of a symmetric matrix in rising order, and its eigenvectors, the columns of V; UPLO='L' or 'U' has one triangle read",
    _eigh,
    derivative="of w: V@diag(g)@V.T; of V: V@(V.T@g/(w[j] - w[i]))@V.T, its symmetric part",
    domain="A symmetric; V: no two eigenvalues equal",
    edges=(*_EIGENVALUE_EDGES, "the sign of an eigenvector is arbitrary"),
    example="'w, V = eigh(A); w[0]*V[0, 0]**2' A='[[2, 0.5], [0.5, 3]]'",
)  # fmt: skip


def _orthonormal_rule(g: Any, y: Any, x: Any) -> Any:
    r = triu(matmul(adjoint(y), x))
    m = -matmul(adjoint(g), conjugated(y))
    below = tril(m, -1)
    # The diagonal of R is real.
    diagonal = multiply(identity_matrix(m), real(m)) if arrays.is_complex(m) else None
    mirrored = tril(m) + matrix_transpose(below) if diagonal is None else below + adjoint(below) + diagonal
    return matrix_transpose(solve(r, matrix_transpose(g + matmul(conjugated(y), mirrored))))


def _orthonormal_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """With B = x'@inv(R), the component of y' in the column space of y is skew with the lower triangle of y.H@B."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    r = triu(matmul(adjoint(y), inner))
    b = matrix_transpose(solve_lower(matrix_transpose(r), matrix_transpose(x.derivative())))
    within = matmul(adjoint(y), b)
    lower = tril(within, -1)
    skew = lower - adjoint(lower)
    if arrays.is_complex(within):
        skew = skew + multiply(identity_matrix(within), imag(within)) * 1j
    yield from integrate_coefficients(y, b + matmul(y, skew - within))


orthonormal = Primitive(
    "orthonormal", "A", "the orthonormal columns Q of the QR decomposition of a matrix with no more columns than rows",
    internal="qr", numbers="complex",
    forward=lambda xp, x: xp.linalg.qr(x)[0],
    vjp=(_orthonormal_rule,),
    jet=_orthonormal_series,
    prepare=_matrix("qr"),
    elements=matrix_cost(),
    batch=batching.trailing,
    derivative="(g + Q@M)@inv(R).T, with the lower triangle of M = -g.T@Q mirrored",
    domain="the columns of A are linearly independent",
    samples=((_TALL,), ([_SQUARE, _SYMMETRIC],)),
)  # fmt: skip


def _qr(x: Any) -> tuple[Any, Any]:
    _matrix("qr")(x)
    # Q depends on the first square block of columns only.
    q = orthonormal(index(x, (Ellipsis, slice(0, arrays.shape(x)[-2]))))
    return q, triu(matmul(adjoint(q), x))


qr = Composite(
    "qr", "A", "the Q with orthonormal columns and the upper triangular R with Q@R = A", _qr,
    derivative="(Q@M)@inv(R).T, with the lower triangle of M = R@gR.T - gQ.T@Q mirrored, and gQ@inv(R).T",
    domain="the first columns of A, as many as fit a square, are linearly independent",
    edges=("the signs of the columns of Q are those of LAPACK",),
    example="'Q, R = qr(A); sum(R**2)' A='[[1, 2], [0.5, -1], [3, 0.25]]'",
)  # fmt: skip


def _augmented(x: Any) -> Any:
    """The matrix [[0, A], [A.H, 0]]: its eigenvalues are the singular values of A and their negatives."""
    *batch, m, n = arrays.shape(x)
    xp, dtype = arrays.numpy_namespace(), arrays.dtype_name(x)
    above = concat([xp.zeros((*batch, m, m), dtype), x], -1)
    below = concat([adjoint(x), xp.zeros((*batch, n, n), dtype)], -1)
    return concat([above, below], -2)


def _singular_vectors(x: Any) -> tuple[Any, Any]:
    """The left and right singular vectors as columns, each of length sqrt(1/2)."""
    rows, columns = arrays.shape(x)[-2:]
    vectors = flip(index(eigenvectors(_augmented(x)), (Ellipsis, slice(max(rows, columns), None))), -1)
    return (
        index(vectors, (Ellipsis, slice(0, rows), slice(None))),
        index(vectors, (Ellipsis, slice(rows, None), slice(None))),
    )


def _singular_value_rule(g: Any, y: Any, x: Any) -> Any:
    left, right = _singular_vectors(x)
    weights = where(equal(y, 0), 0.0, 2.0 * g)
    return matmul(conjugated(left) * _as_row(weights), matrix_transpose(right))


def _singular_value_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """s' is the diagonal of U.H@x'@V."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    left, right = _singular_vectors(inner)
    slope = 2.0 * sum_(_real(conjugated(left) * matmul(x.derivative(), right)), -2)
    yield from integrate_coefficients(y, where(equal(y, 0), 0.0, slope))


def distinct_and_not_0(values: Any) -> bool:
    """Return whether no singular value counts as 0, and no two count as equal."""
    return nowhere(less_equal(values, equality_tolerance(values))) and are_distinct(values)


svdvals: Primitive = Primitive(
    "svdvals", "A", "the singular values of a matrix, in falling order",
    numbers="complex",
    forward=lambda xp, x: xp.linalg.svdvals(x),
    vjp=(_singular_value_rule,),
    jet=_singular_value_series,
    prepare=_matrix("svdvals"),
    elements=matrix_cost(row=20, element=4, cube=2),
    fails=True,
    batch=batching.trailing,
    spelling=names_elsewhere(numpy="linalg.svdvals"),
    derivative="U@diag(g)@V.T, with the singular vectors U and V",
    domain="smooth where no two singular values are equal, and none is 0",
    edges=(
        "the derivative of a singular value that is 0 is taken as 0",
        "where singular values are equal, second derivatives are nan, unless the program's value is smooth",
    ),
    selects=True,
    smooth=lambda x: distinct_and_not_0(svdvals(x)),
    samples=((_SQUARE,), (_TALL,), ([_WIDE, [[0.5, 1.0, -1.0], [0.0, 2.0, 1.0]]],)),
)  # fmt: skip


def _rest(g: Any, projected: Any, rank: Any, full: int) -> Any:
    """g minus its projection onto a space of dimension `rank`; 0 at full rank, where only rounding errors would
    remain."""
    return where(greater(rank, full - 0.5), 0.0, g - projected)


def _pseudo_inverse_rule(g: Any, y: Any, x: Any) -> Any:
    gt, yt = matrix_transpose(g), matrix_transpose(y)
    yh = conjugated(yt)
    rank = _real(sum_(constant(x) * matrix_transpose(constant(y)), (-2, -1), True))
    outside = _rest(gt, matmul(x, matmul(y, gt)), rank, arrays.shape(x)[-2])
    inside = _rest(gt, matmul(matmul(gt, y), x), rank, arrays.shape(x)[-1])
    return conjugated(matmul(matmul(outside, y), yh) + matmul(yh, matmul(y, inside))) - matmul(yt, matmul(g, yt))


def _pseudo_inverse(xp: Any, x: Any) -> Any:
    x = x if arrays.is_inexact(x) else xp.astype(x, arrays.default_dtype())
    if is_exact():
        return xp.linalg.pinv(x)
    # Singular values below rtol times the largest count as 0; the default of torch.linalg.pinv.
    return xp.linalg.pinv(x, rtol=max(x.shape[-2:], default=1) * xp.finfo(x.dtype).eps)


def _pseudo_inverse_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """The pseudo-inverse rule applied to a tangent: the vjp rule at x equals the jvp at x.T."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    slope = _pseudo_inverse_rule(x.derivative(), matrix_transpose(y), matrix_transpose(inner))
    yield from integrate_coefficients(y, slope)


pinv = Primitive(
    "pinv", "A", "the pseudo-inverse of Moore and Penrose",
    numbers="complex",
    forward=_pseudo_inverse,
    vjp=(_pseudo_inverse_rule,),
    jet=_pseudo_inverse_series,
    prepare=_matrix("pinv"),
    elements=matrix_cost(call=3000, row=40, element=8, cube=4),
    fails=True,
    batch=batching.trailing,
    spelling=names_elsewhere(numpy="linalg.pinv"),
    derivative="-P.T@g@P.T + (I - A@P)@g.T@P@P.T + P.T@P@g.T@(I - P@A), with P = pinv(A)",
    domain="smooth where the rank of A is that of the matrices near it",
    aliases=("pinverse",),
    samples=((_SQUARE,), (_TALL,), ([_WIDE, [[0.5, 1.0, -1.0], [0.0, 2.0, 1.0]]],)),
)  # fmt: skip


def _matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, rtol: Any = None, *, atol: Any = None) -> Any:  # noqa: N803
    by_eigenvalues = boolean(hermitian, "'hermitian'")
    sizes = absolute(eigvalsh(_symmetric_matrix(A, "L"))) if by_eigenvalues else svdvals(A)
    given = [one_float(t, "a tolerance") for t in (tol, atol) if t is not None]
    relative = max(arrays.shape(A)[-2:]) * arrays.epsilon(arrays.dtype_name(sizes))
    if rtol is not None:
        relative = one_float(rtol, "a tolerance")
    elif tol is not None or any(given):
        relative = 0.0
    least = max(given, default=0.0)
    if arrays.shape(sizes)[-1]:
        least = maximum(multiply(relative, max_(sizes, -1, True)), least)
    return sum_(greater(sizes, least), -1)


matrix_rank = Composite(
    "matrix_rank", "A, tol=None, hermitian=False, rtol=None, *, atol=None",
    "how many singular values of a matrix are above the tolerance: tol or atol, and rtol times the largest of them",
    _matrix_rank,
    derivative="none",
    edges=("where no tolerance is given, rtol is the larger size of the matrix times the spacing of the numbers at 1",),
    samples=(([[1.0, 2.0], [2.0, 4.0]],), (_TALL,)),
)  # fmt: skip
