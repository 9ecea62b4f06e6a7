"""Singular vectors, with the rules of J. Townsend, "Differentiating the singular value decomposition" (2016)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import boolean
from gradcli.primitives.bind import constant, constant_for_branching
from gradcli.primitives.entries.arithmetic import absolute, add, divide, multiply, negative, subtract
from gradcli.primitives.entries.comparisons import equal, greater, less_equal, logical_and, where
from gradcli.primitives.entries.elementwise.complex_numbers import conj, imag, real
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.linear_algebra.decompositions import (
    are_distinct,
    check_phases,
    distinct_and_not_0,
    equality_tolerance,
    phase_tolerance,
    svdvals,
)
from gradcli.primitives.entries.linear_algebra.matrices import adjoint, conjugated, matrix_cost
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import expand_dims, matrix_transpose
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "linear algebra"

_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_SQUARE = [[2.0, 0.5], [-1.0, 3.0]]
_TALL = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]


def _over_square_gaps(part: Any, other: Any, values: Any) -> Any:
    """(part + other)[i, j]/(s[j]**2 - s[i]**2), 0 on the diagonal.

    Where singular values are equal it is 0 if both summands are 0, as the result does not depend on that pair, else
    nan: a sum that cancels there would hide a dependence on both vectors.
    """
    row, column = expand_dims(values, -2), expand_dims(values, -1)
    gap = subtract(row, column)
    same = less_equal(absolute(constant_for_branching(gap)), expand_dims(equality_tolerance(values), -1))
    identity = arrays.numpy_namespace().eye(arrays.shape(part)[-1], dtype=bool)
    without = logical_and(equal(part, 0), equal(other, 0))
    nothing = where(identity, True, logical_and(same, without))
    gaps = where(same, 1.0, multiply(gap, add(row, column)))
    return where(nothing, 0.0, where(same, math.nan, divide(add(part, other), gaps)))


def _over_values(outside: Any, row: Any) -> Any:
    """The component outside the space of the vectors, divided by the singular values; nan where these are 0 and it is
    not."""
    zero = less_equal(constant_for_branching(row), equality_tolerance(row))
    return where(zero, where(equal(outside, 0), 0.0, math.nan), divide(outside, where(zero, 1.0, row)))


def _vectors_rule(g: Any, y: Any, others: Any, values: Any, taller: bool) -> Any:
    """The cotangent of y@diag(values)@others.H from that of y, which has more rows than columns if `taller`."""
    turned = matmul(matrix_transpose(y), g)
    row = expand_dims(values, -2)
    within = _over_square_gaps(turned, negative(adjoint(turned)), values)
    moved = matmul(conjugated(y), multiply(within, row))
    if taller:
        moved = add(moved, _over_values(subtract(g, matmul(conjugated(y), turned)), row))
    return matmul(moved, matrix_transpose(others))


def _vectors_slope(slope: Any, y: Any, others: Any, values: Any, taller: bool) -> Any:
    """The derivative of y from the derivative of y@diag(values)@others.H."""
    moved, row = matmul(slope, others), expand_dims(values, -2)
    turned = matmul(adjoint(y), moved)
    scaled = multiply(turned, row)
    found = matmul(y, _over_square_gaps(scaled, adjoint(scaled), values))
    return add(found, _over_values(subtract(moved, matmul(y, turned)), row)) if taller else found


def _taller(x: Any) -> bool:
    rows, columns = arrays.shape(x)[-2:]
    return rows > columns


def _beside(x: Any, left: Any) -> Any:
    """The right singular vectors that belong to the left ones."""
    return phased_right_vectors(x, left) if arrays.is_complex(x) else right_vectors(x)


def _left_rule(g: Any, y: Any, x: Any) -> Any:
    if arrays.is_complex(y):
        check_phases(g, y, sum_(multiply(y, g), -2))
    return _vectors_rule(g, y, _beside(x, y), paired_values(x), _taller(x))


def _left_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    (inner,) = y.inside_rule(primitive, (x,), {})
    others, values = _beside(inner, y), paired_values(inner)
    yield from integrate_coefficients(y, _vectors_slope(x.derivative(), y, others, values, _taller(x)))


def _right_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    (inner,) = y.inside_rule(primitive, (x,), {})
    others, values = left_vectors(inner), paired_values(inner)
    taller = _taller(matrix_transpose(x))
    yield from integrate_coefficients(y, _vectors_slope(matrix_transpose(x.derivative()), y, others, values, taller))


def _phase_of(g: Any, y: Any) -> Any:
    """The cotangent of the phases of vectors, from that of the vectors; 0 where it is a rounding error."""
    along = imag(sum_(multiply(y, g), -2, True))
    tolerance = phase_tolerance(g, y, True)
    # Where g is 0 the product is 0 too, and not by rounding: it may be differentiated by g.
    rounding = logical_and(less_equal(absolute(constant(along)), tolerance), greater(tolerance, 0.0))
    return multiply(where(rounding, 0.0, along), 1j)


def _phased_right_rule(g: Any, y: Any, x: Any, left: Any) -> Any:
    values = paired_values(x)
    within = _vectors_rule(g, y, left, values, _taller(matrix_transpose(x)))
    turns = _over_values(negative(_phase_of(g, y)), expand_dims(values, -2))
    return add(adjoint(within), matmul(multiply(conj(left), turns), matrix_transpose(y)))


def _phased_right_series(primitive: Primitive, y: Any, x: Any, left: Any) -> Coefficients:
    """The phases of vectors: by A@V = U@S that of a vector follows from its partner and from U.H@A'@V."""
    inner, others = y.inside_rule(primitive, (x, left), {})
    values, slope = paired_values(inner), x.derivative()
    found = _vectors_slope(adjoint(slope), y, others, values, _taller(matrix_transpose(x)))
    turns = imag(sum_(multiply(conj(others), left.derivative()), -2, True))
    moved = imag(sum_(multiply(conj(others), matmul(slope, y)), -2, True))
    turns = subtract(turns, _over_values(moved, expand_dims(values, -2)))
    yield from integrate_coefficients(y, add(found, multiply(y, multiply(turns, 1j))))


def _smooth_vectors(x: Any, taller: bool) -> bool:
    values = svdvals(x)
    return distinct_and_not_0(values) if taller else are_distinct(values)


def _vectors(name: str, doc: str, **known: Any) -> Primitive:
    return Primitive(
        name, "A", doc,
        internal="svd",
        prepare=_matrix_call,
        elements=matrix_cost(row=20, element=8, cube=6),
        batch=batching.trailing,
        domain="no two singular values equal, and none 0",
        samples=((_SQUARE,), (_TALL,), ([_MATRIX, [[0.5, 1.0, -1.0], [0.0, 2.0, 1.0]]],)),
        **known,
    )  # fmt: skip


def _matrix_call(x: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if len(arrays.shape(x)) < 2:
        raise ShapeError(f"'svd' needs a matrix, and the tensor has shape {list(arrays.shape(x))}")
    return (x,), {}


def _right_vectors(xp: Any, x: Any) -> Any:
    rows = xp.linalg.svd(x, full_matrices=False)[2]
    if arrays.is_complex(rows):
        rows = xp.conj(rows)
    *batch, last, columns = range(len(rows.shape))
    return xp.permute_dims(rows, (*batch, columns, last))


left_vectors: Primitive = _vectors(
    "left_vectors", "the left singular vectors of a matrix, as columns",
    numbers="complex",
    forward=lambda xp, x: xp.linalg.svd(x, full_matrices=False)[0],
    vjp=(_left_rule,),
    jet=_left_series,
    smooth=lambda x: _smooth_vectors(x, _taller(x)),
    nan_at_kinks=True,
    derivative="(U@((U.T@g - g.T@U)/(s[j]**2 - s[i]**2))@S + (g - U@U.T@g)/S)@V.T",
)  # fmt: skip

right_vectors: Primitive = _vectors(
    "right_vectors", "the right singular vectors of a real matrix, as columns",
    forward=_right_vectors,
    vjp=(
        lambda g, y, x: matrix_transpose(
            _vectors_rule(g, y, left_vectors(x), paired_values(x), _taller(matrix_transpose(x)))
        ),
    ),
    jet=_right_series,
    smooth=lambda x: _smooth_vectors(x, _taller(matrix_transpose(x))),
    nan_at_kinks=True,
    derivative="that of left_vectors(A.T), transposed",
)  # fmt: skip

phased_right_vectors: Primitive = Primitive(
    "phased_right_vectors", "A, U", "the right singular vectors of a complex matrix with the phases that the left ones give them",
    internal="svd", numbers="complex",
    forward=lambda xp, x, _left: _right_vectors(xp, x),
    vjp=(_phased_right_rule, lambda g, y, _x, left: multiply(conj(left), _phase_of(g, y))),
    jet=_phased_right_series,
    prepare=lambda x, left: ((x, left), {}),
    elements=matrix_cost(row=20, element=8, cube=6),
    batch=batching.trailing_of_all,
    derivative="that of left_vectors(A.H), and V.T@g of the phases",
    domain="no two singular values equal, and none 0",
)  # fmt: skip


def _value_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """s' is the diagonal of U.H@x'@V."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    left = left_vectors(inner)
    slope = sum_(multiply(conjugated(left), matmul(x.derivative(), _beside(inner, left))), -2)
    yield from integrate_coefficients(y, real(slope) if arrays.is_complex(slope) else slope)


def _value_rule(g: Any, _y: Any, x: Any) -> Any:
    left = left_vectors(x)
    return matmul(multiply(conjugated(left), expand_dims(g, -2)), matrix_transpose(_beside(x, left)))


paired_values: Primitive = _vectors(
    "paired_values", "the singular values beside their vectors",
    numbers="complex",
    forward=lambda xp, x: xp.linalg.svdvals(x),
    # A singular value 0 has a kink, but u.T@A@v is smooth for vectors with matching signs, and its derivative is used.
    vjp=(_value_rule,),
    jet=_value_series,
    smooth=lambda x: distinct_and_not_0(svdvals(x)),
    spelling=names_elsewhere(numpy="linalg.svdvals"),
    derivative="U@diag(g)@V.T",
)  # fmt: skip


def _svd(A: Any, full_matrices: Any = True, compute_uv: Any = True) -> Any:  # noqa: N803
    _matrix_call(A)
    if not boolean(compute_uv, "'compute_uv'"):
        return svdvals(A)
    rows, columns = arrays.shape(A)[-2:]
    if boolean(full_matrices, "'full_matrices'") and rows != columns:
        raise ShapeError(
            f"of a matrix of {rows} by {columns}, the singular vectors beyond the singular values may be any",
            hint="svd(A, full_matrices=False) leaves them out, and svdvals(A) has the values alone",
        )
    left = left_vectors(A)
    return left, paired_values(A), adjoint(_beside(A, left))


svd = Composite(
    "svd", "A, full_matrices=True, compute_uv=True",
    "the U, the singular values s in falling order and the V.T with U@diag(s)@V.T = A", _svd,
    derivative="U: (U@((U.T@g - g.T@U)/(s[j]**2 - s[i]**2))@S + (g - U@U.T@g)/S)@V.T; s: U@diag(g)@V.T; V as U of A.T",
    domain="no two singular values equal, and none 0",
    edges=(
        "the derivative of a singular value that is 0 is that of u.T@A@v, so that U@diag(s)@V.T has its own",
        "where singular values are equal, derivatives that depend on their vectors are nan, unless the program's value is smooth",
        "full_matrices=True is for square matrices, others are an error",
        "the signs of the columns of U are those of LAPACK",
    ),
    example="'U, s, V = svd(A); s[0]*U[0, 0]*V[0, 0]' A='[[2, 0.5], [-1, 3]]'",
)  # fmt: skip
