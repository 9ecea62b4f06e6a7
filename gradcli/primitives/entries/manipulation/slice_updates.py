"""Slices of tensors, and tensors with slices, positions or masked elements replaced."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import broadcast
from gradcli.errors import ShapeError
from gradcli.primitives.axes import boolean, diagonal_number, integer, integer_array, normalize_axis
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import broadcast_to, permute, reshape
from gradcli.primitives.entries.arithmetic import add
from gradcli.primitives.entries.indexing import axis_key, diag, index, scatter
from gradcli.primitives.entries.manipulation.functional_update import positions, set_at, set_at_positions
from gradcli.primitives.entries.manipulation.gather_scatter import meshgrid, split
from gradcli.primitives.entries.manipulation.numpy_shape import atleast_3d
from gradcli.primitives.entries.shape import along_axis, concat, moveaxis, ravel, sequence, stack
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]

# --- slicing


def _narrow(x: Any, axis: Any, start: Any, length: Any) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    size, count = arrays.shape(x)[number], integer(length, "a length")
    first = integer(start, "a start")
    first += size * (first < 0)
    if not 0 <= first <= first + count <= size:
        raise ShapeError(f"'narrow' cannot take {count} from {first} on of an axis of size {size}")
    return index(x, axis_key(number, slice(first, first + count)))


narrow = Composite(
    "narrow", "x, axis, start, length", "length slices along an axis, from start on", _narrow,
    derivative="g put back, 0 elsewhere",
    aliases=("narrow_copy",),
    samples=((_VECTOR, 0, 1, 2), (_MATRIX, -1, 0, 2)),
)  # fmt: skip


def _split_with_sizes(x: Any, split_sizes: Any, axis: Any = 0) -> tuple[Any, ...]:
    number, sizes = (
        normalize_axis(axis, len(arrays.shape(x))),
        integer_array(concrete(split_sizes), "the size of a part"),
    )
    size = arrays.shape(x)[number]
    if sizes.sum() != size or (sizes < 0).any():
        raise ShapeError(f"the sizes of parts {sizes.tolist()} do not add up to {size}")
    return tuple(split(x, sizes.cumsum()[:-1], number))


split_with_sizes = Composite(
    "split_with_sizes", "x, split_sizes, axis=0", "the parts of these sizes along an axis", _split_with_sizes,
    derivative="g of each part, put back",
    example="'a, b = split_with_sizes(x, [1, 2]); a*b[1]' x='[1, 2, 3]'",
)  # fmt: skip


def _as_many(*tensors: Any) -> tuple[Any, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast([arrays.shape(x) for x in tensors])
    return tuple(broadcast_to(x, shape) for x in tensors)


broadcast_tensors = Composite(
    "broadcast_tensors", "*tensors", "each of several tensors broadcast to the shape that all fit", _as_many,
    derivative="g summed over the axes that were repeated",
    aliases=("broadcast_arrays",),
    example="'a, b = broadcast_tensors(x, y); sum(a*b)' x='[1, 2]' y=3",
)  # fmt: skip

expand_as = Composite(
    "expand_as", "x, other", "broadcast to the shape of another tensor",
    lambda x, other: broadcast_to(x, arrays.shape(other)),
    derivative="g summed over the axes that were repeated, none",
    samples=((_VECTOR, [[1, 2, 3], [4, 5, 6]]),),
)  # fmt: skip

reshape_as = Composite(
    "reshape_as", "x, other", "the elements in the shape of another tensor",
    lambda x, other: reshape(x, arrays.shape(other)),
    derivative="reshape(g, x.shape), none",
    aliases=("view_as",),
    samples=(([[1.0, 2.0], [3.0, 4.0], [5.5, 6.0]], [[1, 2, 3], [4, 5, 6]]),),
)  # fmt: skip

# --- joining


def _dstack(tensors: Any) -> Any:
    return concat([atleast_3d(x) for x in sequence(tensors, "dstack")], 2)


dstack = Composite(
    "dstack", "tensors", "tensors joined along the third axis", _dstack,
    derivative="the slice of g that each tensor became",
    samples=(([_VECTOR, [0.5, 1.0, 2.0]],), ([_MATRIX, _MATRIX],)),
)  # fmt: skip


def _cartesian_prod(*tensors: Any) -> Any:
    if len(tensors) == 1:
        return tensors[0]
    return stack([ravel(part) for part in meshgrid(*tensors, indexing="ij")], -1)


cartesian_prod = Composite(
    "cartesian_prod", "*tensors", "a row for each choice of an element from every vector", _cartesian_prod,
    derivative="g summed over the rows that have the element",
    samples=((_VECTOR, [0.5, 1.0]),),
)  # fmt: skip

diagflat = Composite(
    "diagflat", "x, k=0", "the matrix with all elements on diagonal k", lambda x, k=0: diag(ravel(x), k),
    derivative="the diagonal of g",
    samples=((_VECTOR,), (_MATRIX, 1)),
)  # fmt: skip

# --- replacing


def _select_scatter(x: Any, src: Any, axis: Any, index: Any) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    return set_at(x, axis_key(number, integer(index, "an index")), src)


select_scatter = Composite(
    "select_scatter", "x, src, axis, index", "x with src in place of a slice", _select_scatter,
    derivative="g elsewhere, g of that slice",
    samples=((_MATRIX, [0.5, -1.0], 1, 2),),
)  # fmt: skip


def _slice_scatter(x: Any, src: Any, axis: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    number = normalize_axis(axis, len(arrays.shape(x)))
    bounds = (None if b is None else integer(b, "a bound of a slice") for b in (start, end, step))
    return set_at(x, axis_key(number, slice(*bounds)), src)


slice_scatter = Composite(
    "slice_scatter", "x, src, axis=0, start=None, end=None, step=1", "x with src in place of slices", _slice_scatter,
    derivative="g elsewhere, g of those slices",
    samples=((_MATRIX, [[0.5], [-1.0]], 1, 1, 2),),
)  # fmt: skip


def _diagonal_scatter(x: Any, src: Any, k: Any = 0, dim1: Any = 0, dim2: Any = 1) -> Any:
    shape = arrays.shape(x)
    axes = [normalize_axis(axis, len(shape)) for axis in (dim1, dim2)]
    places = moveaxis(positions(shape), axes, (-2, -1))
    offset = diagonal_number(k, shape[axes[0]], shape[axes[1]])
    return set_at_positions(x, arrays.numpy_namespace().diagonal(places, offset, -2, -1), src)


diagonal_scatter = Composite(
    "diagonal_scatter", "x, src, k=0, dim1=0, dim2=1", "x with src in place of diagonal k", _diagonal_scatter,
    derivative="g elsewhere, the diagonal of g",
    samples=((_MATRIX, [0.5, -1.0]), (_MATRIX, [0.5, -1.0], 1)),
)  # fmt: skip


def _index_fill(x: Any, axis: Any, index: Any, value: Any) -> Any:
    places = integer_array(concrete(index), "an index").ravel()
    return along_axis(x, axis, lambda x, number: set_at(x, axis_key(number, places), value))


index_fill = Composite(
    "index_fill", "x, axis, index, value", "x with value at positions along an axis", _index_fill,
    derivative="g elsewhere, sum(g) there to value",
    samples=((_MATRIX, 1, [0, 2], 0.5),),
)  # fmt: skip


def _index_copy(x: Any, axis: Any, index: Any, source: Any) -> Any:
    places = integer_array(concrete(index), "an index")
    given = source if arrays.shape(x) and places.ndim else reshape(source, 1)
    return along_axis(x, axis, lambda x, number: set_at(x, axis_key(number, places.ravel()), given))


index_copy = Composite(
    "index_copy", "x, axis, index, source", "x with the slices of source at positions along an axis", _index_copy,
    derivative="g elsewhere, g at the positions",
    edges=("of several slices that go to one position, the last stays",),
    samples=((_MATRIX, 1, [2, 0], [[0.5, 1.0], [2.0, -1.0]]),),
)  # fmt: skip


def _index_put(x: Any, tensors: Any, values: Any, accumulate: Any = False) -> Any:
    key = tuple(sequence(tensors, "index_put"))
    if not boolean(accumulate, "'accumulate'"):
        return set_at(x, key, values)
    places = positions(arrays.shape(x), key)
    given = reshape(broadcast_to(values, places.shape), (-1,))
    size = math.prod(arrays.shape(x))
    limits.charge(size)
    return add(x, reshape(scatter(given, (places.reshape(-1),), (size,)), arrays.shape(x)))


index_put = Composite(
    "index_put", "x, tensors, values, accumulate=False",
    "x with values at the positions that a tensor for each axis says, or added there", _index_put,
    derivative="g elsewhere, g at the positions",
    edges=("of several values that go to one place, the last stays unless they are added",),
    example="'index_put(x, ([0, 1], [1, 0]), y)[0] @ [1, 10]' x='[[1, 2], [3, 4]]' y='[5, 6]'",
)  # fmt: skip


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    shape = broadcast([arrays.shape(x), arrays.shape(mask)])
    there = arrays.numpy_namespace().broadcast_to(arrays.to_numpy(concrete(mask)) != 0, shape)
    places, given = positions(shape)[there], ravel(source)
    if places.size > arrays.size(given):
        raise ShapeError(f"the mask is true at {places.size} places, and source has {arrays.size(given)} elements")
    return set_at_positions(broadcast_to(x, shape), places, index(given, slice(0, places.size)))


masked_scatter = Composite(
    "masked_scatter", "x, mask, source", "x with the first elements of source in their order where the mask is true",
    _masked_scatter,
    derivative="g elsewhere, g where the mask is true",
    samples=((_VECTOR, [True, False, True], [0.5, -1.0, 2.0]),),
)  # fmt: skip

# --- pixel and channel shuffles


def _pixel_shuffle(x: Any, upscale_factor: Any) -> Any:
    factor, (*batch, channels, height, width) = _factor(x, upscale_factor), arrays.shape(x)
    if channels % factor**2:
        raise ShapeError(f"{channels} channels cannot be put into squares of {factor}")
    rank = len(batch)
    parts = reshape(x, (*batch, channels // factor**2, factor, factor, height, width))
    order = [*range(rank + 1), *(rank + n for n in (3, 1, 4, 2))]
    return reshape(permute(parts, order), (*batch, channels // factor**2, height * factor, width * factor))


def _pixel_unshuffle(x: Any, downscale_factor: Any) -> Any:
    factor, (*batch, channels, height, width) = _factor(x, downscale_factor), arrays.shape(x)
    if height % factor or width % factor:
        raise ShapeError(f"an image of {height} by {width} is not made of squares of {factor}")
    rank = len(batch)
    parts = reshape(x, (*batch, channels, height // factor, factor, width // factor, factor))
    order = [*range(rank + 1), *(rank + n for n in (2, 4, 1, 3))]
    return reshape(permute(parts, order), (*batch, channels * factor**2, height // factor, width // factor))


def _factor(x: Any, factor: Any) -> int:
    number = integer(factor, "a factor")
    if len(arrays.shape(x)) < 3 or number < 1:
        raise ShapeError("pixels are moved in tensors of channels, rows and columns, by a factor of 1 or more")
    return number


_CHANNELS = [[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]], [[7.0, 8.0]]]
pixel_shuffle = Composite(
    "pixel_shuffle", "x, upscale_factor", "the channels of each pixel as a square of pixels", _pixel_shuffle,
    derivative="pixel_unshuffle(g)", subject="layers",
    samples=((_CHANNELS, 2),),
)  # fmt: skip
pixel_unshuffle = Composite(
    "pixel_unshuffle", "x, downscale_factor", "squares of pixels as channels of one", _pixel_unshuffle,
    derivative="pixel_shuffle(g)", subject="layers",
    samples=(([[[1.0, 2.0], [3.0, 4.0]]], 2),),
)  # fmt: skip


def _channel_shuffle(x: Any, groups: Any) -> Any:
    count, shape = integer(groups, "'groups'"), arrays.shape(x)
    if len(shape) < 2 or count < 1 or shape[1] % count:
        raise ShapeError(f"the channels along the second axis of {list(shape)} are not {count} equal groups")
    batch, channels, *sizes = shape
    parts = reshape(x, (batch, count, channels // count, *sizes))
    return reshape(permute(parts, [0, 2, 1, *range(3, 3 + len(sizes))]), (batch, channels, *sizes))


channel_shuffle = Composite(
    "channel_shuffle", "x, groups", "one channel of each group after another", _channel_shuffle,
    derivative="g in the old order", subject="layers",
    samples=(([_CHANNELS], 2),),
)  # fmt: skip
