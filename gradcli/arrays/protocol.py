"""What gradcli itself asks of every array library, beside the functions of the language, which are found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gradcli.arrays.dtypes import Array
from gradcli.arrays.shapes import Shape
from gradcli.errors import GradcliError


class Library(Protocol):
    """An array library on one of its devices, and how its arrays are handled."""

    @property
    def name(self) -> str:
        """The name of the backend."""

    @property
    def device_name(self) -> str:
        """The device, as the library calls it."""

    @property
    def scalars(self) -> Any:
        """What computes elementwise functions of plain numbers alone where this library was chosen; None for floats."""

    # --- arrays in and out

    def asarray(self, value: Any, dtype: str | None = None, /) -> Array:
        """A number, or an array of NumPy or of this library, as one of this library, on this device."""

    def astype(self, array: Array, dtype: str, /) -> Array:
        """`array` converted to a dtype."""

    def copy(self, array: Array, /) -> Array:
        """An array of its own with the numbers of `array`."""

    def to_numpy(self, array: Array, /) -> Any:
        """`array` as one of NumPy, on the host."""

    def owned(self, array: Array, /) -> Array:
        """`array`, or a copy of it where whoever made it can still write into it."""

    def unshared(self, array: Array, others: Iterable[Array], /) -> Array:
        """`array`, or a copy of it where it cannot be written into or may share memory with `others`."""

    def zeros(self, shape: Shape, dtype: str, /) -> Array:
        """Zeros of a shape and dtype."""

    def ones(self, shape: Shape, dtype: str, /) -> Array:
        """Ones of a shape and dtype."""

    def synchronise(self) -> None:
        """Wait until the device has computed what it was asked for."""

    # --- running a primitive

    def promoted(self, operands: Sequence[Array], /, *, truths: bool) -> Sequence[Array]:
        """The operands as arrays and numbers that the library takes together, whole numbers beside floats as floats.

        Truth values stay what they are where `truths`, and else become the numbers 0 and 1.
        """

    def quiet(self) -> AbstractContextManager[Any]:
        """Within it the library gives nan and inf without a word, and records no graph of its own."""

    def tidy(self, array: Array, /) -> Array:
        """A result as an array in the sense of this package."""

    def explained(self, error: Exception, /) -> GradcliError | None:
        """What an error of the library means, where that is not that the operands do not fit."""


class Namespace(Library, Protocol):
    """A library and its functions; NumPy's is the module `numpy_arrays`.

    The namespace of plain floats, `gradcli.arrays.floats`, is none: it has the elementwise functions
    alone, and needs nothing of what is here.
    """

    @property
    def linalg(self) -> Any:
        """The functions of matrices, by their names in the Python array API."""

    def index(self, x: Array, key: tuple[Any, ...], /) -> Array:
        """x[key], for ints, slices, None, Ellipsis and arrays of whole numbers. Raises IndexError."""

    def scatter_add(self, values: Array, key: tuple[Any, ...], shape: Shape, /) -> Array:
        """Zeros of `shape` with `values` added at `key`; positions that repeat add up."""

    def einsum(self, *operands: Array, subscripts: str) -> Array:
        """The sum of products that `subscripts` say, as NumPy's."""

    def searchsorted(self, ordered: Array, values: Array, /, *, side: Any = "left") -> Array:
        """Where each of `values` belongs in a rising vector: before the numbers equal to it, or behind them."""

    def all(self, x: Array, /) -> Array:
        """Whether every element is true."""

    def expm(self, x: Array, /) -> Array:
        """The exponential of each matrix over the last two axes."""


class Compiler(Namespace, Protocol):
    """A library that compiles whole programs."""

    @property
    def compiler_hint(self) -> str:
        """What its compiler needs, and what does without."""

    def operand(self, value: Any, /) -> Any:
        """An input of a compiled program as it takes it."""

    def compiled(self, function: Callable[..., Any], operands: Sequence[Array], /) -> Callable[..., Any]:
        """`function` compiled for operands like these."""

    def assumptions(self) -> AbstractContextManager[list[Array]]:
        """Within it functions that refuse some numbers take them, where they can only refuse what they see at once;
        the truth values in the list that it gives tell whether they would have."""

    def dtype_name(self, array: Array, /) -> str:
        """The name of the dtype of an array, or of what stands for one while a program is compiled."""

    def logical_and(self, x: Array, y: Array, /) -> Array:
        """Where both are true."""
