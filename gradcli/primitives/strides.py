"""Where the elements of a view lie in the memory that it would share with another tensor.

What is a view and what is a copy follows from the distances between neighbours along each axis, as in PyTorch, though
the arrays themselves may lie otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from gradcli.arrays.shapes import Shape

# The sizes of a tensor, and the distances between neighbours along its axes, in elements.
Layout = tuple[Shape, Shape]


def always(*_operands: Any, **_params: Any) -> bool:
    """For a rule that depends on nothing."""
    return True


def contiguous(shape: Shape) -> Layout:
    """Row by row, without gaps."""
    distances = itertools.accumulate(reversed(shape[1:]), lambda step, size: step * max(size, 1), initial=1)
    return shape, tuple(reversed([*distances][: len(shape)]))


def overlaps(layout: Layout) -> bool:
    """Whether several elements are one and the same in memory."""
    return any(size > 1 and step == 0 for size, step in zip(*layout))


def for_each_axis(key: Sequence[Any], ndim: int) -> Sequence[Any]:
    """A key with whole slices for the axes that it leaves out; None stands for a new axis still."""
    dots = next((i for i, item in enumerate(key) if item is Ellipsis), len(key))
    taken = sum(item is not None and item is not Ellipsis for item in key)
    return (*key[:dots], *(slice(None),) * (ndim - taken), *key[dots + 1 :])


def of_index(layout: Layout, *, key: Sequence[Any]) -> Layout:
    """Of `x[key]`, for a key without arrays, or with arrays of one shape for the first axes, in equal distances."""
    if key and hasattr(key[0], "shape"):
        sizes, steps = layout
        places = sum(part * step for part, step in zip(key, steps))
        return (*places.shape, *sizes[len(key) :]), (*_distances(places), *steps[len(key) :])
    axes = zip(*layout)
    found = []
    for item in for_each_axis(key, len(layout[0])):
        if item is None:
            found.append((1, 0))
            continue
        size, step = next(axes)
        if isinstance(item, slice):
            found.append((len(range(*item.indices(size))), step * (item.step or 1)))
    return _of(found)


def _distances(places: Any) -> list[int]:
    """The distances between neighbours along each axis of an array of places."""
    if not places.size:
        return [1] * int(places.ndim)
    first = places[(0,) * places.ndim]
    return [
        int(places[(*(0,) * axis, 1, *(0,) * (places.ndim - axis - 1))] - first) if size > 1 else 1
        for axis, size in enumerate(places.shape)
    ]


def of_permute(layout: Layout, *, axes: Sequence[int]) -> Layout:
    """Of the axes in another order."""
    sizes, steps = layout
    return tuple(sizes[a] for a in axes), tuple(steps[a] for a in axes)


def of_broadcast(layout: Layout, *, shape: Shape) -> Layout:
    """Of what is repeated up to a shape."""
    sizes, steps = layout
    new = len(shape) - len(sizes)
    own = (step if size == asked else 0 for size, step, asked in zip(sizes, steps, shape[new:]))
    return tuple(shape), (*(0,) * new, *own)


def of_reshape(layout: Layout, *, shape: Shape) -> Layout | None:
    """Of the same elements in another shape; None where they must be copied for it."""
    if not math.prod(shape):
        return contiguous(tuple(shape))
    # Axes that lie as one axis would, from the last one on: how many elements they have, and the distance of these.
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
