"""Linear algebra of many small matrices at once, and symmetric ones packed to their elements on and above the diagonal.

Linear algebra has the axis of the matrices last, so that each operation runs over all of them, contiguous in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def batch_last(matrices: Any) -> Any:
    """Matrices `[g, m, n]` transposed to `[m, n, g]`."""
    return np.ascontiguousarray(matrices.transpose(1, 2, 0))


def cholesky(matrices: Any) -> Any:
    """The upper triangular factors R `[k, k, g]`, with RᵀR the symmetric matrices `[k, k, g]`. A matrix that is not
    positive definite gives 0 or nan on the diagonal, in the last row at the latest."""
    found = np.zeros_like(matrices)
    with np.errstate(all="ignore"):
        for i in range(len(matrices)):
            rest = matrices[i, i:] - product(found[:i, i:].swapaxes(0, 1), found[:i, i])
            found[i, i] = root = np.sqrt(rest[0])
            np.divide(rest[1:], root, out=found[i, i + 1 :])
    return found


def inverse(triangles: Any) -> Any:
    """The inverses of upper triangular matrices `[k, k, g]`; not finite where a matrix is singular."""
    found = np.zeros(triangles.shape)
    with np.errstate(all="ignore"):
        for i in reversed(range(len(triangles))):
            np.divide(1.0, triangles[i, i], out=found[i, i])
            if i + 1 < len(triangles):
                rest = product(found[i + 1 :, i + 1 :].swapaxes(0, 1), triangles[i, i + 1 :])
                np.multiply(rest, -found[i, i], out=found[i, i + 1 :])
    return found


def product(matrices: Any, vectors: Any) -> Any:
    """The products `[m, g]` of matrices `[m, n, g]` and vectors `[n, g]`."""
    return np.einsum("mng,ng->mg", matrices, vectors)


def norms(vectors: Any) -> Any:
    """The lengths of vectors `[n, g]`, or of the columns of matrices `[n, m, g]`."""
    return np.sqrt(squared_norms(vectors))


def squared_norms(vectors: Any) -> Any:
    """The squared lengths of vectors `[n, g]`, or of the columns of matrices `[n, m, g]`."""
    return np.einsum("n...,n...->...", vectors, vectors)


def pairs(p: int) -> tuple[Any, Any]:
    """The indices of the elements on and above the diagonal of a matrix of p rows, in the order of
    `numpy.triu_indices`."""
    return np.triu_indices(p)


def unpacked(packed: Any, p: int) -> Any:
    """The symmetric matrices `[…, p, p]` with the elements `packed` `[…, k]` on and above the diagonal."""
    i, j = pairs(p)
    matrix = np.empty((*packed.shape[:-1], p, p))
    matrix[..., i, j] = packed
    matrix[..., j, i] = packed
    return matrix
