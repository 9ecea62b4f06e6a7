"""Abstract evaluation: computes the shape and dtype of results without numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import NotRecordableError
from gradcli.kinds.levels import ABSTRACT
from gradcli.primitives import conversions
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.entries import linear
from gradcli.primitives.primitive import Primitive

# Primitives whose result is a view, so that a stand-in array with a single element in memory suffices.
_VIEWS = (conversions.reshape, conversions.permute, conversions.broadcast_to)
# Bound on the elements that are computed to find a shape where no rule exists.
_FEW = 10_000


class Abstract(Kind):
    """An array of which only the shape and dtype are known.

    Recording a program with it costs nothing for large arrays. The conditions of shortcuts are assumed to hold; the
    guards of the program check them later.
    """

    __slots__ = ("_dtype", "_shape")
    level = ABSTRACT

    def __init__(self, shape: Shape, dtype: str) -> None:
        self._shape = shape
        self._dtype = dtype

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def dtype(self) -> str:
        return self._dtype

    @property
    def inner(self) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotRecordableError("what is computed here depends on the numbers, so it cannot be recorded")

    __bool__ = _refuse

    def assume(self) -> bool:
        return True

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Abstract:
        shapes = [arrays.shape(o) for o in operands]
        if primitive.elementwise:
            return Abstract(broadcast(shapes), _dtype(primitive, operands, params))
        # A reduction of an empty array is evaluated, since some primitives raise for it.
        if primitive.reduces is not None and 0 not in shapes[0]:
            return Abstract(_reduced(shapes[0], **params), _dtype(primitive, operands, params))
        if primitive.result_shape is not None:
            return Abstract(primitive.result_shape(shapes, params), arrays.dtype_name(operands[0]))
        if primitive is linear.matmul:
            return Abstract(_matmul(*shapes), _dtype(linear.matmul, operands, params))
        if (
            primitive not in _VIEWS
            and primitive.elements(shapes, params) * primitive.time + sum(map(math.prod, shapes)) > _FEW
        ):
            raise NotRecordableError(f"'{primitive.name}' of so many elements is not recorded without its numbers")
        result = bind(primitive, [_stand_in(o, arrays.shape(o)) for o in operands], params)
        return Abstract(arrays.shape(result), arrays.dtype_name(result))


_NUMBERS = {"float64": 1.0, "bool": True}


def _stand_in(operand: Any, shape: Shape) -> Any:
    """Ones with `shape` and the dtype of an operand; for small square matrices the identity, which every function of
    matrices accepts."""
    if not isinstance(operand, Abstract) and arrays.shape(operand) == shape:
        return operand
    dtype = arrays.dtype_name(operand)
    if not shape:
        # Scalars need no array library.
        return _NUMBERS[dtype] if dtype in _NUMBERS else arrays.asarray(1.0, dtype)
    xp = arrays.numpy_namespace()
    square = len(shape) > 1 and shape[-1] == shape[-2] and math.prod(shape) <= _FEW
    return xp.broadcast_to(xp.eye(shape[-1], dtype=dtype) if square else xp.ones((), dtype), shape)


def _dtype(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> str:
    """The dtype of the result, found by evaluation on operands with one element."""
    return arrays.dtype_name(bind(primitive, [_stand_in(o, (1,) * len(arrays.shape(o))) for o in operands], params))


def _reduced(shape: Shape, *, axis: Shape, keepdims: bool) -> Shape:
    return tuple(1 if a in axis else s for a, s in enumerate(shape) if keepdims or a not in axis)


def _matmul(a: Shape, b: Shape) -> Shape:
    rows, columns = a[-2:-1] if len(a) > 1 else (), b[-1:] if len(b) > 1 else ()
    return (*broadcast([a[:-2], b[:-2]]), *rows, *columns)
