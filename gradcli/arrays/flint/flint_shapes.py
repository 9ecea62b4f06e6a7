"""Functions that rearrange the elements of arrays, for object arrays of FLINT numbers and plain NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq

from gradcli.arrays.flint.balls import exact

Array = Any
_ZERO = fmpq(0)

reshape, permute_dims, broadcast_to = np.reshape, np.permute_dims, np.broadcast_to
flip, roll, take_along_axis = np.flip, np.roll, np.take_along_axis


def objects(x: Array) -> Array:
    """The array with its elements converted to FLINT numbers."""
    return x if x.dtype == object else np.asarray(np.frompyfunc(exact, 1, 1)(x), object)


def concat(tensors: Sequence[Array], axis: int) -> Array:
    return np.concat(_alike(tensors), axis=axis)


def stack(tensors: Sequence[Array], axis: int) -> Array:
    return np.stack(_alike(tensors), axis=axis)


def _alike(tensors: Sequence[Array]) -> Sequence[Array]:
    # bool and int elements may be plain Python numbers.
    found = [*map(np.asarray, tensors)]
    return [*map(objects, found)] if any(x.dtype == object for x in found) else found


def tril(x: Array, k: int) -> Array:
    """The lower triangles of the last two axes."""
    return _where(np.tri(x.shape[-2], x.shape[-1], k, bool), x)


def triu(x: Array, k: int) -> Array:
    """The upper triangles of the last two axes."""
    return _where(~np.tri(x.shape[-2], x.shape[-1], k - 1, bool), x)


def _where(mask: Array, x: Array) -> Array:
    return np.where(mask, x, _ZERO if x.dtype == object else x.dtype.type(0))


def index(x: Array, key: tuple[Any, ...]) -> Array:
    """x[key], for ints, slices, None, Ellipsis and integer arrays."""
    return x[key]
