"""Memory layouts of views: the strides that a result would have in PyTorch.

Whether an operation returns a view or a copy follows from the strides, as in PyTorch, although the arrays themselves
may be laid out otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from gradcli.arrays.shapes import Shape
from gradcli.type_hints import Any

# The shape of a tensor, and the strides along its axes, in elements.
Layout = tuple[Shape, Shape]


def always(*_operands: Any, **_params: Any) -> bool:
    """A rule for `view` or `shares` of a primitive that holds for all operands."""
    return True


def contiguous(shape: Shape) -> Layout:
    """The row-major layout without gaps."""
    distances = itertools.accumulate(reversed(shape[1:]), lambda step, size: step * max(size, 1), initial=1)
    return shape, tuple(reversed([*distances][: len(shape)]))


def overlaps(layout: Layout) -> bool:
    """Return whether elements are repeated along an axis, which has the stride 0 then.

    Axes that overlap one another otherwise are not found.
    """
    return any(size > 1 and step == 0 for size, step in zip(*layout))


def expanded_key(key: Sequence[Any], ndim: int) -> Sequence[Any]:
    """A key with an ellipsis or missing axes replaced by whole slices; None still stands for a new axis."""
    dots = next((i for i, item in enumerate(key) if item is Ellipsis), len(key))
    taken = sum(item is not None and item is not Ellipsis for item in key)
    return (*key[:dots], *(slice(None),) * (ndim - taken), *key[dots + 1 :])


def of_index(layout: Layout, *, key: Sequence[Any]) -> Layout:
    """The layout of `x[key]`, for a key without arrays, or with equally spaced arrays of one shape for the first
    axes."""
    if key and hasattr(key[0], "shape"):
        sizes, steps = layout
        places = sum(part * step for part, step in zip(key, steps))
        return (*places.shape, *sizes[len(key) :]), (*_distances(places), *steps[len(key) :])
    axes = zip(*layout)
    found = []
    for item in expanded_key(key, len(layout[0])):
        if item is None:
            found.append((1, 0))
            continue
        size, step = next(axes)
        if isinstance(item, slice):
            found.append((len(range(*item.indices(size))), step * (item.step or 1)))
    return _of(found)


def _distances(places: Any) -> list[int]:
    """The strides of an array of positions."""
    if not places.size:
        return [1] * int(places.ndim)
    first = places[(0,) * places.ndim]
    return [
        int(places[(*(0,) * axis, 1, *(0,) * (places.ndim - axis - 1))] - first) if size > 1 else 1
        for axis, size in enumerate(places.shape)
    ]


def of_permute(layout: Layout, *, axes: Sequence[int]) -> Layout:
    """The layout after a permutation of the axes."""
    sizes, steps = layout
    return tuple(sizes[a] for a in axes), tuple(steps[a] for a in axes)


def of_broadcast(layout: Layout, *, shape: Shape) -> Layout:
    """The layout after broadcasting to `shape`."""
    sizes, steps = layout
    new = len(shape) - len(sizes)
    own = (step if size == asked else 0 for size, step, asked in zip(sizes, steps, shape[new:]))
    return tuple(shape), (*(0,) * new, *own)


@lru_cache(256)
def of_reshape(layout: Layout, *, shape: Shape) -> Layout | None:
    """The layout after a reshape; None if the reshape needs a copy."""
    if not math.prod(shape):
        return contiguous(tuple(shape))
    # Runs of axes that are contiguous with each other, from the last one on: the number of elements and the stride of
    # each run.
    runs: list[list[int]] = []
    for size, step in zip(*map(reversed, layout)):
        if size == 1:
            continue
        if runs and step == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        else:
            runs.append([size, step])
    found: list[tuple[int, int]] = []
    left, step = 1, 1
    rest = iter(runs)
    for size in reversed(shape):
        if size != 1 and left == 1:
            left, step = next(rest)
        if left % size:
            return None
        found.append((size, step))
        left, step = left // size, step * size
    return _of(found[::-1])


def _of(axes: Sequence[tuple[int, int]]) -> Layout:
    return tuple(size for size, _ in axes), tuple(step for _, step in axes)
