"""Second derivatives by pairs of parameters once, k = p(p + 1)/2 of them, and the symmetric matrices that they are of."""

from __future__ import annotations

from typing import Any

import numpy as np


def pairs(p: int) -> tuple[Any, Any]:
    """The indices of the elements on and above the diagonal of a matrix of p rows, as `numpy.triu_indices` has them."""
    return np.triu_indices(p)


def unpacked(packed: Any, p: int) -> Any:
    """The symmetric matrices `[…, p, p]` with these elements `[…, k]` on and above the diagonal."""
    i, j = pairs(p)
    matrix = np.empty((*packed.shape[:-1], p, p))
    matrix[..., i, j] = packed
    matrix[..., j, i] = packed
    return matrix
