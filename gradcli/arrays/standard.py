"""The array namespace of a library that follows the Python array API, and the base class of other namespaces.

All namespaces except NumPy's are derived from it.

https://data-apis.org/array-api/latest/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from gradcli.arrays import dtypes, numpy_arrays, spellings
from gradcli.arrays.backends import backend_of
from gradcli.arrays.dtypes import PYTHON_NUMBERS
from gradcli.arrays.protocol import Library
from gradcli.errors import GradcliError

Array = Any
Key = tuple[Any, ...]
# A step of `scan`: from values, a counter and rows to new values.
Step = Callable[[Sequence[Array], Any, Sequence[Array]], Sequence[Array]]


class StandardArrays(Library):
    """A library on one of its devices.

    Its attributes are the functions of the library by their names in the standard. A function that is not in the
    standard is computed by the fallback of its entry, or else by NumPy and SciPy; this fails for a library whose arrays
    NumPy cannot read.
    """

    name = "standard"
    scalars = None
    # Whether a Python number takes the dtype of the array that it is combined with in every function.
    weak_numbers = False

    def __init__(self, library: Any, device: Any) -> None:
        self.namespace = library
        self.device = device

    def __getattr__(self, name: str) -> Any:
        spelling = spellings.of(name)
        found = getattr(self.namespace, spelling.within("standard", name), None)
        if found is None and spelling.fallback is not None:
            found = spellings.defined(self, name)
        if found is None:
            found = self._by_numpy(getattr(numpy_arrays, name))
        setattr(self, name, found)
        return found

    def _by_numpy(self, function: Any) -> Any:
        def compute(*operands: Any, **params: Any) -> Any:
            return self.asarray(function(*map(self._readable, operands), **params))

        return compute

    def _readable(self, operand: Any) -> Any:
        return self.to_numpy(operand) if self.owns(operand) else operand

    # --- arrays in and out

    @property
    def device_name(self) -> str:
        """The name of the device in the library."""
        return str(self.device)

    def owns(self, value: Any) -> bool:
        """Return whether `value` is an array of this library."""
        return backend_of(type(value)) == self.name

    def asarray(self, value: Any, dtype: str | None = None) -> Array:
        """Convert a number, or an array of NumPy or of this library, to an array of this library on this device."""
        if self.owns(value):
            return value if dtype is None else self.astype(value, dtype)
        return self.from_numpy(numpy_arrays.asarray(value, dtype))

    def from_numpy(self, array: Any) -> Array:
        return self.namespace.asarray(array.copy(), device=self.device)

    def to_numpy(self, array: Array) -> Any:
        return numpy_arrays.asarray(array)

    def dtype(self, name: str) -> Any:
        """The dtype object of the library for a name."""
        return getattr(self.namespace, name)

    def astype(self, array: Array, dtype: str) -> Array:
        return self.namespace.astype(array, self.dtype(dtype))

    def copy(self, array: Array) -> Array:
        return self.namespace.asarray(array, copy=True)

    def owned(self, array: Array) -> Array:
        """`array`, or a copy of it if other code could still write into its memory."""
        return self.copy(array)

    def unshared(self, array: Array, others: Iterable[Array]) -> Array:
        """`array`, or a copy of it if it may share memory with `others`."""
        return self.copy(array) if any(self.may_share_memory(array, other) for other in others) else array

    def may_share_memory(self, _array: Array, _other: Array) -> bool:
        return True

    def zeros(self, shape: Sequence[int], dtype: str) -> Array:
        return self.namespace.zeros(tuple(shape), dtype=self.dtype(dtype), device=self.device)

    def ones(self, shape: Sequence[int], dtype: str) -> Array:
        return self.namespace.ones(tuple(shape), dtype=self.dtype(dtype), device=self.device)

    def synchronise(self) -> None:
        """Wait until the device has finished all work issued to it.

        Does nothing here, because most libraries compute eagerly.
        """

    # --- running a primitive

    def quiet(self) -> AbstractContextManager[Any]:
        """A context in which the library returns nan and inf without warnings and records no graph of its own."""
        return numpy_arrays.quiet()

    def tidy(self, array: Array) -> Array:
        """The result unchanged: 0-d results stay on the device."""
        return array

    def promoted(self, operands: Sequence[Any], *, truths: bool) -> Sequence[Any]:
        """The operands, with NumPy arrays moved to this library and integers beside floats converted to floats.

        Truth values are kept if `truths`, and else become the numbers 0 and 1.
        """
        moved = [
            o if type(o) in PYTHON_NUMBERS or self.owns(o) else self.from_numpy(numpy_arrays.asarray(o))
            for o in operands
        ]
        if not any(map(self.owns, moved)):
            moved = [self.asarray(o) for o in moved]
        elif not self.weak_numbers:
            moved = [self._number_as_array(o, moved) for o in moved]
        names = {dtypes.real_dtype(self.dtype_name(o)) for o in moved if self.owns(o)}
        floating = next((name for name in dtypes.DTYPES if name in names), None)
        dtype = floating or dtypes.default_dtype()
        if not truths:
            moved = [self._number(o, dtype) for o in moved]
        if floating is not None or float in map(type, moved):
            moved = [self.astype(o, dtype) if self.owns(o) and self._is_whole(o) else o for o in moved]
        return moved

    def _is_whole(self, array: Array) -> bool:
        return "int" in self.dtype_name(array)

    def _number_as_array(self, operand: Any, operands: Sequence[Any]) -> Array:
        if type(operand) is bool:
            return self.asarray(operand)
        if type(operand) is not float:
            return operand
        floating = (self.dtype_name(o) for o in operands if self.owns(o) and dtypes.is_floating(o))
        return self.asarray(operand, next(floating, dtypes.default_dtype()))

    def _number(self, operand: Any, dtype: str) -> Any:
        if type(operand) is bool:
            return float(operand)
        return self.astype(operand, dtype) if self.owns(operand) and self.dtype_name(operand) == "bool" else operand

    def dtype_name(self, array: Array) -> str:
        return dtypes.dtype_name(array)

    @contextmanager
    def assumptions(self) -> Iterator[list[Array]]:
        """A context for tracing, in which functions do not raise errors for the values of operands.

        This default yields an empty list; see `Compiler.assumptions`.
        """
        yield []

    def operand(self, value: Any) -> Any:
        """Convert an input of a compiled program to the form that the program takes."""
        return self.asarray(value)

    def explained(self, _error: Exception) -> GradcliError | None:
        """The gradcli error for an error of the library; None if it says that the operands do not fit."""
        return None

    # --- functions that the standard does not have

    def scan(
        self, step: Step, start: Sequence[Array], counters: Sequence[float], rows: Sequence[Array]
    ) -> tuple[Sequence[Array], Sequence[Array]]:
        """Apply `step` to the values after the step before, a counter and a row of each of `rows`, one after the other.

        Returns the values after the last step, and for each of them the values after all steps along a new first axis.
        """
        values, found = start, []
        for place, counter in enumerate(counters):
            values = step(values, counter, [part[place, ...] for part in rows])
            found.append(values)
        return values, [self.stack(after, axis=0) for after in zip(*found)]

    def index(self, x: Array, key: Key) -> Array:
        """x[key], for ints, slices, None, Ellipsis and integer arrays."""
        shape = tuple(x.shape)
        positions = numpy_arrays.arange(math.prod(shape)).reshape(shape)[key]
        flat = self.take(self.reshape(x, (-1,)), self.from_numpy(positions.reshape(-1)), axis=0)
        return self.reshape(flat, positions.shape)

    def real(self, x: Array) -> Array:
        """The real part; the standard has that of complex arrays only."""
        return self.namespace.real(x) if dtypes.is_complex(x) else x

    def imag(self, x: Array) -> Array:
        """The imaginary part; the standard has that of complex arrays only."""
        return self.namespace.imag(x) if dtypes.is_complex(x) else self.namespace.zeros_like(x)

    def round(self, x: Array) -> Array:
        return self.namespace.round(x)


def namespace_of(array: Array) -> StandardArrays:
    return _standard(array.__array_namespace__(), array.device)


@cache
def _standard(library: Any, device: Any) -> StandardArrays:
    return StandardArrays(library, device)
