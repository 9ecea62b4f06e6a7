"""Splitting of tensors, and gathering from and scattering to positions given by other tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives.axes import boolean, integer, integer_array, normalize_axis, option, whole_numbers
from gradcli.primitives.bind import Kind, concrete, mark_views
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.arithmetic import add, multiply
from gradcli.primitives.entries.comparisons import not_equal, where
from gradcli.primitives.entries.indexing import axis_key, index, side_with_diagonal, take_along_key
from gradcli.primitives.entries.indexing import scatter as put_at
from gradcli.primitives.entries.manipulation.batched_indexing import is_batched, marked, taken_along
from gradcli.primitives.entries.manipulation.functional_update import indices_in, positions, set_at
from gradcli.primitives.entries.shape import along_axis, flip, moveaxis, ravel, take, transpose
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
_PLACES = [[0, 2, 0], [1, 1, 2]]


def _cut(x: Any, axis: int, bounds: Sequence[int]) -> tuple[Any, ...]:
    parts = (index(x, axis_key(axis, slice(first, max(first, last)))) for first, last in itertools.pairwise(bounds))
    return mark_views(parts, "SplitBackward0")


# --- splitting


def _split(x: Any, indices_or_sections: Any, axis: Any = 0) -> tuple[Any, ...]:
    number = normalize_axis(axis, len(arrays.shape(x)))
    size = arrays.shape(x)[number]
    given = concrete(indices_or_sections)
    if arrays.is_array(given) and not arrays.shape(given):
        sections = integer(given, "a number of sections")
        if sections < 1 or size % sections:
            raise ShapeError(
                f"an axis of size {size} cannot be split into {sections} equal sections",
                hint="a list says where to split, as in split(x, [2, 5])",
            )
        limits.charge_steps(sections)
        return _cut(x, number, range(0, size + 1, size // sections) if size else [0] * (sections + 1))
    places = [*integer_array(given, "a place to split at").ravel().tolist()]
    ends = [slice(None, place).indices(size)[1] for place in places]
    return _cut(x, number, [0, *ends, size])


split = Composite(
    "split", "x, indices_or_sections, axis=0",
    "equal parts along an axis, of that number, or the parts between the places in a list", _split,
    derivative="g of each part, put back",
    example="'a, b = split(x, 2); a*b' x='[1, 2, 3, 4]'",
)  # fmt: skip


def _chunk(x: Any, chunks: Any, axis: Any = 0) -> tuple[Any, ...]:
    number, count = normalize_axis(axis, len(arrays.shape(x))), integer(chunks, "a number of chunks")
    if count < 1:
        raise EvaluationError("a number of chunks must be at least 1")
    size = arrays.shape(x)[number]
    step = max(-(-size // count), 1)
    return _cut(x, number, [*range(0, size, step), size]) if size else (x,)


chunk = Composite(
    "chunk", "x, chunks, axis=0", "at most that number of parts along an axis, all but the last of one size", _chunk,
    derivative="g of each part, put back",
    example="'a, b = chunk(x, 2); sum(a)*sum(b)' x='[1, 2, 3]'",
)  # fmt: skip


def _unbind(x: Any, axis: Any = 0) -> tuple[Any, ...]:
    number = normalize_axis(axis, len(arrays.shape(x)))
    return mark_views((index(x, axis_key(number, i)) for i in range(arrays.shape(x)[number])), "UnbindBackward0")


unbind = Composite(
    "unbind", "x, axis=0", "the slices along an axis", _unbind,
    derivative="g of each slice, put back",
    example="'a, b = unbind(x); a*b' x='[2, 3]'",
)  # fmt: skip


def _meshgrid(*tensors: Any, indexing: Any = "xy") -> tuple[Any, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    option(indexing, ("xy", "ij"), "indexing")
    sizes = [math.prod(arrays.shape(t)) for t in tensors]
    places = list(range(len(tensors)))
    if indexing == "xy":
        places[:2] = places[:2][::-1]
    shape = [sizes[place] for place in places]
    return tuple(
        broadcast_to(reshape(t, [-1 if place == i else 1 for place in places]), shape) for i, t in enumerate(tensors)
    )


meshgrid = Composite(
    "meshgrid", "*tensors, indexing='xy'",
    "vectors repeated over a grid, the first along the second axis; along the first where indexing='ij'", _meshgrid,
    derivative="g summed over the axes that were repeated",
    example="'X, Y = meshgrid(x, y); sum(X*Y)' x='[1, 2]' y='[3, 4, 5]'",
)  # fmt: skip


def _nonzero(x: Any) -> tuple[Any, ...]:
    numbers = arrays.to_numpy(concrete(x))
    if not numbers.ndim:
        raise ShapeError("'nonzero' needs at least 1 dimension")
    limits.charge(numbers.size)
    return tuple(map(arrays.in_default_namespace, arrays.numpy_namespace().nonzero(numbers)))


nonzero = Composite(
    "nonzero", "x", "the positions of the elements that are not 0, for each axis", _nonzero,
    derivative="none",
    example="'i, j = nonzero([[0, 3], [2, 0]]); j'",
)  # fmt: skip


def _argwhere(x: Any) -> Any:
    numbers = arrays.to_numpy(concrete(x))
    limits.charge(numbers.size)
    return arrays.in_default_namespace(arrays.numpy_namespace().argwhere(numbers))


argwhere = Composite(
    "argwhere", "x", "a row for each element that is not 0, with its position", _argwhere,
    derivative="none",
    samples=(([[0, 3], [2, 0]],),),
)  # fmt: skip


# --- gathering and scattering


# An alias of `index`, which is also the name of a parameter below.
_taken = index


def _places(indices: Any) -> Any:
    return integer_array(concrete(indices), "an index")


def _take_along(x: Any, indices: Any, axis: Any = -1) -> Any:
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    if is_batched(indices):
        return taken_along(x, indices, normalize_axis(axis, len(arrays.shape(x))))
    places, sizes = _places(indices), arrays.shape(x)
    number = normalize_axis(axis, len(sizes))
    if places.ndim != len(sizes):
        raise ShapeError(f"indices of {places.ndim} dimensions do not fit a tensor of {len(sizes)}")
    others = broadcast([(*s[:number], 1, *s[number + 1 :]) for s in (sizes, places.shape)])
    x = broadcast_to(x, (*others[:number], sizes[number], *others[number + 1 :]))
    return index(x, take_along_key(others, number, places))


take_along_axis = Composite(
    "take_along_axis", "x, indices, axis=-1", "for each place in indices the element there along an axis", _take_along,
    derivative="g added up at the places, 0 elsewhere",
    samples=((_MATRIX, _PLACES, 1), (_MATRIX, [[1, 0, 1]], 0)),
)  # fmt: skip


def _take_along_dim(x: Any, indices: Any, axis: Any = None) -> Any:
    return _take_along(x, indices, axis) if axis is not None else _take_along(ravel(x), _places(indices).ravel(), 0)


take_along_dim = Composite(
    "take_along_dim", "x, indices, axis=None",
    "for each place in indices the element there along an axis, or among all elements one after another", _take_along_dim,
    derivative=take_along_axis.derivative,
    samples=((_MATRIX, _PLACES, 1), (_MATRIX, _PLACES)),
)  # fmt: skip


def scatter_key(x: Any, axis: Any, indices: Any, name: str) -> tuple[Any, ...]:
    """The key of the elements of `x` at the indices along an axis. Raises ShapeError if they do not fit, for the function
    `name`."""
    places, sizes = _places(indices), arrays.shape(x)
    number = normalize_axis(axis, len(sizes))
    if places.ndim != len(sizes) or any(p > s for a, (p, s) in enumerate(zip(places.shape, sizes)) if a != number):
        raise ShapeError(f"'{name}' does not fit indices of shape {list(places.shape)} to a tensor of {list(sizes)}")
    if places.size and not -sizes[number] <= places.min() <= places.max() < sizes[number]:
        raise ShapeError(f"an index of '{name}' is out of bounds for an axis of size {sizes[number]}")
    return take_along_key(places.shape, number, places)


def _gather(x: Any, axis: Any, index: Any, sparse_grad: Any = False) -> Any:
    boolean(sparse_grad, "'sparse_grad'")
    if is_batched(index):
        return _gather_by_row(x, normalize_axis(axis, len(arrays.shape(x))), index)
    shape = arrays.shape(concrete(index))
    if shape and arrays.shape(x):
        return _taken(x, scatter_key(x, axis, index, "gather"))
    # PyTorch treats scalars as vectors of one element here.
    vector, places = (reshape(part, -1 if arrays.shape(part) else 1) for part in (x, concrete(index)))
    return reshape(_gather(vector, axis, places), shape)


def _gather_by_row(x: Any, number: int, places: Any) -> Any:
    """`gather` with batched positions; along the other axes only the first elements of `x`, up to the shape of
    `places`, count."""
    others = [slice(size) for size in arrays.shape(places)]
    others[number] = slice(None)
    return taken_along(index(x, tuple(others)), places, number)


gather = Composite(
    "gather", "x, axis, index, sparse_grad=False",
    "the elements at the places in index along an axis; gradients are dense, whatever sparse_grad says", _gather,
    derivative="g added up at the places, 0 elsewhere",
    samples=((_MATRIX, 1, _PLACES), (_MATRIX, 0, [[1, 0]])),
)  # fmt: skip


def scattered_source(source: Any, shape: Shape) -> Any:
    """The elements of `source` that are scattered to indices of `shape`: the first ones along each axis."""
    if not arrays.shape(source):
        return broadcast_to(source, shape)
    return index(source, tuple(slice(0, size) for size in shape))


def _as_vectors(x: Any, axis: Any, index: Any, src: Any) -> tuple[Any, ...]:
    """The arguments of a scatter into a scalar, as vectors of one element."""
    return reshape(x, 1), axis, reshape(concrete(index), 1), reshape(src, 1)


def _scatter_add(x: Any, axis: Any, index: Any, src: Any) -> Any:
    if not arrays.shape(x):
        return reshape(_scatter_add(*_as_vectors(x, axis, index, src)), ())
    key = scatter_key(x, axis, index, "scatter_add")
    return add(x, put_at(scattered_source(src, arrays.shape(concrete(index))), key, arrays.shape(x)))


scatter_add = Composite(
    "scatter_add", "x, axis, index, src", "x with src added at the places in index along an axis", _scatter_add,
    derivative="g, g at the places",
    samples=((_MATRIX, 1, _PLACES, _MATRIX), (_MATRIX, 0, [[1, 0]], [[0.5, -1.0]])),
)  # fmt: skip


def _scatter(x: Any, axis: Any, index: Any, src: Any) -> Any:
    if not arrays.shape(x):
        return reshape(_scatter(*_as_vectors(x, axis, index, src)), ())
    key = scatter_key(x, axis, index, "scatter")
    return set_at(x, key, scattered_source(src, arrays.shape(concrete(index))))


scatter = Composite(
    "scatter", "x, axis, index, src", "x with src in place of the elements at index along an axis", _scatter,
    derivative="g where nothing was put, g at the places",
    edges=("of several elements that go to one place, the last stays",),
    samples=((_MATRIX, 1, [[0, 2, 1], [1, 0, 2]], _MATRIX), (_MATRIX, 0, [[1, 0]], [[0.5, -1.0]])),
)  # fmt: skip

index_select = Composite(
    "index_select", "x, axis, index", "the slices at positions along an axis",
    lambda x, axis, index: along_axis(x, axis, lambda x, number: take(x, index, number)),
    derivative="g added up at the positions, 0 elsewhere",
    samples=((_VECTOR, 0, [0, 2, 0]), (_MATRIX, 1, [1, 1])),
)  # fmt: skip


def _index_add(x: Any, axis: Any, index: Any, source: Any, alpha: Any = 1.0) -> Any:
    places = _places(index)
    given = source if arrays.shape(x) and places.ndim else reshape(source, 1)

    def added(x: Any, number: int) -> Any:
        return add(x, multiply(alpha, put_at(given, axis_key(number, places.ravel()), arrays.shape(x))))

    return along_axis(x, axis, added)


index_add = Composite(
    "index_add", "x, axis, index, source, alpha=1.0", "x with alpha*source added at positions along an axis",
    _index_add,
    derivative="g, alpha*g at the positions, sum(g*source) by alpha",
    samples=((_VECTOR, 0, [0, 2, 0], [0.5, 1.0, 2.0]), (_MATRIX, 1, [1, 1], [[0.5, 1.0], [2.0, -1.0]], 0.5)),
)  # fmt: skip

masked_fill = Composite(
    "masked_fill", "x, mask, value", "value where the mask is true, else x",
    lambda x, mask, value: where(not_equal(mask, 0), value, x),
    derivative="0 where the mask is true, else g; the rest to value",
    samples=((_VECTOR, [True, False, True], 0.5),),
)  # fmt: skip


def _masked_select(x: Any, mask: Any) -> Any:
    chosen_ones = arrays.to_numpy(concrete(mask)) != 0
    shape = broadcast([arrays.shape(x), chosen_ones.shape]) or (1,)
    xp = arrays.numpy_namespace()
    limits.charge(math.prod(shape))
    return index(broadcast_to(x, shape), xp.broadcast_to(chosen_ones, shape))


masked_select = Composite(
    "masked_select", "x, mask", "the elements where the mask is true, along one axis", _masked_select,
    derivative="g put back, 0 elsewhere",
    samples=((_VECTOR, [True, False, True]), (_MATRIX, [[True], [False]])),
)  # fmt: skip


def _one_hot(labels: Any, num_classes: Any = -1) -> Any:
    count = integer(num_classes, "a number of classes")
    if is_batched(labels) and count > 0:
        return where(marked(labels, count, len(arrays.shape(labels))), 1.0, 0.0)
    places = integer_array(concrete(labels), "a class")
    classes = count if count >= 0 else int(places.max(initial=-1)) + 1
    if places.size and not 0 <= places.min() <= places.max() < classes:
        raise ShapeError(f"there are {classes} classes, and a label is none of 0 to {classes - 1}")
    limits.charge(places.size * classes)
    return arrays.made(lambda xp: (places[..., None] == xp.arange(classes)).astype(arrays.default_dtype()))


one_hot = Composite(
    "one_hot", "labels, num_classes=-1", "for each label, a vector with 1 at its class and else 0", _one_hot,
    derivative="none",
    samples=(([0, 2, 1],), ([1, 0], 3)),
)  # fmt: skip


# --- other shapes


def _at_distances(xp: Any, first: int, sizes: Shape, steps: Shape) -> Any:
    """The flat positions reached by multiples of `steps` along each axis of `sizes`, starting at `first`."""
    grid = xp.ogrid[tuple(slice(size) for size in sizes)]
    return xp.broadcast_to(sum((numbers * step for numbers, step in zip(grid, steps)), first), sizes)


def _as_strided(x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    sizes, steps = whole_numbers(size, "a size"), whole_numbers(stride, "a stride")
    if len(sizes) != len(steps) or min((*sizes, *steps), default=0) < 0:
        raise ShapeError(f"sizes {list(sizes)} and strides {list(steps)} are not as many numbers of at least 0")
    limits.charge(math.prod(sizes))
    known = x.in_memory() if isinstance(x, Kind) else None
    places = positions(arrays.shape(x)) if known is None else known
    begin = places.item(0) if places.size else 0
    first = begin if storage_offset is None else integer(storage_offset, "an offset")
    wanted = arrays.to_numpy(arrays.guard_memory(lambda xp: _at_distances(xp, first, sizes, steps)))
    numbers = indices_in(places, wanted)
    if (numbers < 0).any():
        raise ShapeError(
            f"sizes {list(sizes)}, strides {list(steps)} and offset {int(first)} are out of bounds for the "
            f"{places.size} elements of the tensor"
        )
    own = x if arrays.shape(x) else reshape(x, 1)
    key = arrays.numpy_namespace().unravel_index(numbers, arrays.shape(own))
    taken = index(own, key)
    if isinstance(taken, Kind):
        taken.made_as_view(own, index, {"key": key})
    return taken


as_strided = Composite(
    "as_strided", "x, size, stride, storage_offset=None",
    "a view of the elements in memory, with the given distances between them along each axis", _as_strided,
    derivative="g added up at the places of the elements",
    samples=((_VECTOR, (2, 2), (1, 1)), (_MATRIX, (3, 2), (1, 3)), (_MATRIX, (2,), (2,), 1)),
)  # fmt: skip


def _unflatten(x: Any, axis: Any, sizes: Any) -> Any:
    old = arrays.shape(x)
    number = normalize_axis(axis, len(old))
    new = [*whole_numbers(sizes, "a size")]
    known = math.prod(size for size in new if size >= 0)
    if new.count(-1) == 1 and known:
        new[new.index(-1)] = old[number] // known
    if math.prod(new) != old[number] or any(size < 0 for size in new):
        raise ShapeError(f"an axis of size {old[number]} cannot become {list(whole_numbers(sizes, 'a size'))}")
    return reshape(x, (*old[:number], *new, *old[number + 1 :]))


unflatten = Composite(
    "unflatten", "x, axis, sizes", "an axis as several; one size may be -1", _unflatten,
    derivative="reshape(g, x.shape)",
    samples=(([1.0, 2.0, 3.0, 4.0], 0, (2, -1)), (_MATRIX, 1, (3, 1))),
)  # fmt: skip


def _diag_embed(x: Any, k: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Any:
    sizes, offset = arrays.shape(x), integer(k, "a diagonal")
    if not sizes:
        raise ShapeError("'diag_embed' needs at least 1 dimension")
    side = side_with_diagonal(sizes[-1], offset)
    steps = arrays.guard_memory(lambda xp: xp.arange(sizes[-1]))
    key = (Ellipsis, steps + max(-offset, 0), steps + max(offset, 0))
    return moveaxis(put_at(x, key, (*sizes[:-1], side, side)), (-2, -1), (dim1, dim2))


diag_embed = Composite(
    "diag_embed", "x, k=0, dim1=-2, dim2=-1", "matrices with the vectors along the last axis on diagonal k",
    _diag_embed,
    derivative="the diagonals of g",
    samples=((_VECTOR,), (_MATRIX, 1), (_MATRIX, 0, 0, 2)),
)  # fmt: skip


def _rot90(x: Any, k: Any = 1, axes: Any = None) -> Any:
    rank = len(arrays.shape(x))
    first, second = (normalize_axis(a, rank) for a in _pair((0, 1) if axes is None else axes))
    if first == second:
        raise ShapeError("a rotation needs two different axes")
    turns = integer(k, "a number of turns") % 4
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return transpose(flip(x, second), first, second)
    return flip(transpose(x, first, second), second) if turns else x


def _pair(axes: Any) -> Shape:
    numbers = whole_numbers(axes, "an axis")
    if len(numbers) != 2:
        raise ShapeError("a rotation needs two axes")
    return numbers


rot90 = Composite(
    "rot90", "x, k=1, axes=None", "turned k times by a right angle, from the first of two axes, which are 0 and 1 unless named, to the second", _rot90,
    derivative="g turned back",
    samples=((_MATRIX,), (_MATRIX, 3), ([_MATRIX], 2, (0, 2)), (_MATRIX, -1, (1, 0))),
)  # fmt: skip
