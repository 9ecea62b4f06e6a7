"""Primitives that rules of all families need: cast, reshape, broadcast_to, permute.

This module is imported by the modules of families, so its primitives spell out the fields that a family would set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.errors import ShapeError
from gradcli.primitives import strides
from gradcli.primitives.axes import gathered, normalize_axis
from gradcli.primitives.bind import bind
from gradcli.primitives.jet_rules import linear
from gradcli.primitives.primitive import Primitive
from gradcli.primitives.strides import always
from gradcli.type_hints import Any

SUBJECT = "shape"

Operands = Sequence[Any]
Flags = Sequence[bool]
Params = Mapping[str, Any]

_VECTOR = [1.0, 2.5, -3.0]
_MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.5, 6.0]]


def _batched_cast(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    return bind(primitive, operands, params)


cast = Primitive(
    "cast", "x, dtype", "x in another dtype",
    numbers="analytic",
    internal=True, rounds_alike=True, elementwise=True, truths=True, jet=linear,
    batch=_batched_cast,
    forward=lambda _xp, x, *, dtype: arrays.astype(x, dtype),
    view=lambda x, *, dtype: arrays.dtype_name(x) == dtype,
    vjp=(lambda g, _y, _x, **_params: g,),
    prepare=lambda x, dtype: ((x,), {"dtype": dtype}),
    derivative="g",
    node_name="ToCopyBackward0",
    samples=((0.7, "float64"), ([-1.0, 2.0], "float64")),
)  # fmt: skip


def _new_shape(old: Shape, asked: Shape) -> Shape:
    new = asked
    if asked.count(-1) == 1:
        known = -math.prod(asked)
        if known > 0 and math.prod(old) % known == 0:
            new = tuple(math.prod(old) // known if s == -1 else s for s in asked)
    if min(new, default=0) < 0 or math.prod(new) != math.prod(old):
        raise ShapeError(f"cannot reshape {list(old)} to {list(asked)}")
    return new


def _keeps_its_place(x: Any, *, shape: Shape) -> bool:
    """Return whether NumPy reshapes `x` without a copy: it is contiguous, or only axes of size 1 are added or
    removed."""
    return bool(x.flags.c_contiguous) or [s for s in x.shape if s != 1] == [s for s in shape if s != 1]


def _batched_reshape(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    return bind(primitive, operands, {"shape": (arrays.shape(operands[0])[0], *params["shape"])})


reshape: Primitive = Primitive(
    "reshape", "x, *shape", "the same elements in another shape; one size may be -1",
    forward="reshape",
    vjp=(lambda g, _y, _x, **_params: reshaped(g, _x.shape),),
    prepare=lambda x, *sizes, shape=None: (
        (x,),
        {"shape": _new_shape(arrays.shape(x), gathered(sizes if shape is None else (shape,), "a shape"))},
    ),
    moves=True, truths=True, jet=linear,
    view=_keeps_its_place,
    strides=strides.of_reshape,
    shares=lambda layout, *, shape: layout is None or strides.of_reshape(layout(), shape=shape) is not None,
    batch=_batched_reshape,
    derivative="reshape(g, x.shape)",
    node_name="ViewBackward0",
    aliases=("view",),
    samples=((_MATRIX, (3, 2)), (_MATRIX, -1)),
)  # fmt: skip


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """`x` reshaped to `shape`; `x` itself if it has that shape."""
    return x if arrays.shape(x) == tuple(shape) else bind(reshape, (x,), {"shape": tuple(shape)})


def expanded(x: Any, shape: Shape) -> Any:
    """`x` broadcast to `shape`; `x` itself if it has that shape."""
    return x if arrays.shape(x) == shape else bind(broadcast_to, (x,), {"shape": shape})


def with_rank(x: Any, rank: int) -> Any:
    """A batched operand with axes of size 1 inserted after the batch axis, up to rank `rank` without the batch axis."""
    rows, *sizes = arrays.shape(x)
    return reshaped(x, (rows, *(1,) * (rank - len(sizes)), *sizes))


def permutation(ndim: int, axes: tuple[Any, ...]) -> Shape:
    """A permutation of all axes as non-negative numbers. Raises ShapeError if `axes` is not a permutation."""
    numbers = tuple(normalize_axis(a, ndim) for a in gathered(axes, "an axis"))
    if sorted(numbers) != list(range(ndim)):
        raise ShapeError(f"{list(numbers)} is no order of the {ndim} axes of the tensor")
    return numbers


@cache
def _inverse(axes: Shape) -> Shape:
    return tuple(axes.index(i) for i in range(len(axes)))


def _batched_permute(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    return bind(primitive, operands, {"axes": (0, *(a + 1 for a in params["axes"]))})


permute: Primitive = Primitive(
    "permute", "x, *axes", "the axes in the given order",
    forward="permute_dims",
    vjp=(lambda g, _y, _x, *, axes: permuted(g, _inverse(axes)),),
    prepare=lambda x, *order, axes=None: (
        (x,), {"axes": permutation(len(arrays.shape(x)), order if axes is None else (axes,))}
    ),
    moves=True, truths=True, jet=linear,
    view=always,
    strides=strides.of_permute,
    batch=_batched_permute,
    derivative="g with its axes in the old order",
    aliases=("permute_dims",),
    samples=((_MATRIX, (1, 0)), ([_MATRIX], (2, 0, 1))),
)  # fmt: skip


def permuted(x: Any, axes: Shape) -> Any:
    """`x` with its axes permuted; `axes` must be a permutation of non-negative numbers."""
    # In the rules of backward passes, on arrays: the dispatch would take ten times as long as the view.
    if arrays.backend_of(type(x)) == "numpy":
        return x.transpose(axes)
    return bind(permute, (x,), {"axes": axes})


def _broadcast_call(x: Any, *sizes: Any, shape: Any = None) -> tuple[Operands, Params]:
    asked = gathered(sizes if shape is None else (shape,), "a shape")
    if -1 in asked:
        old = arrays.shape(x)
        kept = (-1,) * (len(asked) - len(old)) + old
        asked = tuple(known if size == -1 else size for size, known in zip(asked, kept))
    return (x,), {"shape": asked}


def _batched_broadcast(primitive: Primitive, operands: Operands, _batched: Flags, params: Params) -> Any:
    shape = params["shape"]
    rows = arrays.shape(operands[0])[0]
    return bind(primitive, (with_rank(operands[0], len(shape)),), {"shape": (rows, *shape)})


broadcast_to = Primitive(
    "broadcast_to", "x, *shape", "repeated along new axes and axes of size 1, up to a shape; -1 keeps a size",
    forward=lambda xp, x, *, shape: xp.broadcast_to(x, shape),
    vjp=(lambda g, _y, _x, **_params: g,),
    prepare=_broadcast_call,
    moves=True, truths=True, jet=linear,
    strides=strides.of_broadcast,
    batch=_batched_broadcast,
    derivative="g summed over the axes that were repeated",
    elements=lambda _shapes, params: math.prod(params["shape"]),
    node_name="ExpandBackward0",
    aliases=("expand",),
    samples=((_VECTOR, (2, 3)), (0.7, (2, 2))),
)  # fmt: skip
