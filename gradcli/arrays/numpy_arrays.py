"""The array namespace of NumPy: its own functions, and what the language needs beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays import special

Array = Any


def __getattr__(name: str) -> Any:
    return getattr(np, name) if hasattr(np, name) else getattr(special, name)


def scatter_add(values: Array, key: Any, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with `values` added at `key`; positions that repeat add up."""
    values = np.asarray(values)
    out = np.zeros(shape, values.dtype)
    if any(isinstance(item, np.ndarray) for item in key):
        np.add.at(out, key, values)
    else:
        # No position repeats, and this takes an eighth of the time.
        out[key] += values
    return out


def einsum(*operands: Array, subscripts: str) -> Array:
    # Pairwise contraction keeps a product of many operands from looping over all indices at once.
    return np.einsum(subscripts, *operands, optimize=len(operands) > 2)


def contraction_steps(shapes: Sequence[tuple[int, ...]], *, subscripts: str) -> Sequence[tuple[int, ...]]:
    """Which operands `einsum` multiplies at once, step by step; each product comes behind those left."""
    if len(shapes) <= 2:
        return [tuple(range(len(shapes)))]
    operands = [np.broadcast_to(0.0, shape) for shape in shapes]
    steps: Sequence[tuple[int, ...]] = np.einsum_path(subscripts, *operands, optimize=True)[0][1:]
    return steps


def round(x: Array) -> Array:
    return np.round(x)


def concat(arrays: Sequence[Array], axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def expm(x: Array) -> Array:
    """The exponential of each matrix over the last two axes."""
    import scipy.linalg

    return scipy.linalg.expm(x)


def lgamma(x: Array) -> Array:
    # SciPy has -inf at -inf, against the C standard and `math`.
    return np.where(np.isneginf(x), np.inf, special.lgamma(x))
