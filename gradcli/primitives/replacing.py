"""Elements replaced: what assigning to elements makes of a tensor."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.primitives.comparisons import where
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.indexing import index


def replaced(x: Any, key: Any, value: Any) -> Any:
    """`x` with `value` at `key`, broadcast to the shape of `x[key]`; of several values for one place the last is there.

    The gradient goes to `value` there, and to `x` elsewhere. Raises ShapeError for a key that `x` does not have, and a
    value of a shape that does not fit.
    """
    return put(x, positions(arrays.shape(x), key), value)


def put(x: Any, places: Any, value: Any) -> Any:
    """`x` with `value`, broadcast to the shape of `places`, at these places; see `replaced`."""
    shape = arrays.shape(x)
    size = math.prod(shape)
    limits.charge(3 * size)
    value = reshape(broadcast_to(value, places.shape), (-1,))
    if not places.size:
        return x
    xp = arrays.numpy_namespace()
    # For each element the number of the value that replaces it.
    source = xp.full(size, -1)
    source[places.reshape(-1)] = xp.arange(places.size)
    there = source >= 0
    taken = index(value, xp.where(there, source, 0))
    return where(there.reshape(shape), reshape(taken, shape), x)


def positions(shape: tuple[int, ...], key: Any = ...) -> Any:
    """The places in a tensor of a shape, counted from 0 row by row, of what stands at `key`."""
    xp = arrays.numpy_namespace()
    places = xp.arange(math.prod(shape)).reshape(shape)
    return arrays.to_numpy(index(places, key))


def numbers_among(places: Any, wanted: Any) -> Any:
    """For each wanted place its number among `places`, counted row by row; -1 for one that is not there."""
    xp = arrays.numpy_namespace()
    last = places.max(initial=-1)
    numbers = xp.full(last + 2, -1)
    numbers[places.reshape(-1)] = xp.arange(places.size)
    return numbers[xp.clip(wanted, -1, last + 1)]
