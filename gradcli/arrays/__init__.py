"""The only door to array libraries: choosing a namespace, dtypes, conversion.

An *array* here is a Python float (or bool, or int), standing for a 0-d array in float64 (bool,
int64), or an array of a library. Results of zero dimensions in those dtypes come back as Python
numbers, so a scalar computation never pays for an array library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

from gradcli.arrays import floats
from gradcli.arrays.namespaces import (
    PLAIN,
    backend_of,
    chosen_namespace,
    default_namespace,
    foreign_namespace,
    namespace_of,
    numpy_namespace,
    placed,
    using_namespace,
)
from gradcli.errors import EvaluationError, LimitError, ShapeError, UsageError
from gradcli.timing import phase

__all__ = [
    "PLAIN",
    "backend_of",
    "chosen_namespace",
    "default_namespace",
    "floats",
    "foreign_namespace",
    "namespace_of",
    "numpy_namespace",
    "placed",
    "using_namespace",
]

Array = Any
Shape = tuple[int, ...]

DTYPES = ("float64", "float32")
_NUMBERS = frozenset({float, int})
_PLAIN_DTYPES: dict[type, str] = {float: "float64", int: "int64", bool: "bool"}


def shape(array: Array) -> Shape:
    """The shape of an array, of a number (), or of anything that has a `shape`."""
    try:
        return () if type(array) in PLAIN else tuple(array.shape)
    except AttributeError:
        raise EvaluationError(f"a number, an array or a tensor is needed, not {type(array).__name__}") from None


def dtype_name(array: Array) -> str:
    """`float64`, `float32`, `int64`, `bool`, …"""
    known = _PLAIN_DTYPES.get(type(array))
    if known is not None:
        return known
    dtype = array.dtype
    return _dtype_name(type(dtype).__module__, dtype)


@cache
def _dtype_name(_library: str, dtype: Any) -> str:
    """The name of a dtype, PyTorch's stands behind a dot; those of two libraries must not be compared."""
    return str(dtype).rpartition(".")[2]


def is_floating(array: Array) -> bool:
    return type(array) is float or dtype_name(array).startswith("float")


def tidy(array: Array) -> Array:
    """A result as an array in the sense of this package: 0-d float64, bool and int64 as Python numbers."""
    if type(array) in PLAIN or array.ndim:
        return array
    return array.item() if array.dtype.name in ("float64", "bool", "int64") else array[()]


def is_array(value: object) -> bool:
    """Whether `value` is a number or an array of a library, found without importing one."""
    return type(value) in PLAIN or backend_of(type(value)) is not None


def asarray(value: object, dtype: str | None = None) -> Array:
    """Numbers, nested sequences of numbers and arrays, as an array; a copy where `value` is mutable.

    An array stays one of its library. Raises ShapeError for nested lists of unequal lengths and
    EvaluationError for anything that is not numbers.
    """
    if type(value) in PLAIN and dtype in (None, "float64"):
        return value if dtype is None else _float(value)
    foreign = foreign_namespace((value,))
    if foreign is not None:
        return foreign.asarray(foreign.copy(value), dtype)
    try:
        array = numpy_namespace().array(value, dtype=dtype)
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error):
            raise ShapeError("the rows of a nested list have different lengths") from None
        raise EvaluationError(f"cannot make an array of numbers from {type(value).__name__}") from None
    except OverflowError:
        raise EvaluationError("an integer is too large for an array") from None
    if array.dtype.kind not in "fiub":
        raise EvaluationError(f"cannot make an array of real numbers from {array.dtype} values")
    return tidy(array)


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        raise EvaluationError("an integer is too large for a float") from None


def astype(array: Array, dtype: str) -> Array:
    """`array` converted to `dtype`; the same object where nothing changes."""
    if dtype_name(array) == dtype:
        return array
    foreign = foreign_namespace((array,))
    return asarray(array, dtype) if foreign is None else foreign.astype(array, dtype)


def promoted(operands: Sequence[Array], *, truths: bool) -> Sequence[Array]:
    """Numbers and arrays of NumPy, with integers beside float32 made float32, where NumPy would make both float64.

    Truth values stay what they are where `truths`, and else become the numbers 0 and 1.
    """
    chars = {"?" if type(o) is bool else o.dtype.char for o in operands if type(o) not in _NUMBERS}
    if "?" in chars and not truths:
        operands = _as_numbers(operands, chars)
    if "f" not in chars or "d" in chars or chars.isdisjoint("ilqILQ"):
        return operands
    return [o if type(o) in PLAIN or o.dtype.kind not in "iu" else o.astype("float32") for o in operands]


def _as_numbers(operands: Sequence[Array], chars: Set[str]) -> Sequence[Array]:
    """The operands, with truth values as numbers in the floating dtype of the others, or the default one."""
    dtype = "float64" if "d" in chars else "float32" if "f" in chars else default_dtype()
    return [astype(o, dtype) if dtype_name(o) == "bool" else o for o in operands]


def owned(array: Array) -> Array:
    """`array`, or a copy of it where whoever made it can still write into it."""
    if type(array) in PLAIN or backend_of(type(array)) is None:
        return array
    return namespace_of((array,)).owned(array)


def unshared(array: Array, others: Iterable[Array]) -> Array:
    """`array`, or a copy of it where it cannot be written into or may share memory with `others`."""
    if type(array) in PLAIN or backend_of(type(array)) is None:
        return array
    return namespace_of((array,)).unshared(array, others)


def to_numpy(array: Array) -> Any:
    foreign = foreign_namespace((array,))
    if foreign is None:
        return numpy_namespace().to_numpy(array)
    with phase("transfer"):
        return foreign.to_numpy(array)


def on_host(array: Array) -> Array:
    """A number, or an array of any library as one of NumPy."""
    return array if type(array) in PLAIN else tidy(to_numpy(array))


def tolist(array: Array) -> Any:
    """Nested lists of Python numbers, or one number."""
    return array if type(array) in PLAIN else to_numpy(array).tolist()


def zeros(shape: Shape, dtype: str, namespace: Any = None) -> Array:
    """Zeros in a namespace, in that of NumPy and plain numbers where it is None."""
    if namespace is not None:
        return namespace.zeros(shape, dtype)
    if not shape and dtype == "float64":
        return 0.0
    return tidy(numpy_namespace().zeros(shape, dtype))


def zeros_like(array: Array) -> Array:
    return 0.0 if type(array) in PLAIN else zeros(shape(array), dtype_name(array), foreign_namespace((array,)))


def ones_like(array: Array) -> Array:
    sizes, dtype = shape(array), dtype_name(array)
    foreign = foreign_namespace((array,))
    if foreign is not None:
        return foreign.ones(sizes, dtype)
    if not sizes and (dtype == "float64" or type(array) in PLAIN):
        return 1.0
    return tidy(numpy_namespace().ones(sizes, dtype))


def every(condition: Array) -> bool:
    """Whether a truth value, or every element of an array of them, is true."""
    if type(condition) in PLAIN:
        return bool(condition)
    # Not every library has it as a method.
    method = getattr(condition, "all", None)
    return bool(namespace_of((condition,)).all(condition) if method is None else method())


def beside(array: Array, other: Array) -> Array:
    """A number or an array of NumPy as one of the library and device of `other`."""
    foreign = foreign_namespace((other,))
    return array if foreign is None else foreign.asarray(array)


def quiet() -> AbstractContextManager[Any]:
    """Within it array libraries give nan and inf without a word, as plain floats do here, and record no graphs."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is None:
        return nullcontext()
    silence: AbstractContextManager[Any] = numpy.errstate(all="ignore")
    no_grad = getattr(torch, "no_grad", None)
    return silence if no_grad is None else _both(silence, no_grad())


@contextmanager
def _both(one: AbstractContextManager[Any], other: AbstractContextManager[Any]) -> Iterator[None]:
    with one, other:
        yield


def chosen(backend: str | None, device: str | None) -> Any:
    """The namespace of a backend on a device; None for NumPy, which needs no choice.

    Raises UsageError for what no backend has, BackendError for what is not there.
    """
    if backend not in (None, "numpy"):
        from gradcli.arrays import backends

        return backends.namespace(backend, device)
    if device not in (None, "cpu"):
        raise UsageError(f"the backend numpy has no device {device!r}", hint="its device is cpu")
    return None


def moved(array: Array, backend: str | None, device: str | None) -> Array:
    """`array` in a backend (that which it is in, where that is None) on a device. Raises as `chosen` does."""
    here = foreign_namespace((array,))
    there = chosen(backend or (here.name if here else "numpy"), device)
    if there is here:
        return array
    host = on_host(array)
    return host if there is None else there.asarray(host)


def check_dtype(dtype: str | None) -> None:
    """Raise UsageError for a dtype in which nothing is computed here."""
    if dtype not in (None, *DTYPES):
        raise UsageError(f"there is no dtype {dtype!r}", hint=f"the dtypes are {' and '.join(DTYPES)}")


_default_dtype: ContextVar[str] = ContextVar("gradcli_default_dtype", default="float64")


def default_dtype() -> str:
    """The dtype of tensors that a program makes from numbers."""
    return _default_dtype.get()


@contextmanager
def using_dtype(dtype: str) -> Iterator[None]:
    """Within the block, new tensors have `dtype`."""
    token = _default_dtype.set(dtype)
    try:
        yield
    finally:
        _default_dtype.reset(token)


def made(make: Callable[[Any], Array]) -> Array:
    """What `make` makes from the namespace of NumPy, as an array of the default namespace."""
    return placed(guard_memory(make))


def guard_memory(make: Callable[[Any], Array]) -> Array:
    """What `make` makes from the namespace of NumPy; running out of memory is a LimitError."""
    try:
        return tidy(make(numpy_namespace()))
    except (MemoryError, ValueError, OverflowError) as error:
        raise LimitError(f"a tensor of this size does not fit into memory: {error}") from None
