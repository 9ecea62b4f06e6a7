"""Packed second derivatives: each of the k = p(p + 1)/2 pairs of parameters once, and the symmetric matrices of
these."""

from __future__ import annotations

from typing import Any

import numpy as np


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
