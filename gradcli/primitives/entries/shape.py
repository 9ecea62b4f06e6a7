"""Functions that rearrange elements: reshaping, broadcasting, joining, reversing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape
from gradcli.errors import EvaluationError, ShapeError
from gradcli.primitives import batching
from gradcli.primitives.axes import (
    diagonal_number,
    gathered,
    integer_array,
    normalize_axes,
    normalize_axis,
    whole_numbers,
)
from gradcli.primitives.bind import concrete
from gradcli.primitives.conversions import broadcast_to, permutation, permute, permuted, reshape
from gradcli.primitives.entries.indexing import axis_key, index
from gradcli.primitives.families import permuting
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.strides import always
from gradcli.type_hints import Any

SUBJECT = "shape"

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]


def _transpose_axes(ndim: int, axes: tuple[Any, ...]) -> Shape:
    if not axes or (len(axes) == 1 and axes[0] is None):
        return tuple(reversed(range(ndim)))
    if not ndim and len(axes) == 2:
        # As in PyTorch, a scalar accepts the axes of a vector.
        for axis in axes:
            normalize_axis(axis, 1)
        return ()
    numbers = tuple(normalize_axis(a, ndim) for a in gathered(axes, "an axis"))
    if len(axes) == 2:
        swapped = list(range(ndim))
        swapped[numbers[0]], swapped[numbers[1]] = numbers[1], numbers[0]
        return tuple(swapped)
    return permutation(ndim, numbers)


transpose = Composite(
    "transpose", "x, *axes",
    "the axes in reverse order; with two numbers those axes exchanged; with more, the axes in that order",
    lambda x, *order, axes=None: permuted(
        x, _transpose_axes(len(arrays.shape(x)), order if axes is None else (axes,))
    ),
    derivative="transpose(g)",
    aliases=("t",),
    samples=((_MATRIX,), ([_MATRIX], 0, 2)),
)  # fmt: skip

swapaxes = Composite(
    "swapaxes", "x, axis1, axis2", "two axes exchanged", lambda x, axis1, axis2: transpose(x, axis1, axis2),
    derivative="swapaxes(g)",
    aliases=("swapdims",),
    samples=((_MATRIX, 0, 1), ([_MATRIX], -1, 0)),
)  # fmt: skip


def _moved_axes(ndim: int, source: Any, destination: Any) -> Shape:
    origins, targets = (
        [normalize_axis(a, ndim) for a in whole_numbers(axes, "an axis")] for axes in (source, destination)
    )
    if len(origins) != len(targets):
        raise ShapeError(f"{len(origins)} axes do not fit {len(targets)} places")
    order = [a for a in range(ndim) if a not in origins]
    for target, origin in sorted(zip(targets, origins)):
        order.insert(target, origin)
    return tuple(order)


moveaxis = Composite(
    "moveaxis", "x, source, destination", "axes moved to other places, the rest in their order",
    lambda x, source, destination: permute(x, _moved_axes(len(arrays.shape(x)), source, destination)),
    derivative="g with the axes moved back",
    aliases=("movedim",),
    samples=((_MATRIX, 0, -1), ([_MATRIX], (0, 1), (2, 0))),
)  # fmt: skip


def matrix_transpose(x: Any) -> Any:
    """`x` with the last two axes exchanged."""
    return permuted(x, _last_two_exchanged(len(arrays.shape(x))))


@cache
def _last_two_exchanged(rank: int) -> Shape:
    return _transpose_axes(rank, (-2, -1))


def along_axis(x: Any, axis: Any, compute: Callable[[Any, int], Any]) -> Any:
    """Call `compute` with `x` and a normalised axis. A scalar is passed as a vector of one element, as in PyTorch."""
    rank = len(arrays.shape(x))
    if rank:
        return compute(x, normalize_axis(axis, rank))
    made = compute(reshape(x, 1), normalize_axis(axis, 1))
    return type(made)(*(reshape(part, ()) for part in made)) if isinstance(made, tuple) else reshape(made, ())


def _squeezed(old: Shape, axis: Any) -> Shape:
    if axis is None:
        return tuple(s for s in old if s != 1)
    axes = normalize_axes(axis, len(old))
    if any(old[a] != 1 for a in axes):
        raise ShapeError(f"cannot squeeze axis {list(axes)} of shape {list(old)}: its size is not 1")
    return tuple(s for a, s in enumerate(old) if a not in axes)


squeeze = Composite(
    "squeeze", "x, axis=None", "without the axes of size 1",
    lambda x, axis=None: reshape(x, _squeezed(arrays.shape(x), axis)),
    derivative="reshape(g, x.shape)",
    samples=(([[_VECTOR]],), ([[_VECTOR]], 0)),
)  # fmt: skip


def _expanded(old: Shape, axis: Any) -> Shape:
    numbers = whole_numbers(axis, "an axis")
    axes = normalize_axes(axis, len(old) + len(numbers))
    sizes = iter(old)
    return tuple(1 if a in axes else next(sizes) for a in range(len(old) + len(axes)))


expand_dims = Composite(
    "expand_dims", "x, axis", "with a new axis of size 1",
    lambda x, axis: reshape(x, _expanded(arrays.shape(x), axis)),
    derivative="reshape(g, x.shape)",
    aliases=("unsqueeze",),
    samples=((_VECTOR, 0), (_MATRIX, -1)),
)  # fmt: skip

ravel = Composite(
    "ravel", "x", "all elements along one axis", lambda x: reshape(x, -1 if arrays.shape(x) else 1),
    derivative="reshape(g, x.shape)",
    samples=((_MATRIX,), 0.7),
)  # fmt: skip


def _flatten(x: Any, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    sizes = arrays.shape(x) or (1,)
    first, last = (normalize_axis(axis, len(sizes)) for axis in (start_dim, end_dim))
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(x, (*sizes[:first], math.prod(sizes[first : last + 1]), *sizes[last + 1 :]))


flatten = Composite(
    "flatten", "x, start_dim=0, end_dim=-1", "the elements along several neighbouring axes, all unless named, along one",
    _flatten,
    derivative="reshape(g, x.shape)",
    samples=((_MATRIX,), 0.7, ([_MATRIX, _MATRIX], 1), ([_MATRIX, _MATRIX], 0, 1)),
)  # fmt: skip


def _check_joined(tensors: Sequence[Any], axis: int) -> None:
    first = list(arrays.shape(tensors[0]))
    for tensor in tensors[1:]:
        other = list(arrays.shape(tensor))
        if len(other) != len(first) or any(a != b for i, (a, b) in enumerate(zip(first, other)) if i != axis):
            raise ShapeError(f"cannot join shapes {first} and {other} along axis {axis}")


def sequence(tensors: Any, name: str) -> list[Any]:
    """The tensors of a list or tuple, or the slices of a tensor along its first axis.

    Raises EvaluationError if there are none.
    """
    items = list(tensors) if isinstance(tensors, (list, tuple)) else list(iter_first_axis(tensors))
    if not items:
        raise EvaluationError(f"'{name}' needs at least one tensor")
    return items


def iter_first_axis(x: Any) -> list[Any]:
    """The slices of a tensor along its first axis. Raises ShapeError for a scalar."""
    sizes = arrays.shape(x)
    if not sizes:
        raise ShapeError("a number has no axis to go along")
    return [index(x, i) for i in range(sizes[0])]


# The largest number of tensors joined by one primitive. The rule of each operand receives all of them, so that larger
# numbers are joined in a tree.
_MOST_JOINED = 128


def _parts(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[i : i + _MOST_JOINED] for i in range(0, len(items), _MOST_JOINED)]


def _concat_call(tensors: Any, axis: Any = 0) -> tuple[Sequence[Any], Mapping[str, Any]]:
    items = sequence(tensors, "concat")
    ndim = len(arrays.shape(items[0]))
    if not ndim:
        raise ShapeError("cannot concatenate numbers", hint="stack joins them along a new axis")
    number = normalize_axis(axis, ndim)
    _check_joined(items, number)
    while len(items) > _MOST_JOINED:
        items = [concat(part, number) for part in _parts(items)]
    return items, {"axis": number}


def _concat_rule(i: int, g: Any, _y: Any, *_operands: Any, axis: int) -> Any:
    start = sum(arrays.shape(o)[axis] for o in _operands[:i])
    stop = start + arrays.shape(_operands[i])[axis]
    return index(g, axis_key(axis, slice(start, stop)))


def _total_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    return sum(math.prod(s) for s in shapes)


concat = permuting(
    "concat", "tensors, axis=0", "tensors joined along an axis",
    forward=lambda xp, *tensors, axis: xp.concat(tensors, axis=axis),
    vjp=_concat_rule,
    variadic=True,
    prepare=_concat_call,
    batch=batching.joined,
    derivative="the slice of g that each tensor became",
    elements=_total_elements,
    node_name="CatBackward0",
    aliases=("concatenate", "cat"),
    samples=(([_VECTOR, [0.5]],), ([_MATRIX, _MATRIX], 1)),
)  # fmt: skip


def _stack_call(tensors: Any, axis: Any = 0) -> tuple[Sequence[Any], Mapping[str, Any]]:
    items = sequence(tensors, "stack")
    first = arrays.shape(items[0])
    for item in items:
        if arrays.shape(item) != first:
            raise ShapeError(f"the items of a list have different shapes {list(first)} and {list(arrays.shape(item))}")
    return items, {"axis": normalize_axis(axis, len(arrays.shape(items[0])) + 1)}


_stack = permuting(
    "stack", "tensors, axis=0", "tensors joined along a new axis",
    internal=True,
    forward=lambda xp, *tensors, axis: xp.stack([xp.asarray(t) for t in tensors], axis=axis),
    vjp=lambda i, g, _y, *_operands, axis: index(g, axis_key(axis, i)),
    variadic=True,
    prepare=_stack_call,
    batch=batching.joined,
    derivative="the slice of g that each tensor became",
    elements=_total_elements,
    samples=(([0.7, 1.3],), ([_MATRIX, _MATRIX], 1)),
)  # fmt: skip


def _stack_parts(tensors: Any, axis: Any = 0) -> Any:
    items, params = _stack_call(tensors, axis)
    parts = [_stack(part, **params) for part in _parts(items)]
    return parts[0] if len(parts) == 1 else concat(parts, **params)


stack = Composite(
    "stack", "tensors, axis=0", "tensors joined along a new axis", _stack_parts,
    derivative="the slice of g that each tensor became",
    samples=(([0.7, 1.3],), ([_MATRIX, _MATRIX], 1)),
)  # fmt: skip


def _vstack(tensors: Any) -> Any:
    items = sequence(tensors, "vstack")
    return concat([reshape(x, (1, -1)) if len(arrays.shape(x)) < 2 else x for x in items])


def _hstack(tensors: Any) -> Any:
    items = [x if arrays.shape(x) else reshape(x, 1) for x in sequence(tensors, "hstack")]
    return concat(items, 0 if len(arrays.shape(items[0])) == 1 else 1)


vstack = Composite(
    "vstack", "tensors", "tensors joined along the first axis, numbers and vectors as rows", _vstack,
    derivative="the slice of g that each tensor became",
    aliases=("row_stack",),
    samples=(([_VECTOR, _MATRIX],),),
)  # fmt: skip

hstack = Composite(
    "hstack", "tensors", "tensors joined along the second axis, numbers and vectors along the first", _hstack,
    derivative="the slice of g that each tensor became",
    samples=(([_VECTOR, [0.5]],), ([_MATRIX, _MATRIX],)),
)  # fmt: skip

flip: Primitive = permuting(
    "flip", "x, axis=None", "reversed along the axes",
    view=always,
    vjp=(lambda g, _y, _x, *, axis: flip(g, axis),),
    prepare=lambda x, axis=None: ((x,), {"axis": normalize_axes(axis, len(arrays.shape(x)))}),
    batch=batching.along_axis,
    derivative="flip(g, axis)",
    samples=((_MATRIX,), (_MATRIX, 1)),
)  # fmt: skip


def _roll_call(x: Any, shift: Any, axis: Any = None) -> tuple[Sequence[Any], Mapping[str, Any]]:
    ndim = len(arrays.shape(x))
    shifts = whole_numbers(shift, "a shift")
    axes = None if axis is None else tuple(normalize_axis(a, ndim) for a in whole_numbers(axis, "an axis"))
    if axes is not None and len(axes) != len(shifts):
        raise ShapeError(f"roll has {len(shifts)} shifts for {len(axes)} axes")
    return (x,), {"shift": shifts if axes is not None else sum(shifts), "axis": axes}


def _backwards(shift: Any) -> Any:
    return tuple(-s for s in shift) if isinstance(shift, tuple) else -shift


roll: Primitive = permuting(
    "roll", "x, shift, axis=None", "moved along the axes, the end coming round to the start",
    forward=lambda xp, x, *, shift, axis: xp.roll(x, shift, axis=axis),
    vjp=(lambda g, _y, _x, *, shift, axis: roll(g, _backwards(shift), axis),),
    prepare=_roll_call,
    batch=batching.roll,
    derivative="roll(g, -shift, axis)",
    samples=((_VECTOR, 1), (_MATRIX, -1, 1)),
)  # fmt: skip


def _tile(x: Any, *repeats: Any) -> Any:
    counts = gathered(repeats, "a number of repeats")
    sizes = arrays.shape(x)
    rank = max(len(counts), len(sizes))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - len(sizes)) + sizes
    if any(c < 0 for c in counts):
        raise ShapeError("a number of repeats must not be negative")
    split = [part for size in sizes for part in (1, size)]
    spread = [part for count, size in zip(counts, sizes) for part in (count, size)]
    return reshape(broadcast_to(reshape(x, split), spread), [c * s for c, s in zip(counts, sizes)])


tile = Composite(
    "tile", "x, *repeats", "copies of the whole tensor side by side", _tile,
    derivative="g summed over the copies",
    samples=((_VECTOR, 2), (_MATRIX, (2, 3))),
)  # fmt: skip


def _repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None:
        x, axis = ravel(x), 0
    sizes = arrays.shape(x)
    number = normalize_axis(axis, len(sizes))
    return index(x, axis_key(number, _repeated_positions(repeats, sizes[number])))


def _repeated_positions(repeats: Any, size: int) -> Any:
    """The positions along an axis of `size`, each repeated as often as `repeats` says."""
    counts = integer_array(concrete(repeats), "a number of repeats").ravel()
    if counts.size not in (1, size) or (counts < 0).any():
        raise ShapeError(f"{counts.size:,} numbers of repeats do not fit an axis of size {size:,}")
    limits.charge(sum(counts.tolist()) * (size if counts.size == 1 else 1))
    return arrays.guard_memory(lambda xp: xp.repeat(xp.arange(size), counts))


repeat = Composite(
    "repeat", "x, repeats, axis=None", "each element repeated in place", _repeat,
    aliases=("repeat_interleave",),
    derivative="g summed over the copies",
    samples=((_VECTOR, 2), (_MATRIX, (1, 2, 3), 1)),
)  # fmt: skip


def _triangle_call(x: Any, k: Any, name: str) -> tuple[Sequence[Any], Mapping[str, Any]]:
    sizes = arrays.shape(x)
    if len(sizes) < 2:
        raise ShapeError(f"'{name}' needs at least 2 dimensions, and the tensor has {len(sizes)}")
    return (x,), {"k": diagonal_number(k, *sizes[-2:])}


tril: Primitive = permuting(
    "tril", "x, k=0", "the lower triangle of the last two axes, up to diagonal k",
    vjp=(lambda g, _y, _x, *, k: tril(g, k),),
    prepare=lambda x, k=0: _triangle_call(x, k, "tril"),
    batch=batching.trailing,
    derivative="tril(g, k)",
    selects=True,
    samples=((_MATRIX,), (_MATRIX, 1)),
)  # fmt: skip

triu: Primitive = permuting(
    "triu", "x, k=0", "the upper triangle of the last two axes, from diagonal k",
    vjp=(lambda g, _y, _x, *, k: triu(g, k),),
    prepare=lambda x, k=0: _triangle_call(x, k, "triu"),
    batch=batching.trailing,
    derivative="triu(g, k)",
    selects=True,
    samples=((_MATRIX,), (_MATRIX, 1)),
)  # fmt: skip


def _take_call(x: Any, indices: Any, axis: Any = None) -> Any:
    sizes = arrays.shape(x)
    if axis is None:
        return index(ravel(x), (_positions(indices),))
    number = normalize_axis(axis, len(sizes))
    return index(x, axis_key(number, _positions(indices)))


def _positions(indices: Any) -> Any:
    """Integer positions, which may be negative; a mask is rejected."""
    item = concrete(indices)
    return item if type(item) in arrays.PYTHON_NUMBERS else integer_array(item, "an index")


take = Composite(
    "take", "x, indices, axis=None", "the elements at positions along an axis", _take_call,
    derivative="g put back at the positions, 0 elsewhere",
    samples=((_VECTOR, [0, 2, 0]), (_MATRIX, [1, 1], 1)),
)  # fmt: skip
