"""Checks and rewrites indexing keys for libraries with narrower indexing rules than NumPy."""

from __future__ import annotations

from collections.abc import Iterator

from gradcli.arrays.shapes import Shape
from gradcli.type_hints import Any

Key = tuple[Any, ...]


def has_arrays(key: Key) -> bool:
    """Return whether an index contains arrays of positions, so that the result is a copy."""
    return any(hasattr(item, "dtype") for item in key)


def check_key(key: Key, shape: Shape) -> None:
    """Raise IndexError if an index is out of bounds for `shape`. Some libraries clamp such an index, or crash."""
    for _, axis, item in _by_axis(key, shape):
        size = shape[axis]
        if hasattr(item, "dtype"):
            if 0 in item.shape:
                continue
            positions = (int(item.min()), int(item.max()))
        elif isinstance(item, int):
            positions = (item, item)
        else:
            continue
        for position in positions:
            if not -size <= position < size:
                raise IndexError(f"index {position} is out of bounds for axis {axis} with size {size}")


def without_negative_steps(key: Key, shape: Shape) -> tuple[Key, list[int]]:
    """Rewrite a key without negative steps; it selects the same elements after the returned axes are flipped."""
    items, flipped = list(key), []
    for place, axis, item in _by_axis(key, shape):
        if isinstance(item, slice) and (item.step or 1) < 0:
            start, stop, step = item.indices(shape[axis])
            last = shape[axis] - 1
            items[place] = slice(last - start, last - stop, -step)
            flipped.append(axis)
    return tuple(items), flipped


def _by_axis(key: Key, shape: Shape) -> Iterator[tuple[int, int, Any]]:
    """The items of a key that index an axis, as their position in the key, the axis, and the item."""
    taken = sum(item is not None and item is not Ellipsis for item in key)
    if taken > len(shape):
        raise IndexError(f"too many indices: the array has {len(shape)} dimensions, and {taken} were indexed")
    axis = 0
    for place, item in enumerate(key):
        if item is Ellipsis:
            axis += len(shape) - taken
        elif item is not None:
            yield place, axis, item
            axis += 1
