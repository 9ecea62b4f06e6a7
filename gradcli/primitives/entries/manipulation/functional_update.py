"""Functional replacement of elements, the implementation of assignment to elements."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.index_keys import Key, has_arrays
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.comparisons import where
from gradcli.primitives.entries.indexing import index, normalize_key, scatter


def set_at(x: Any, key: Any, value: Any) -> Any:
    """`x` with `value`, broadcast to the shape of `x[key]`, at `key`; if a position occurs repeatedly, its last value
    wins.

    The cotangent goes to `value` at these positions and to `x` elsewhere. Raises ShapeError for a key out of bounds or
    a value whose shape does not fit.
    """
    shape = arrays.shape(x)
    places, key = positions(shape, key), normalize_key(key)
    return set_at_positions(x, places, value) if has_arrays(key) else _set_at_key(x, key, places, value)


def set_at_positions(x: Any, places: Any, value: Any) -> Any:
    """`x` with `value`, broadcast to the shape of `places`, at these flat positions; see `set_at`."""
    shape = arrays.shape(x)
    key = basic_key(places, shape) if places.size else None
    if key is not None:
        return _set_at_key(x, key, places, value)
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


def _set_at_key(x: Any, key: Key, places: Any, value: Any) -> Any:
    """`x` with `value` at a key without arrays, which selects these flat positions."""
    shape = arrays.shape(x)
    limits.charge(3 * math.prod(shape))
    value = broadcast_to(value, places.shape)
    if not places.size:
        return x
    there = arrays.numpy_namespace().zeros(shape, dtype=bool)
    there[key] = True
    return where(there, scatter(value, key, shape), x)


def positions(shape: tuple[int, ...], key: Any = ...) -> Any:
    """The flat positions, in row-major order, of the elements at `key` in a tensor of `shape`."""
    xp = arrays.numpy_namespace()
    places = xp.arange(math.prod(shape)).reshape(shape)
    return arrays.to_numpy(index(places, key))


def basic_key(places: Any, shape: tuple[int, ...]) -> Key | None:
    """The key of integers, slices and None at which a tensor of a shape has its elements of these flat positions; None
    if there is no such key."""
    xp = arrays.numpy_namespace()
    key: list[Any] = []
    axis = 0
    for coordinates, size in zip(xp.unravel_index(places, shape), shape):
        varying = [a for a in range(places.ndim) if places.shape[a] > 1 and _step(coordinates, a)]
        if not varying:
            key.append(int(coordinates.flat[0]))
            continue
        key += [None] * (varying[0] - axis)
        axis = varying[0] + 1
        begin, step = int(coordinates.flat[0]), _step(coordinates, varying[0])
        end = begin + step * places.shape[varying[0]]
        key.append(slice(begin, end if 0 <= end <= size else None, step))
    key += [None] * (places.ndim - axis)
    found = tuple(key)
    same = positions(shape, found)
    return found if same.shape == places.shape and bool((same == places).all()) else None


def _step(coordinates: Any, axis: int) -> int:
    """The distance of the first two coordinates along an axis."""
    first, second = (coordinates.take(i, axis).flat[0] for i in (0, 1))
    return int(second - first)


def indices_in(places: Any, wanted: Any) -> Any:
    """The index in the flattened `places` of each wanted position; -1 if it does not occur."""
    xp = arrays.numpy_namespace()
    last = places.max(initial=-1)
    numbers = xp.full(last + 2, -1)
    numbers[places.reshape(-1)] = xp.arange(places.size)
    return numbers[xp.clip(wanted, -1, last + 1)]
