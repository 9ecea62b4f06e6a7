"""Functional replacement of elements, the implementation of assignment to elements."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.indexing import index


def set_at(x: Any, key: Any, value: Any) -> Any:
    """`x` with `value`, broadcast to the shape of `x[key]`, at `key`; if a position occurs repeatedly, its last value
    wins.

    The cotangent goes to `value` at these positions and to `x` elsewhere. Raises ShapeError for a key out of bounds or
    a value whose shape does not fit.
    """
    return set_at_positions(x, positions(arrays.shape(x), key), value)


def set_at_positions(x: Any, places: Any, value: Any) -> Any:
    """`x` with `value`, broadcast to the shape of `places`, at these flat positions; see `set_at`."""
    shape = arrays.shape(x)
    size = math.prod(shape)
    limits.charge(3 * size)
    value = reshape(broadcast_to(value, places.shape), (-1,))
    if not places.size:
        return x
    xp = arrays.numpy_namespace()
    # For each element of x the index of the value that replaces it, or -1.
    source = xp.full(size, -1)
    source[places.reshape(-1)] = xp.arange(places.size)
    there = source >= 0
    taken = index(value, xp.where(there, source, 0))
    return where(there.reshape(shape), reshape(taken, shape), x)


def positions(shape: tuple[int, ...], key: Any = ...) -> Any:
    """The flat positions, in row-major order, of the elements at `key` in a tensor of `shape`."""
    xp = arrays.numpy_namespace()
    places = xp.arange(math.prod(shape)).reshape(shape)
    return arrays.to_numpy(index(places, key))


def indices_in(places: Any, wanted: Any) -> Any:
    """The index in the flattened `places` of each wanted position; -1 if it does not occur."""
    xp = arrays.numpy_namespace()
    last = places.max(initial=-1)
    numbers = xp.full(last + 2, -1)
    numbers[places.reshape(-1)] = xp.arange(places.size)
    return numbers[xp.clip(wanted, -1, last + 1)]
