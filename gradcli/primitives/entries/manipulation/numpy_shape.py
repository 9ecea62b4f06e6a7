"""NumPy's functions that split, join, add axes to and rotate tensors, and `numpy.gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import ShapeError
from gradcli.primitives.axes import integer, normalize_axis, whole_numbers
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import add, divide, multiply, ones_like, subtract
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.entries.manipulation.gather_scatter import split
from gradcli.primitives.entries.scans import sort
from gradcli.primitives.entries.shape import concat, flip, moveaxis, ravel, sequence
from gradcli.primitives.operation import Composite

SUBJECT = "shape"

# The largest number of sections of an axis: sections beyond its size are only empty arrays.
_MOST_SECTIONS = 100_000
_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]

# --- splitting


def _array_split(x: Any, indices_or_sections: Any, axis: Any = 0) -> tuple[Any, ...]:
    given = concrete(indices_or_sections)
    if not arrays.is_array(given) or arrays.shape(given):
        return tuple(split(x, indices_or_sections, axis))
    count = integer(given, "a number of sections")
    if count < 1:
        raise ShapeError("a number of sections must be at least 1")
    size = arrays.shape(x)[normalize_axis(axis, len(arrays.shape(x)))]
    if count > max(size, _MOST_SECTIONS):
        raise ShapeError(f"an axis of size {size} is split into no more than {_MOST_SECTIONS:,} sections")
    limits.charge_steps(count)
    # As in NumPy, the first `size % count` sections have one more element than the others.
    places = [i * (size // count) + min(i, size % count) for i in range(1, count)]
    return tuple(split(x, arrays.asarray(places, "int64"), axis))


array_split = Composite(
    "array_split", "x, indices_or_sections, axis=0",
    "parts along an axis, of that number, the first ones longer by one element where they cannot be equal, or those between the places in a list",
    _array_split,
    derivative="g of each part, put back",
    aliases=("tensor_split",),
    example="'a, b = array_split(x, 2); sum(a)*sum(b)' x='[1, 2, 3]'",
)  # fmt: skip


def _split_along(name: str, word: str, axis: int, least: int) -> Composite:
    def definition(x: Any, indices_or_sections: Any) -> tuple[Any, ...]:
        rank = len(arrays.shape(x))
        # A vector has one axis, so `hsplit` splits it along axis 0.
        number = min(axis, rank - 1)
        if rank < least:
            raise ShapeError(f"'{name}' needs at least {least} dimensions, and the tensor has {rank}")
        return tuple(split(x, indices_or_sections, number))

    return Composite(
        name, "x, indices_or_sections", f"equal parts along the {word} axis, or the parts between the places in a list",
        definition,
        derivative="g of each part, put back",
        example=f"'a, b = {name}(x, 2); sum(a*b)' x='[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]'",
    )  # fmt: skip


vsplit = _split_along("vsplit", "first", 0, least=2)
hsplit = _split_along("hsplit", "second", 1, least=1)
dsplit = _split_along("dsplit", "third", 2, least=3)

# --- joining


def _column_stack(tensors: Any) -> Any:
    items = sequence(tensors, "column_stack")
    return concat([reshape(x, (-1, 1)) if len(arrays.shape(x)) < 2 else x for x in items], 1)


column_stack = Composite(
    "column_stack", "tensors", "tensors joined along the second axis, numbers and vectors as columns", _column_stack,
    derivative="the slice of g that each tensor became",
    samples=(([_VECTOR, [0.5, 1.0, 2.0]],), ([_MATRIX, [0.5, 1.0]],)),
)  # fmt: skip


def _append(x: Any, values: Any, axis: Any = None) -> Any:
    return concat([ravel(x), ravel(values)]) if axis is None else concat([x, values], axis)


append = Composite(
    "append", "x, values, axis=None", "values behind x along an axis, or all elements of both along one", _append,
    derivative="the slices of g that x and values became",
    samples=((_VECTOR, [0.5]), (_MATRIX, [[0.5, 1.0, 2.0]], 0), (_MATRIX, 0.5)),
)  # fmt: skip

# --- axes


def _at_least(rank: int, in_front: Callable[[int], int]) -> Composite:
    def widened(x: Any) -> Any:
        sizes = arrays.shape(x)
        before = max(in_front(rank - len(sizes)), 0)
        return reshape(x, (*(1,) * before, *sizes, *(1,) * (rank - len(sizes) - before)))

    def definition(*tensors: Any) -> Any:
        found = tuple(map(widened, tensors))
        return found[0] if len(found) == 1 else found

    return Composite(
        f"atleast_{rank}d", "*tensors", f"with axes of size 1 up to {rank}, each of several tensors", definition,
        derivative="reshape(g, x.shape)",
        samples=(0.7, (_VECTOR,), (_MATRIX,)),
    )  # fmt: skip


atleast_1d = _at_least(1, lambda missing: missing)
atleast_2d = _at_least(2, lambda missing: missing)
# A vector gets one axis in front and one at the end, a matrix one at the end.
atleast_3d = _at_least(3, lambda missing: missing - 1)


def _rollaxis(x: Any, axis: Any, start: Any = 0) -> Any:
    rank = len(arrays.shape(x))
    number, place = normalize_axis(axis, rank), integer(start, "a place of an axis")
    place += rank if place < 0 else 0
    if not 0 <= place <= rank:
        raise ShapeError(f"an axis cannot be moved before axis {start} of {rank}")
    return moveaxis(x, number, place - 1 if number < place else place)


rollaxis = Composite(
    "rollaxis", "x, axis, start=0", "an axis moved before the one at a place", _rollaxis,
    derivative="g with the axis moved back",
    samples=(([_MATRIX], 2), ([_MATRIX], 0, 3), ([_MATRIX], -1, -2)),
)  # fmt: skip

flipud = Composite(
    "flipud", "x", "reversed along the first axis", lambda x: flip(x, 0),
    derivative="flipud(g)",
    samples=((_MATRIX,), (_VECTOR,)),
)  # fmt: skip
fliplr = Composite(
    "fliplr", "x", "reversed along the second axis", lambda x: flip(x, 1),
    derivative="fliplr(g)",
    samples=((_MATRIX,),),
)  # fmt: skip

# --- partial sorting


def _partition(x: Any, kth: Any, axis: Any = -1) -> Any:
    ordered = sort(x, axis)
    size = arrays.shape(ordered)[0 if axis is None else normalize_axis(axis, len(arrays.shape(x)))]
    if not all(-size <= place < size for place in whole_numbers(kth, "a place")):
        raise ShapeError(f"there are {size} places along the axis, and {kth} is none of them")
    return ordered


partition = Composite(
    "partition", "x, kth, axis=-1",
    "with the elements of the ranks kth in their places along an axis, smaller ones before and larger ones behind them, here in rising order",
    _partition,
    derivative="g in the old order",
    domain="smooth where no two elements are equal",
    samples=((_VECTOR, 1), (_MATRIX, 0, 0)),
)  # fmt: skip

# --- numpy.gradient


def _slopes(x: Any, *spacing: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    rank, order = len(arrays.shape(x)), integer(edge_order, "'edge_order'")
    numbers = range(rank) if axis is None else whole_numbers(axis, "an axis")
    axes = [normalize_axis(number, rank) for number in numbers]
    steps = spacing or (1.0,)
    steps = steps * len(axes) if len(steps) == 1 and not arrays.shape(steps[0]) else steps
    if len(steps) != len(axes) or len(set(axes)) < len(axes) or order not in (1, 2):
        raise ShapeError(
            f"'gradient' has {len(spacing)} spacings for {len(axes)} axes",
            hint="one number for all axes, or a number or a vector of places for each; edge_order is 1 or 2",
        )
    found = tuple(_slope(x, step, number, order) for step, number in zip(steps, axes))
    return found[0] if len(found) == 1 else found


def _slope(x: Any, spacing: Any, axis: int, order: int) -> Any:
    sizes = arrays.shape(x)
    if sizes[axis] <= order:
        raise ShapeError(f"'gradient' needs {order + 1} elements along an axis, and there are {sizes[axis]}")
    rises = _rises(x, axis)
    if arrays.shape(spacing):
        shape = [sizes[axis] - 1 if number == axis else 1 for number in range(len(sizes))]
        steps = reshape(_rises(spacing, 0), shape)
    else:
        steps = multiply(spacing, ones_like(rises))
    slopes = divide(rises, steps)
    before, behind = (index(steps, axis_key(axis, part)) for part in (slice(0, -1), slice(1, None)))
    left, right = (index(slopes, axis_key(axis, part)) for part in (slice(0, -1), slice(1, None)))
    inside = divide(add(multiply(before, right), multiply(behind, left)), add(before, behind))
    ends = [index(slopes, axis_key(axis, part)) for part in (slice(0, 1), slice(-1, None))]
    if order == 2:
        # Derivative of the parabola through the three elements at the end.
        bent = divide(subtract(left, right), add(before, behind))
        ends[0] = add(ends[0], multiply(*(index(part, axis_key(axis, slice(0, 1))) for part in (before, bent))))
        ends[1] = subtract(
            ends[1], multiply(*(index(part, axis_key(axis, slice(-1, None))) for part in (behind, bent)))
        )
    return concat([ends[0], inside, ends[1]], axis)


def _rises(x: Any, axis: int) -> Any:
    parts: Sequence[Any] = [index(x, axis_key(axis, part)) for part in (slice(1, None), slice(0, -1))]
    return subtract(*parts)


# `numpy.gradient`. In the language itself the name `gradient` means a derivative.
slopes = Composite(
    "slopes", "x, *steps, axis=None, edge_order=1",
    "the slope at each element between its neighbours along an axis, or along each", _slopes,
    internal="gradient",
    derivative="that of the differences",
    samples=((_VECTOR,), ([1.0, 2.5, -3.0, 0.5], 2), (_VECTOR, [0.0, 1.0, 3.0])),
)  # fmt: skip
