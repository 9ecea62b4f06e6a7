"""The array namespace of complex numbers with proved digits, which computes operations with complex operands.

Operations on real balls alone are those of `gradcli.arrays.flint.flint_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from flint import arb, fmpq

from gradcli.arrays.dtypes import PYTHON_NUMBERS, is_complex
from gradcli.arrays.flint import flint_arrays
from gradcli.arrays.flint.balls import Balls, Number
from gradcli.arrays.flint.complex_balls import Complex, ComplexBalls, as_complex, finished
from gradcli.arrays.flint.flint_arrays import FlintArrays, MissingDigitsError
from gradcli.arrays.flint.flint_names import MISSING_FUNCTIONS

Array = Any

_HOMES = (
    "gradcli.arrays.flint.complex_numbers.flint_complex_functions",
    "gradcli.arrays.flint.complex_numbers.flint_complex_special",
)
_OF_ARRAYS = (
    "gradcli.arrays.flint.complex_numbers.flint_complex_matrices",
    "gradcli.arrays.flint.complex_numbers.flint_eigenvalues",
    "gradcli.arrays.flint.complex_numbers.flint_complex_reductions",
    "gradcli.arrays.flint.flint_shapes",
)
# The functions of complex numbers whose results are real, or truth values.
_REAL_RESULTS = frozenset(["abs", "phase", "angle", "real", "real_part", "imag", "imaginary_part"])
_TRUTHS = frozenset(
    "equal not_equal isfinite isinf isnan logical_and logical_or logical_not may_differ_from_zero".split()  # noqa: SIM905
)


class ComplexFlintArrays(FlintArrays):
    """The namespace for operands of which at least one is complex."""

    def __getattr__(self, name: str) -> Any:
        """Look up a function by name.

        Raises MissingDigitsError for a function without a definition for complex numbers in ball arithmetic.
        """
        made = self._dispatching(name)
        setattr(self, name, made)
        return made

    def own(self, name: str, called: str) -> Callable[..., Any]:
        """The function of complex numbers with this name.

        Raises MissingDigitsError, which calls it `called`, if there is none.
        """
        if _of_numbers(name) is None:
            raise MissingDigitsError(called, "definition for complex numbers")
        return getattr(self, name)  # type: ignore[no-any-return]

    def _dispatching(self, name: str) -> Callable[..., Any]:
        """The function for complex operands, which calls the real one for real operands, as within a definition."""

        def apply(*operands: Any, **params: Any) -> Any:
            if any(map(_has_complex, operands)):
                return function(name)(*operands, **params)
            return getattr(real_arrays(), name)(*operands, **params)

        return apply


@cache
def real_arrays() -> Any:
    return flint_arrays.on_device("cpu")


def _has_complex(operand: Any) -> bool:
    if isinstance(operand, (tuple, list)):
        return any(map(_has_complex, operand))
    kind = type(operand)
    return kind is ComplexBalls or kind is complex or (hasattr(operand, "dtype") and is_complex(operand))


@cache
def _of_numbers(name: str) -> Callable[..., Any] | None:
    """The function of complex numbers with this name, None if there is none."""
    for home in _HOMES:
        found = getattr(import_module(home), name, None)
        if found is not None and getattr(found, "__module__", "").startswith("gradcli.arrays.flint.complex_numbers."):
            return found  # type: ignore[no-any-return]
    return None


@cache
def function(name: str) -> Callable[..., Any]:
    """The function of arrays of complex balls with this name. Raises MissingDigitsError if there is none."""
    found = _of_numbers(name)
    if found is not None:
        return _mapped(found, name)
    for home in _OF_ARRAYS:
        found = getattr(import_module(home), name, None)
        if callable(found):
            return _of_arrays(found)
    raise MissingDigitsError(name, MISSING_FUNCTIONS.get(name))


def _mapped(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Lift a function of numbers to broadcast operands."""

    def checked(*numbers: Any, **params: Any) -> Any:
        result = function(*numbers, **params)
        return finished(result) if type(result) is Complex else result

    def apply(*operands: Any, **params: Any) -> Any:
        numbers = [_operand(operand) for operand in operands]
        if not any(hasattr(number, "shape") for number in numbers):
            return _wrapped(checked(*numbers, **params), name)
        import numpy

        return _wrapped(numpy.frompyfunc(partial(checked, **params), len(numbers), 1)(*numbers), name)

    return apply


def _wrapped(result: Any, name: str) -> Any:
    if name in _TRUTHS:
        return result.astype(bool) if hasattr(result, "shape") else result
    if name in _REAL_RESULTS:
        return Balls(result)
    return ComplexBalls(result)


def _operand(operand: Any) -> Any:
    """An operand as a function of complex numbers takes it: a number, a truth value, or an object array of these."""
    kind = type(operand)
    if kind is Balls or kind is ComplexBalls:
        return operand.numbers
    if kind is bool:
        return operand
    if kind in PYTHON_NUMBERS:
        return as_complex(operand)
    if not getattr(operand, "ndim", 0):
        item = operand.item() if hasattr(operand, "item") else operand
        return item if type(item) is bool else as_complex(item)
    return operand if operand.dtype.kind == "b" else objects(operand)


def objects(array: Any) -> Any:
    """The array with its elements converted to numbers of FLINT, complex or real ones."""
    import numpy

    return array if array.dtype == object else numpy.asarray(numpy.frompyfunc(as_complex, 1, 1)(array), object)


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lift a function of object arrays to complex balls."""

    def apply(*operands: Any, **params: Any) -> Any:
        return _wrapped_arrays(function(*map(_unwrapped, operands), **params))

    return apply


def _unwrapped(operand: Any) -> Any:
    """Convert balls and numbers to NumPy arrays for a function of arrays; return other operands unchanged."""
    kind = type(operand)
    if kind in (tuple, list) and any(isinstance(item, Balls) for item in operand):
        return kind(map(_unwrapped, operand))
    if isinstance(operand, Balls) and operand.shape:
        return operand.numbers
    if not isinstance(operand, Balls) and kind not in PYTHON_NUMBERS:
        return objects(operand) if getattr(getattr(operand, "dtype", None), "kind", "") == "c" else operand
    import numpy

    array = numpy.empty((), object if isinstance(operand, Balls) or kind is complex else kind)
    array[()] = operand.numbers if isinstance(operand, Balls) else as_complex(operand) if kind is complex else operand
    return array


def _wrapped_arrays(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(map(_wrapped_arrays, result))
    if isinstance(result, Balls):
        return result
    if type(result) in (Complex, fmpq, arb):
        return ComplexBalls(result)
    if getattr(getattr(result, "dtype", None), "kind", "") != "O":
        return result
    return ComplexBalls(result) if result.ndim else ComplexBalls(result.item())


def imaginary(number: Number) -> ComplexBalls:
    """The imaginary number of an imaginary part."""
    return ComplexBalls(Complex(fmpq(0), number, 1, 1))


@cache
def arrays() -> ComplexFlintArrays:
    return ComplexFlintArrays(real_arrays().scalars)
