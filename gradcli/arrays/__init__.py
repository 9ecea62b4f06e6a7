"""How are the array libraries called? One namespace of functions for each, and conversions between them.

Begin with `protocol`, what a namespace is, `backends`, the list of libraries, and `numpy_arrays`, a namespace.

An *array* here is a Python number or an array of a library. A Python float, complex, bool or int stands for a 0-d array
of dtype float64, complex128, bool or int64. 0-d results of these dtypes are returned as Python numbers, so that scalar computations do not
pay the overhead of an array library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from gradcli import limits
from gradcli.arrays import backends, floats
from gradcli.arrays.backends import backend_of
from gradcli.arrays.dtypes import (
    DTYPES,
    PYTHON_NUMBERS,
    Array,
    check_dtype,
    complex_dtype,
    default_dtype,
    dtype_name,
    epsilon,
    is_complex,
    is_floating,
    is_inexact,
    real_dtype,
    set_default_dtype,
    shape,
    size,
    tidy,
    using_dtype,
)
from gradcli.arrays.namespaces import (
    chosen_namespace,
    chosen_scalars,
    default_namespace,
    foreign_namespace,
    in_default_namespace,
    namespace_of,
    numpy_namespace,
    runner_of,
    translating_errors,
    using_namespace,
)
from gradcli.arrays.shapes import ElementCount, Shape, Size
from gradcli.errors import EvaluationError, GradcliError, LimitError, ShapeError, UsageError
from gradcli.timing import phase
from gradcli.type_hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.arrays.protocol import Namespace

__all__ = [
    "DTYPES",
    "PYTHON_NUMBERS",
    "Array",
    "ElementCount",
    "Namespace",
    "Shape",
    "Size",
    "backend_of",
    "check_dtype",
    "chosen_namespace",
    "chosen_scalars",
    "complex_dtype",
    "default_dtype",
    "default_namespace",
    "dtype_name",
    "epsilon",
    "floats",
    "foreign_namespace",
    "in_default_namespace",
    "is_complex",
    "is_floating",
    "is_inexact",
    "namespace_of",
    "numpy_namespace",
    "real_dtype",
    "runner_of",
    "set_default_dtype",
    "shape",
    "size",
    "tidy",
    "using_dtype",
    "using_namespace",
]


def is_array(value: object) -> bool:
    """Return whether `value` is a number or an array of a supported library. Imports no library."""
    return type(value) in PYTHON_NUMBERS or backend_of(type(value)) is not None


def asarray(value: object, dtype: str | None = None) -> Array:
    """Convert a number, a nested sequence of numbers or an array to an array; a mutable `value` is copied.

    An array of another library stays in that library. Raises ShapeError for nested lists of unequal lengths and
    EvaluationError for values that are not numbers, and for complex ones if `dtype` is real.
    """
    if type(value) in PYTHON_NUMBERS and dtype in (None, "float64"):
        return value if dtype is None else _float(value)
    foreign = foreign_namespace((value,))
    if foreign is not None:
        _check_parts(dtype_name(value), dtype)
        return foreign.asarray(foreign.copy(value), dtype)
    numpy = numpy_namespace()
    try:
        # A number too large for `dtype` becomes infinite; NumPy must not warn about it.
        with numpy.quiet():
            array = numpy.array(value)
            if array.dtype.kind == "O" and all(hasattr(item, "__float__") for item in array.flat):
                array = numpy.array(value, dtype=dtype)
            if array.dtype.kind in "fiubc" and dtype is not None:
                _check_parts(str(array.dtype), dtype)
                array = array.astype(dtype, copy=False)
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error):
            raise ShapeError("the rows of a nested list have different lengths") from None
        raise EvaluationError(f"cannot make an array of numbers from {type(value).__name__}") from None
    except OverflowError:
        raise EvaluationError("an integer is too large for an array") from None
    except (GradcliError, MemoryError, RecursionError):
        raise
    except Exception as error:
        # The attributes and methods of an object from outside may raise any exception.
        what = f"{type(error).__name__}: {error}"
        raise EvaluationError(
            f"cannot make an array of numbers from {type(value).__name__}, which raises {what}"
        ) from error
    if array.dtype.kind not in "fiubc":
        raise EvaluationError(f"cannot make an array of numbers from {array.dtype} values")
    return tidy(array)


def _check_parts(dtype: str, wanted: str | None) -> None:
    """Raise EvaluationError for a conversion from complex to real, because libraries would drop the imaginary parts."""
    if dtype.startswith("complex") and not (wanted or dtype).startswith("complex"):
        raise EvaluationError(
            f"cannot make an array of real numbers from {dtype} values",
            hint="real(z) is the real part, abs(z) the modulus",
        )


def _float(number: Any) -> float:
    if type(number) is complex:
        _check_parts("complex128", "float64")
    try:
        return float(number)
    except OverflowError:
        raise EvaluationError("an integer is too large for a float") from None


def astype(array: Array, dtype: str) -> Array:
    """`array` converted to `dtype`; the same object if it has this dtype already."""
    if dtype_name(array) == dtype:
        return array
    foreign = foreign_namespace((array,))
    if foreign is None:
        return asarray(array, dtype)
    _check_parts(dtype_name(array), dtype)
    return foreign.astype(array, dtype)


def in_precision(array: Array, dtype: str) -> Array:
    """`array` converted to the floating `dtype`, or if it is complex to the complex dtype of the same precision."""
    return astype(array, complex_dtype(dtype) if is_complex(array) else dtype)


def owned(array: Array) -> Array:
    """`array`, or a copy of it if other code could still write into its memory."""
    if type(array) in PYTHON_NUMBERS or backend_of(type(array)) is None:
        return array
    return _counted(namespace_of((array,)).owned(array), array)


def _counted(kept: Array, array: Array) -> Array:
    """Charge the elements of `kept` to the budget if it is a copy of `array`.

    NumPy copies are charged before they are made.
    """
    if kept is not array and foreign_namespace((array,)) is not None:
        limits.charge(size(array))
    return kept


def unshared(array: Array, others: Iterable[Array]) -> Array:
    """`array`, or a copy of it if it is read-only or may share memory with `others`."""
    if type(array) in PYTHON_NUMBERS or backend_of(type(array)) is None:
        return array
    return _counted(namespace_of((array,)).unshared(array, others), array)


def to_numpy(array: Array) -> Any:
    foreign = foreign_namespace((array,))
    if foreign is None:
        return numpy_namespace().to_numpy(array)
    with phase("transfer"), translating_errors(foreign):
        return foreign.to_numpy(array)


def on_host(array: Array) -> Array:
    """A number unchanged, or an array of any library converted to NumPy."""
    return array if type(array) in PYTHON_NUMBERS else tidy(to_numpy(array))


def tolist(array: Array) -> Any:
    """The elements as nested lists of Python numbers, or as one number."""
    return array if type(array) in PYTHON_NUMBERS else to_numpy(array).tolist()


def zeros(shape: Shape, dtype: str, namespace: Namespace | None = None) -> Array:
    """Zeros in the given namespace; if it is None, a NumPy array or a plain number."""
    if namespace is None and not shape and dtype == "float64":
        return 0.0
    limits.charge(math.prod(shape))
    return guard_memory(lambda numpy: numpy.zeros(shape, dtype)) if namespace is None else namespace.zeros(shape, dtype)


def zeros_like(array: Array) -> Array:
    if type(array) in PYTHON_NUMBERS:
        return 0j if type(array) is complex else 0.0
    return zeros(shape(array), dtype_name(array), foreign_namespace((array,)))


def ones_like(array: Array) -> Array:
    sizes, dtype = shape(array), dtype_name(array)
    limits.charge(math.prod(sizes))
    foreign = foreign_namespace((array,))
    if foreign is not None:
        return foreign.ones(sizes, dtype)
    if not sizes and (dtype == "float64" or type(array) in PYTHON_NUMBERS):
        return 1.0
    return guard_memory(lambda numpy: numpy.ones(sizes, dtype))


def all_true(condition: Array) -> bool:
    """Return whether a truth value, or every element of an array of truth values, is true."""
    if type(condition) in PYTHON_NUMBERS:
        return bool(condition)
    foreign = foreign_namespace((condition,))
    if foreign is None:
        return bool(condition.all())
    with translating_errors(foreign):
        return bool(foreign.all(condition))


def like_library_of(array: Array, other: Array) -> Array:
    """Convert a number or NumPy array to the library and device of `other`."""
    foreign = foreign_namespace((other,))
    return array if foreign is None else foreign.asarray(array)


def quiet() -> AbstractContextManager[Any]:
    """A context in which array libraries return nan and inf without warnings, as floats do, and record no graphs."""
    numpy, torch = backends.loaded("numpy"), backends.loaded("torch")
    if numpy is None:
        return nullcontext()
    return _both(numpy.quiet(), torch.no_grad()) if torch is not None else numpy.quiet()


@contextmanager
def _both(one: AbstractContextManager[Any], other: AbstractContextManager[Any]) -> Iterator[None]:
    with one, other:
        yield


def chosen(backend: str | None, device: str | None) -> Namespace | None:
    """The namespace of a backend on a device; None for NumPy, which is the default.

    Raises UsageError for an unknown backend or device name, BackendError if the library or device is not available.
    """
    if backend == backends.DIGITS.name:
        raise UsageError(f"the backend {backend} computes digits that are proved", hint="--digits 50 asks for them")
    if backend not in (None, "numpy"):
        return backends.namespace(backend, device)
    if device not in (None, "cpu"):
        raise UsageError(f"the backend numpy has no device {device!r}", hint="its device is cpu")
    return None


def moved(array: Array, backend: str | None, device: str | None) -> Array:
    """`array` moved to a backend (its own if None) and a device. Raises as `chosen` does."""
    here = foreign_namespace((array,))
    there = chosen(backend or (here.name if here else "numpy"), device)
    if there is here:
        return array
    host = on_host(array)
    return host if there is None else there.asarray(host)


def made(make: Callable[[Any], Array]) -> Array:
    """Call `make` with the NumPy namespace and convert the result to the default namespace."""
    return in_default_namespace(guard_memory(make))


def guard_memory(make: Callable[[Any], Array]) -> Array:
    """Call `make` with the NumPy namespace; running out of memory raises LimitError."""
    try:
        return tidy(make(numpy_namespace()))
    except (MemoryError, ValueError, OverflowError) as error:
        raise LimitError(f"a tensor of this size does not fit into memory: {error}") from None
