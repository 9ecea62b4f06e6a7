"""The protocols that array libraries must implement.

The functions of the language are not part of them, because they are looked up by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gradcli.arrays.dtypes import Array
from gradcli.arrays.shapes import Shape
from gradcli.errors import GradcliError


class Library(Protocol):
    """An array library on one of its devices, and the handling of its arrays."""

    @property
    def name(self) -> str:
        """The name of the backend."""

    @property
    def device_name(self) -> str:
        """The name of the device in the library."""

    @property
    def scalars(self) -> Any:
        """The namespace for elementwise functions of plain numbers if this library is chosen; None for floats."""

    # --- arrays in and out

    def asarray(self, value: Any, dtype: str | None = None, /) -> Array:
        """Convert a number, or an array of NumPy or of this library, to an array of this library on this device."""

    def astype(self, array: Array, dtype: str, /) -> Array:
        """`array` converted to a dtype."""

    def copy(self, array: Array, /) -> Array:
        """A new array with the elements of `array`."""

    def to_numpy(self, array: Array, /) -> Any:
        """`array` as a NumPy array on the host."""

    def owned(self, array: Array, /) -> Array:
        """`array`, or a copy of it if other code could still write into its memory."""

    def unshared(self, array: Array, others: Iterable[Array], /) -> Array:
        """`array`, or a copy of it if it is read-only or may share memory with `others`."""

    def zeros(self, shape: Shape, dtype: str, /) -> Array:
        """Zeros of a shape and dtype."""

    def ones(self, shape: Shape, dtype: str, /) -> Array:
        """Ones of a shape and dtype."""

    def synchronise(self) -> None:
        """Wait until the device has finished all work issued to it."""

    # --- running a primitive

    def promoted(self, operands: Sequence[Array], /, *, truths: bool) -> Sequence[Array]:
        """The operands promoted to arrays and numbers that the library combines; integers beside floats become floats.

        Truth values are kept if `truths`, and else become the numbers 0 and 1.
        """

    def quiet(self) -> AbstractContextManager[Any]:
        """A context in which the library returns nan and inf without warnings and records no graph of its own."""

    def tidy(self, array: Array, /) -> Array:
        """Normalise a result to an array in the sense of this package."""

    def explained(self, error: Exception, /) -> GradcliError | None:
        """The gradcli error for an error of the library, such as a lack of memory.

        None if the error says that the operands do not fit.
        """


class Namespace(Library, Protocol):
    """A library and its functions; NumPy's is the module `numpy_arrays`.

    The namespace of plain floats, `gradcli.arrays.floats`, is not a Namespace: it has the elementwise functions only.
    """

    @property
    def linalg(self) -> Any:
        """The functions of matrices, by their names in the Python array API."""

    def index(self, x: Array, key: tuple[Any, ...], /) -> Array:
        """x[key], for ints, slices, None, Ellipsis and integer arrays. Raises IndexError."""

    def scatter_add(self, values: Array, key: tuple[Any, ...], shape: Shape, /) -> Array:
        """Zeros of `shape` with `values` added at `key`; values at repeated positions accumulate."""

    def einsum(self, *operands: Array, subscripts: str) -> Array:
        """The sum of products given by `subscripts`, as in `numpy.einsum`."""

    def searchsorted(self, ordered: Array, values: Array, /, *, side: Any = "left") -> Array:
        """The insertion points of `values` in an ascending vector: before equal numbers (`left`) or after them."""

    def all(self, x: Array, /) -> Array:
        """Return whether every element is true."""

    def expm(self, x: Array, /) -> Array:
        """The exponential of each matrix over the last two axes."""


class Compiler(Namespace, Protocol):
    """A library that compiles whole programs."""

    @property
    def compiler_hint(self) -> str:
        """An error hint: what the compiler needs, and how to compute without it."""

    def operand(self, value: Any, /) -> Any:
        """Convert an input of a compiled program to the form that the program takes."""

    def compiled(self, function: Callable[..., Any], operands: Sequence[Array], /) -> Callable[..., Any]:
        """`function` compiled for operands with the shapes and dtypes of `operands`."""

    def assumptions(self) -> AbstractContextManager[list[Array]]:
        """A context for tracing, in which functions do not raise errors for the values of operands.

        For example, a singular matrix is not refused. It yields a list of truth values, which are true where no error
        would have been raised.
        """

    def dtype_name(self, array: Array, /) -> str:
        """The name of the dtype of an array, or of its stand-in while a program is compiled."""

    def logical_and(self, x: Array, y: Array, /) -> Array:
        """The elementwise logical and."""
