"""Placeholders with the shape and dtype of operands and results, and the forms of operands, which decide how an
operation runs and is recorded."""

from __future__ import annotations

from functools import lru_cache

from gradcli import arrays
from gradcli.primitives.bind import Kind, readings
from gradcli.type_hints import Any


class ShapeOnly:
    """A placeholder for an operand of which backward needs only the shape and the dtype; that of a number is None."""

    __slots__ = ("dtype", "is_complex", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any = None, is_complex: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.is_complex = is_complex


_SCALAR, _COMPLEX_SCALAR = ShapeOnly(()), ShapeOnly((), is_complex=True)
# The form of operands whose type, shape and dtype do not decide how an operation is recorded: kinds, and Python numbers
# that are no floats.
UNDECIDED = ShapeOnly(())


def shape_only(array: Any) -> Any:
    """A placeholder with the shape of an operand whose values are not needed; a kind is kept as it is."""
    kind: Any = type(array)
    if kind in arrays.PYTHON_NUMBERS:
        return _COMPLEX_SCALAR if kind is complex else _SCALAR
    if isinstance(array, Kind):
        return array
    return _of_shape(kind, array.shape, array.dtype)


def form_of(data: Any) -> ShapeOnly:
    """The form of an operand: one object for all data of the same type, shape and dtype."""
    kind: Any = type(data)
    if kind is float:
        return _SCALAR
    return UNDECIDED if kind in readings else _of_shape(kind, data.shape, data.dtype)


@lru_cache(256)
def _of_shape(_kind: type, shape: Any, dtype: Any) -> ShapeOnly:
    """A cached placeholder, because the operands in a loop have few different shapes.

    The type of the array comes first in the cache key, because dtypes of two libraries must not be compared.
    """
    return ShapeOnly(tuple(shape), dtype, str(dtype).rpartition(".")[2].startswith("complex"))
