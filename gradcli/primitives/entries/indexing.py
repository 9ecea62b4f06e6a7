"""Indexing, and its transpose, scattering."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from gradcli import arrays, limits
from gradcli.arrays.index_keys import has_arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import LimitError, ShapeError
from gradcli.primitives import batching, strides
from gradcli.primitives.axes import diagonal_number, integer, integer_array
from gradcli.primitives.bind import Kind, concrete
from gradcli.primitives.costs import broadcast_elements
from gradcli.primitives.families import permuting
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import NodeName, Primitive
from gradcli.type_hints import Any

SUBJECT = "shape"

Key = tuple[Any, ...]

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]
# The largest side of a square matrix whose size in bytes fits 64 bits.
_MAX_SIDE = 2**29
# The cost of reading an index array, in eighths of a step (see `gradcli.limits`).
_INDEX_ARRAY = 16


def normalize_key(key: Any, x: Any = None) -> Key:
    """An index as a tuple of ints, slices of ints, None, Ellipsis and integer arrays.

    A boolean mask becomes the positions of its true elements; a list with an item that only a tuple may have is taken
    as a tuple. If `x` is given, masks are checked against its shape. Raises ShapeError for a mask that does not fit the
    axes of `x`, and for a single bool, which is a position in some libraries and a new axis in others.
    """
    items = key if isinstance(key, tuple) else (key,)
    if isinstance(key, list) and any(item is None or item is Ellipsis or isinstance(item, slice) for item in key):
        items = tuple(key)
    parts = [_normalize_item(concrete(item)) for item in items]
    if x is not None and _Mask in map(type, parts):
        _check_masks(parts, arrays.shape(x))
    return tuple(position for part in parts for position in part)


def check_order_of_axes(key: tuple[Any, ...]) -> None:
    """Raise ShapeError for an index whose result has another order of axes in NumPy than in PyTorch.

    PyTorch takes the slices at numbers before it looks at arrays of positions. NumPy treats a number that stands apart
    from the arrays as one of them, and moves their axis to the front.
    """
    if len(key) < 3:
        return
    places = [place for place, item in enumerate(key) if not _keeps_axes(item)]
    if not places or places[-1] - places[0] < len(places):
        return
    without_numbers = [_keeps_axes(item) for item in key if not _is_number(item)]
    arrays_at = [place for place, keeps in enumerate(without_numbers) if not keeps]
    if not arrays_at or len(arrays_at) == len(places):
        return
    if arrays_at[0] > 0 and arrays_at[-1] - arrays_at[0] < len(arrays_at):
        raise ShapeError(
            "PyTorch leaves the axis of the positions of this index in its place, and NumPy moves it to the front",
            hint="x[0][:, [1, 2]] leaves it for x[0, :, [1, 2]], and x[[0], :, [1, 2]] moves it",
        )


def _keeps_axes(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, slice)


def _is_number(item: Any) -> bool:
    return type(item) in arrays.PYTHON_NUMBERS or getattr(item, "ndim", 1) == 0


class _Mask(tuple[Any, ...]):
    """The positions at which a boolean array of shape `shape` is true, one array per axis."""

    shape: Shape


def _check_masks(parts: Sequence[tuple[Any, ...]], shape: Shape) -> None:
    axes = [0 if part[0] is None or part[0] is Ellipsis else len(part) for part in parts]
    dots = next((i for i, part in enumerate(parts) if part[0] is Ellipsis), len(parts))
    for i, part in enumerate(parts):
        axis = sum(axes[:i]) if i < dots else len(shape) - sum(axes[i:])
        if type(part) is _Mask and axis >= 0 and part.shape != shape[axis : axis + len(part)]:
            raise ShapeError(
                f"a mask of shape {[*part.shape]} does not fit a tensor of shape {[*shape]} at axis {axis}"
            )


def _normalize_item(item: Any) -> tuple[Any, ...]:
    if item is None or item is Ellipsis:
        return (item,)
    if isinstance(item, slice):
        bounds = (item.start, item.stop, item.step)
        return (slice(*(None if b is None else integer(b, "a slice bound") for b in bounds)),)
    if _is_number(item):
        return (_position(item),)
    return _index_array(item)


def axis_key(axis: int, part: Any) -> Key:
    """The key that applies `part`, a slice or positions, to one axis and takes all of the others."""
    return (*(slice(None),) * axis, part)


def take_along_key(shape: Shape, axis: int, places: Any) -> Key:
    """The key of one element for each index of `shape`: at `places` along `axis`, at the same index along the
    others."""
    grid = arrays.numpy_namespace().ogrid[tuple(map(slice, shape))]
    return tuple(places if number == axis else others for number, others in enumerate(grid))


def _position(item: Any) -> int:
    if type(item) is bool or (hasattr(item, "dtype") and arrays.to_numpy(item).dtype.kind == "b"):
        raise ShapeError(f"{bool(item)} is no index", hint="where(c, a, b) chooses by a condition; int(c) is 0 or 1")
    number = integer(item, "an index")
    if abs(number) > sys.maxsize:
        raise ShapeError(f"index {number:.3g} is out of bounds")
    return number


def _index_array(item: Any) -> tuple[Any, ...]:
    xp = arrays.numpy_namespace()
    array = arrays.to_numpy(item)
    limits.charge_steps(_INDEX_ARRAY)
    limits.charge(array.size)
    if array.dtype.kind != "b":
        return (integer_array(array, "an index"),)
    mask = _Mask(xp.nonzero(array))
    mask.shape = array.shape
    return mask


def _taken_elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
    """The size of the result: index arrays are broadcast together and replace their axes."""
    key = params["key"]
    gathered = [item.shape for item in key if hasattr(item, "dtype")]
    own = (item for item in strides.expanded_key(key, len(shapes[0])) if item is not None)
    kept = (len(range(*i.indices(size))) for size, i in zip(shapes[0], own) if isinstance(i, slice))
    return broadcast_elements(gathered, {}) * math.prod(kept)


def _take(xp: Any, x: Any, *, key: Key) -> Any:
    try:
        return xp.index(x, key)
    except IndexError as error:
        raise ShapeError(str(error).replace("array", "tensor"), hint=_hint_at_shape(arrays.shape(x))) from None


def _hint_at_shape(shape: Shape) -> str:
    """The hint for an index that a tensor of this shape does not have."""
    if not shape:
        return "it is a single number, which has no elements: leave the index out"
    return f"its shape is {[*shape]}, and elements are counted from 0 along each axis"


index = permuting(
    "index", "x, place", "x[place]",
    internal=True,
    forward=_take,
    vjp=(lambda g, _y, _x, *, key: scatter(g, key, _x.shape),),
    prepare=lambda x, place: ((x,), {"key": normalize_key(place, x)}),
    batch=batching.index,
    derivative="g put back at the place, 0 elsewhere",
    selects=True,
    elements=_taken_elements,
    view=lambda _x, *, key: not has_arrays(key),
    strides=strides.of_index,
    shares=lambda _layout, *, key: not has_arrays(key),
    node_name=lambda _operands, params: NodeName("IndexBackward0" if has_arrays(params["key"]) else "SelectBackward0"),
    samples=((_VECTOR, 1), (_MATRIX, (slice(None), [0, 2, 0])), (_MATRIX, (None, Ellipsis, slice(0, 3, 2)))),
)  # fmt: skip

scatter: Primitive = Primitive(
    "put_at", "x, place, shape", "zeros of a shape with x added at a place",
    numbers="analytic",
    internal=True, truths=True, jet=linear,
    forward=lambda xp, x, *, key, shape: xp.scatter_add(x, key, shape),
    vjp=(lambda g, _y, _x, *, key, **_params: index(g, key),),
    prepare=lambda x, place, shape: ((x,), {"key": normalize_key(place), "shape": tuple(shape)}),
    batch=batching.scatter,
    derivative="g[place]",
    elements=lambda shapes, params: math.prod(shapes[0]) + math.prod(params["shape"]),
    result_shape=lambda _shapes, params: params["shape"],
    samples=((_VECTOR, ([0, 2, 0],), (4,)), (_VECTOR, (slice(None), 1), (3, 2))),
)  # fmt: skip


def _diagonal_positions(count: int, k: int) -> Key:
    xp = arrays.numpy_namespace()
    steps = xp.arange(max(count, 0))
    return steps + max(-k, 0), steps + max(k, 0)


def _diag(x: Any, k: Any = 0) -> Any:
    sizes = arrays.shape(x)
    if len(sizes) == 1:
        offset = integer(k, "a diagonal")
        side = side_with_diagonal(sizes[0], offset)
        return scatter(x, _diagonal_positions(sizes[0], offset), (side, side))
    if len(sizes) == 2:
        return take_diagonal(x, k)
    raise ShapeError(f"'diag' needs 1 or 2 dimensions, and the tensor has {len(sizes)}")


def side_with_diagonal(size: int, offset: int) -> int:
    """The number of rows of the square matrix in which diagonal `offset` has `size` elements. Raises LimitError if too
    large."""
    side = size + abs(offset)
    if side > _MAX_SIDE:
        raise LimitError(f"a matrix of {side:,} rows does not fit into memory")
    return side


def take_diagonal(x: Any, k: Any = 0, view: bool = False) -> Any:
    """Diagonal k of the first two axes, as the first axis of the result; with `view`, recorded as a view of `x`."""
    sizes = arrays.shape(x)
    if len(sizes) < 2:
        raise ShapeError(f"a diagonal needs at least 2 dimensions, and the tensor has {len(sizes)}")
    offset = diagonal_number(k, *sizes[:2])
    key = _diagonal_positions(min(sizes[0] + min(offset, 0), sizes[1] - max(offset, 0)), offset)
    taken = index(x, key)
    if view and isinstance(taken, Kind):
        taken.made_as_view(x, index, {"key": key})
    return taken


diag = Composite(
    "diag", "x, k=0", "the diagonal of a matrix, or the matrix with a vector on its diagonal", _diag,
    derivative="g put back on the diagonal, or the diagonal of g",
    samples=((_VECTOR,), (_MATRIX,), (_MATRIX, 1)),
)  # fmt: skip
