"""Dense linear algebra for models, by NumPy. Each call first charges the work of the language function that computes
the same, so that the limits of a run hold. All functions raise LimitError, and NumPy's LinAlgError where there is no
solution."""

from __future__ import annotations

from typing import Any

from gradcli import arrays, limits
from gradcli.primitives.entries.linear_algebra import decompositions, matrices, singular_vectors
from gradcli.primitives.primitive import Primitive


def solve(matrix: Any, right: Any) -> Any:
    """The solution of a linear system with a matrix `[n, n]`, for one right side `[n]` or several `[n, k]`."""
    _charge(matrices.solve, matrix, right)
    return arrays.numpy_namespace().linalg.solve(matrix, right)


def with_constraints(hessian: Any, jacobian: Any) -> Any:
    """The matrix `[n + m, n + m]` of the optimality conditions (Karush-Kuhn-Tucker) for a Hessian `[n, n]` and the
    Jacobian `[m, n]` of constraints."""
    np = arrays.numpy_namespace()
    return np.block([[hessian, jacobian.T], [jacobian, np.zeros((len(jacobian), len(jacobian)))]])


def least_squares(matrix: Any, right: Any, rcond: float | None = None) -> Any:
    """The least-squares solution of minimum norm."""
    _charge(decompositions.pinv, matrix, right)
    return arrays.numpy_namespace().linalg.lstsq(matrix, right, rcond=rcond)[0]


def symmetric_eigenvalues(matrix: Any) -> Any:
    """The eigenvalues `[n]` of a symmetric matrix, in ascending order."""
    _charge(decompositions.eigvalsh, matrix)
    return arrays.numpy_namespace().linalg.eigvalsh(matrix)


def symmetric_eigenvectors(matrix: Any) -> tuple[Any, Any]:
    """The eigenvalues `[n]` of a symmetric matrix, in ascending order, and its eigenvectors as columns `[n, n]`."""
    _charge(decompositions.eigenvectors, matrix)
    values, vectors = arrays.numpy_namespace().linalg.eigh(matrix)
    return values, vectors


def singular_values(matrix: Any) -> Any:
    """The singular values of a matrix, in descending order."""
    _charge(decompositions.svdvals, matrix)
    return arrays.numpy_namespace().linalg.svd(matrix, compute_uv=False)


def right_singular_vectors(matrix: Any) -> tuple[Any, Any]:
    """The singular values of a matrix `[m, n]`, in descending order, and an orthogonal matrix `[n, n]`: its first rows
    are the right singular vectors, and the others span the null space."""
    _charge(singular_vectors.right_vectors, matrix)
    _, sizes, directions = arrays.numpy_namespace().linalg.svd(matrix)
    return sizes, directions


def condition_number(matrix: Any) -> float:
    """The 2-norm condition number of a matrix; infinite for a singular one."""
    _charge(decompositions.svdvals, matrix)
    return float(arrays.numpy_namespace().linalg.cond(matrix))


def _charge(primitive: Primitive, *operands: Any) -> None:
    limits.charge(primitive.time * primitive.elements([arrays.shape(o) for o in operands], {}))
