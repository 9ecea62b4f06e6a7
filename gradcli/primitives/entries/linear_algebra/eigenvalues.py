"""Eigenvalues and eigenvectors of general matrices, which are complex numbers also where the matrix is real.

The rules are those of C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann and R. Haeb-Umbach, "On the computation of
complex-valued gradients with application to statistically optimum beamforming" (2017). The length of an eigenvector is
1, but its phase is arbitrary: a loss that depends on it has no derivative.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.primitives import batching
from gradcli.primitives.entries.arithmetic import absolute, multiply, subtract
from gradcli.primitives.entries.comparisons import less_equal, nowhere, where
from gradcli.primitives.entries.elementwise.complex_numbers import conj, real
from gradcli.primitives.entries.linear import matmul
from gradcli.primitives.entries.linear_algebra.decompositions import (
    check_phases,
    equality_tolerance,
    identity_matrix,
    over_gaps,
)
from gradcli.primitives.entries.linear_algebra.matrices import matrix_cost, solve, square_matrix
from gradcli.primitives.entries.reductions import sum_
from gradcli.primitives.entries.shape import expand_dims, matrix_transpose
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive

SUBJECT = "linear algebra"


def _eig(part: int) -> Any:
    """The eigenvalues, part 0, or the eigenvectors, part 1, which NumPy gives as real numbers if all are real."""

    def forward(xp: Any, x: Any) -> Any:
        if is_exact():
            return (xp.eigenbasis if part else xp.eigvals)(x)
        found = xp.linalg.eig(x)[part]
        return found if arrays.is_complex(found) else xp.astype(found, arrays.complex_dtype(arrays.dtype_name(found)))

    return forward


def no_two_equal(values: Any) -> bool:
    """Return whether no two complex numbers along the last axis count as equal."""
    gaps = absolute(subtract(expand_dims(values, -1), expand_dims(values, -2)))
    # In ball arithmetic the comparison of a number with itself cannot be decided.
    itself = arrays.numpy_namespace().eye(arrays.shape(values)[-1], dtype=bool)
    return nowhere(less_equal(where(itself, math.inf, gaps), expand_dims(equality_tolerance(values), -1)))


def _are_distinct(x: Any) -> bool:
    return no_two_equal(eigvals(x))


def _diagonal(x: Any) -> Any:
    return sum_(multiply(identity_matrix(x), x), -2)


def _values_rule(g: Any, _y: Any, x: Any) -> Any:
    rows = matrix_transpose(eigenbasis(x))
    return solve(rows, multiply(expand_dims(g, -1), rows))


def _values_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """w' is the diagonal of inv(V)@x'@V."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    vectors = eigenbasis(inner)
    yield from integrate_coefficients(y, _diagonal(solve(vectors, matmul(x.derivative(), vectors))))


# LAPACK finds eigenvalues without eigenvectors in another order than with them, in which the derivatives are.
eigvals: Primitive = Primitive(
    "eigvals", "A", "the eigenvalues of a matrix, complex numbers in the order of LAPACK",
    numbers="analytic",
    forward=_eig(0),
    vjp=(_values_rule,),
    jet=_values_series,
    prepare=square_matrix("eigvals"),
    elements=matrix_cost(element=8, cube=25),
    fails=True,
    batch=batching.trailing,
    derivative="inv(V).T@diag(g)@V.T, with the eigenvectors V",
    domain="smooth where no two eigenvalues are equal",
    smooth=_are_distinct,
    node_name="LinalgEigBackward0",
    example="'sum(abs(eigvals(A)))' A='[[2, 0.5], [-1, 3]]'",
)  # fmt: skip


def _vectors_rule(g: Any, y: Any, x: Any) -> Any:
    rows = matrix_transpose(y)
    turned = matmul(rows, g)
    along = _diagonal(turned)
    check_phases(g, y, along)
    # The components that change the length of a vector are removed.
    turned = subtract(turned, multiply(matmul(rows, conj(y)), expand_dims(real(along), -2)))
    return solve(rows, matmul(over_gaps(turned, eigvals(x)), rows))


def _vectors_series(primitive: Primitive, y: Any, x: Any) -> Coefficients:
    """V' = V@K, where K is inv(V)@x'@V divided by the gaps between the eigenvalues, without what changes lengths."""
    (inner,) = y.inside_rule(primitive, (x,), {})
    moved = matmul(y, over_gaps(solve(y, matmul(x.derivative(), y)), eigvals(inner)))
    along = real(sum_(multiply(conj(y), moved), -2, True))
    yield from integrate_coefficients(y, subtract(moved, multiply(y, along)))


eigenbasis: Primitive = Primitive(
    "eigenbasis", "A", "the eigenvectors of a matrix, as columns of length 1",
    internal="eig", numbers="complex",
    forward=_eig(1),
    vjp=(_vectors_rule,),
    jet=_vectors_series,
    prepare=square_matrix("eig"),
    elements=matrix_cost(element=8, cube=25),
    fails=True,
    batch=batching.trailing,
    derivative="inv(V).T@((V.T@g - V.T@conj(V)@diag(real(V.T@g)))/(w[j] - w[i]))@V.T",
    domain="no two eigenvalues equal",
    smooth=_are_distinct,
    nan_at_kinks=True,
    node_name="LinalgEigBackward0",
)  # fmt: skip


eig = Composite(
    "eig", "A", "the eigenvalues w of a matrix, and its eigenvectors, the columns of V, of length 1, all complex numbers",
    lambda A: (eigvals(A), eigenbasis(A)),  # noqa: N803
    derivative="of w: inv(V).T@diag(g)@V.T; of V: inv(V).T@(M/(w[j] - w[i]))@V.T, M = V.T@g - V.T@conj(V)@diag(real(V.T@g))",
    domain="smooth where no two eigenvalues are equal, and the phases of the eigenvectors do not matter",
    example="'w, V = eig(A); sum(abs(w)) + abs(V[0, 0])' A='[[2, 0.5], [-1, 3]]'",
)  # fmt: skip
