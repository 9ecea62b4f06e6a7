"""Power series of eigenvalues, singular values and their vectors, where some coincide at the point.

The eigenvalues and eigenvectors of a symmetric matrix A(t) that is a power series are power series too (F. Rellich).
Where eigenvalues of A(0) coincide, A(0) alone does not determine their vectors: these are those of the first derivative
within the invariant subspace, or of the next one if some coincide again. That is the reduction process of T. Kato,
"Perturbation Theory for Linear Operators", II.2.3.

A series is a NumPy array of its coefficients, `[order + 1, …]`.
"""

from __future__ import annotations

import itertools
from typing import Any

from gradcli import arrays
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.linear_algebra.decompositions import EQUALITY_ROUNDINGS


class Eigen(NamedTuple):
    """Eigenvalues in ascending order for small t > 0, up to the order of the matrix, and their vectors, up to the order
    that is determined.

    `equal` are the ranges of eigenvalues that coincide for all t.
    """

    values: Any
    vectors: Any
    equal: list[range]


class Singular(NamedTuple):
    """Singular values in descending order for small t > 0, and their vectors as columns."""

    values: Any
    left: Any
    right: Any


def eigen(matrix: Any) -> Eigen:
    """Decompose a series of symmetric matrices; the vectors of simple eigenvalues have the signs that LAPACK gives
    them."""
    return _eigen(matrix, abs(matrix).max((-2, -1)))


def singular(matrix: Any) -> Singular:
    """Decompose a series of matrices.

    Of a singular value that is 0 at t = 0, the shorter of the two vectors has the sign that LAPACK gives it, as only
    that one is determined up to its sign; the other is such that the singular value is positive for t > 0.
    """
    np = arrays.numpy_namespace()
    left, _, right = np.linalg.svd(matrix[0], full_matrices=False)
    (rows, columns), number = matrix.shape[1:], min(matrix.shape[1:])
    # The eigenvalues of this matrix are the singular values, their negatives, and zeros.
    both = np.zeros((len(matrix), rows + columns, rows + columns), matrix.dtype)
    both[:, :rows, rows:] = matrix
    both[:, rows:, :rows] = np.swapaxes(matrix, -2, -1)
    values, vectors, equal = eigen(both)
    found = [np.sqrt(2.0) * vectors[:, part, ::-1][..., :number] for part in (slice(rows), slice(rows, None))]
    values = values[:, ::-1][:, :number].copy()
    for block in equal:
        first = block.start
        if first + block.stop == rows + columns and first < number:
            # Vectors of singular values 0 are any orthonormal basis of the complement of the others.
            for vector, part in zip(found, (slice(rows), slice(rows, None))):
                vector[..., first:] = _basis(vectors[:, part, first : block.stop])[..., : number - first]
            values[:, first:] = 0.0
    turned = found[1][0] * right.T if rows >= columns else found[0][0] * left
    signs = np.where(np.sum(turned, 0) < 0.0, -1.0, 1.0)
    return Singular(values, *(vector * signs for vector in found))


def _eigen(matrix: Any, sizes: Any) -> Eigen:
    """Implementation of `eigen`; `sizes` are the magnitudes of the summands of each coefficient."""
    np = arrays.numpy_namespace()
    number = matrix.shape[-1]
    rounding = EQUALITY_ROUNDINGS * number * float(np.finfo(matrix.dtype).eps)
    identity = np.eye(number, dtype=matrix.dtype)
    means = np.trace(matrix, axis1=-2, axis2=-1) / number
    if np.all(abs(matrix - means[:, None, None] * identity).max((-2, -1)) <= rounding * sizes):
        return Eigen(np.tile(means[:, None], number), _constant(identity, len(matrix)), [range(number)])
    vectors = np.linalg.eigh(matrix[0])[1]
    turned = vectors.T @ matrix @ vectors
    first = np.diagonal(turned[0])
    breaks = [0, *(np.flatnonzero(np.diff(first) > rounding * sizes[0]) + 1), number]
    blocks = [slice(int(start), int(stop)) for start, stop in itertools.pairwise(breaks)]
    spaces, sizes = _invariant(turned, blocks, sizes)
    values, found, equal = np.zeros((len(matrix), number), matrix.dtype), [], []
    for block in blocks:
        basis = _orthonormal(spaces[..., block])
        inner = _product(_product(np.swapaxes(basis, -2, -1), turned), basis)
        values[0, block] = np.mean(first[block])
        if basis.shape[-1] == 1:
            values[1:, block] = inner[1:, :, 0]
        elif len(inner) == 1:
            basis = basis[:0]
        else:
            further = _eigen(0.5 * (inner + np.swapaxes(inner, -2, -1))[1:], sizes[1:])
            values[1:, block], basis = further.values, _product(basis, further.vectors)
            equal += [range(block.start + same.start, block.start + same.stop) for same in further.equal]
        found.append(basis)
    length = min(map(len, found))
    return Eigen(values, vectors @ np.concatenate([basis[:length] for basis in found], -1), equal)


def _invariant(matrix: Any, blocks: list[slice], sizes: Any) -> tuple[Any, Any]:
    """S(t), whose columns in `blocks` span the invariant subspaces of a matrix with a diagonal first coefficient.

    matrix@S = S@D, where D is block diagonal and the diagonal blocks of S are identities. Also returns the magnitudes
    of the summands of D.
    """
    np = arrays.numpy_namespace()
    within = np.zeros(matrix.shape[1:], bool)
    first = np.diagonal(matrix[0]).copy()
    for block in blocks:
        within[block, block] = True
        first[block] = np.mean(first[block])
    gaps = np.where(within, 1.0, first - first[:, None])
    spaces, inner = _constant(np.eye(len(first), dtype=matrix.dtype), len(matrix)), np.zeros_like(matrix)
    sizes = sizes.copy()
    for k in range(1, len(matrix)):
        terms = np.concatenate([matrix[1 : k + 1] @ spaces[k - 1 :: -1], -spaces[k - 1 : 0 : -1] @ inner[1:k]])
        total = terms.sum(0)
        inner[k] = np.where(within, total, 0.0)
        spaces[k] = np.where(within, 0.0, total / gaps)
        sizes[k] = max(sizes[k], abs(terms).max())
    return spaces, sizes


def _constant(first: Any, length: int) -> Any:
    np = arrays.numpy_namespace()
    series = np.zeros((length, *first.shape), first.dtype)
    series[0] = first
    return series


def _product(a: Any, b: Any) -> Any:
    length = min(len(a), len(b))
    found = a[0] @ b[:length]
    for k in range(1, length):
        found[k:] += a[k] @ b[: length - k]
    return found


def _orthonormal(basis: Any) -> Any:
    """Orthonormalise columns that are so in the first coefficient: multiplied by inv(L.T), where L@L.T is their Gram
    matrix."""
    np = arrays.numpy_namespace()
    gram = _product(np.swapaxes(basis, -2, -1), basis)
    identity = np.eye(gram.shape[-1], dtype=basis.dtype)
    factor, inverse = _constant(identity, len(gram)), _constant(identity, len(gram))
    for k in range(1, len(gram)):
        rest = gram[k] - sum((factor[j] @ factor[k - j].T for j in range(1, k)), np.zeros_like(identity))
        factor[k] = np.tril(rest) - 0.5 * np.diag(np.diagonal(rest))
        inverse[k] = -sum(factor[j] @ inverse[k - j] for j in range(1, k + 1))
    return _product(basis, np.swapaxes(inverse, -2, -1))


def _basis(part: Any) -> Any:
    """An orthonormal basis of the range of the projection part@part.T, where `part` is some rows of a basis of a null
    space."""
    np = arrays.numpy_namespace()
    projection = _product(part, np.swapaxes(part, -2, -1))
    rank = round(float(np.trace(projection[0])))
    first = np.linalg.eigh(projection[0])[1][:, ::-1][:, :rank]
    return _orthonormal(projection @ first)
