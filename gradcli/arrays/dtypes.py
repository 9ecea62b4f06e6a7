"""Shape and dtype of an array of any library, and the dtypes that programs compute in."""

from __future__ import annotations

import math
from contextvars import ContextVar
from functools import cache

from gradcli.arrays.shapes import ElementCount, Shape
from gradcli.errors import EvaluationError, UsageError
from gradcli.type_hints import Any

Array = Any
_PLAIN_DTYPES: dict[type, str] = {
    float: "float64",
    int: "int64",
    ElementCount: "int64",
    bool: "bool",
    complex: "complex128",
}
PYTHON_NUMBERS = frozenset(_PLAIN_DTYPES)
# The dtypes whose 0-d values are Python numbers.
_OF_PYTHON = frozenset(_PLAIN_DTYPES.values())
DTYPES = ("float64", "float32")
# Machine epsilon of common dtypes, so that NumPy is not loaded for them, and of bfloat16, which NumPy lacks.
_EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "bfloat16": 2.0**-7,
    "complex128": 2.0**-52,
    "complex64": 2.0**-23,
}
_PARTS = {"complex128": "float64", "complex64": "float32"}


def shape(array: Array) -> Shape:
    """The shape of an array or of any object with a `shape`; () for a number."""
    try:
        if type(array) in PYTHON_NUMBERS:
            return ()
        found = array.shape
        return found if type(found) is tuple else tuple(found)
    except Exception:
        # The attributes of an object from outside may raise any exception.
        raise EvaluationError(f"a number, an array or a tensor is needed, not {type(array).__name__}") from None


def size(array: Array) -> int:
    """The number of elements of an array or of any object with a shape; 1 for a number."""
    return math.prod(shape(array))


def dtype_name(array: Array) -> str:
    """The name of the dtype: `float64`, `float32`, `int64`, `bool`, …"""
    kind: Any = type(array)
    known = _PLAIN_DTYPES.get(kind)
    return _dtype_name(kind, array.dtype) if known is None else known


@cache
def _dtype_name(_kind: type, dtype: Any) -> str:
    """The name of a dtype without a prefix such as `torch.`.

    The type of the array comes first in the cache key, because dtypes of two libraries must not be compared.
    """
    return str(dtype).rpartition(".")[2]


def is_floating(array: Array) -> bool:
    """Return whether the dtype is a real floating one; bfloat16, which programs do not compute in, is none."""
    return type(array) is float or dtype_name(array).startswith("float")


def is_complex(array: Array) -> bool:
    """Return whether the dtype is complex."""
    kind: Any = type(array)
    if kind in PYTHON_NUMBERS:
        return kind is complex
    return _is_complex(kind, array.dtype)


@cache
def _is_complex(kind: type, dtype: Any) -> bool:
    return _dtype_name(kind, dtype).startswith("complex")


def is_inexact(array: Array) -> bool:
    """Return whether the dtype is floating, as for `is_floating`, or complex, so that derivatives by the elements
    exist."""
    return type(array) is float or dtype_name(array).startswith(("float", "complex"))


def real_dtype(dtype: str) -> str:
    """The dtype of the real and imaginary parts of a complex dtype; another dtype unchanged."""
    return _PARTS.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """The complex dtype whose parts have a floating dtype; complex128 for integers and truth values."""
    return dtype if dtype in _PARTS else "complex64" if dtype == "float32" else "complex128"


@cache
def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number of a floating dtype; 0 for bool and integers, which are not rounded."""
    if dtype in _EPSILON or "float" not in dtype:
        return _EPSILON.get(dtype, 0.0)
    import numpy

    return float(numpy.finfo(dtype).eps)


def tidy(array: Array) -> Array:
    """Normalise a result: 0-d arrays of dtype float64, complex128, bool or int64 become Python numbers."""
    if type(array) in PYTHON_NUMBERS or array.ndim:
        return array
    return array.item() if dtype_name(array) in _OF_PYTHON else array[()]


def check_dtype(dtype: str | None) -> None:
    """Raise UsageError for a dtype that programs cannot compute in."""
    if dtype not in (None, *DTYPES):
        raise UsageError(f"there is no dtype {dtype!r}", hint=f"the dtypes are {' and '.join(DTYPES)}")


_default_dtype: ContextVar[str] = ContextVar("gradcli_default_dtype", default="float64")


def default_dtype() -> str:
    """The dtype of tensors that a program makes from numbers."""
    return _default_dtype.get()


def set_default_dtype(dtype: str) -> None:
    """Set the dtype of new tensors in this context; it is not checked."""
    _default_dtype.set(dtype)


class using_dtype:
    """Within the block, new tensors have `dtype`; it is not checked."""

    __slots__ = ("_dtype", "_token")

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype

    def __enter__(self) -> None:
        self._token = _default_dtype.set(self._dtype)

    def __exit__(self, *_error: object) -> None:
        _default_dtype.reset(self._token)
