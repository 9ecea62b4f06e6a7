"""The array namespace of numbers with proved digits: `Balls` of FLINT.

Its functions are looked up by name. Elementwise functions come from `of_numbers`, and map numbers to numbers; functions
of arrays come from the modules in `_OF_ARRAYS`, and map object arrays of NumPy (0-d for a number) to object arrays.
NumPy is loaded only if there is an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from importlib import import_module
from typing import Any, ClassVar

from flint import __version__, arb, ctx, fmpq

from gradcli import limits
from gradcli.arrays import spellings
from gradcli.arrays.backends import Device
from gradcli.arrays.dtypes import PYTHON_NUMBERS, is_complex
from gradcli.arrays.flint import flint_names
from gradcli.arrays.flint.balls import Balls, bounded_height, checked_result, exact, from_text
from gradcli.arrays.flint.balls import to_float as _to_float
from gradcli.arrays.flint.flint_names import cost, of_numbers
from gradcli.arrays.shapes import Shape
from gradcli.errors import BackendError, GradcliError

Array = Any

_OF_ARRAYS = (
    "gradcli.arrays.flint.flint_shapes",
    "gradcli.arrays.flint.flint_reductions",
    "gradcli.arrays.flint.flint_matrices",
)
_NUMBERS = (fmpq, arb)
# The functions whose results are complex also for real operands, and the parts: a coefficient of a complex Taylor series
# may be a real number.
_COMPLEX_OF_REAL = frozenset(["complex", "real", "imag", "conj", "eigvals", "eigenbasis", "polynomial_roots"])
# Integers below it in magnitude are exact as floats.
_WHOLE = 2**53
# The cost in eighths of a step of converting one element of an array to a fraction.
_EXACT = 2


class _BallLinearAlgebra:
    """The functions of matrices, by their names in the Python array API."""

    def __init__(self, arrays: FlintArrays) -> None:
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arrays, name)


class _BallFourierTransforms:
    """The discrete Fourier transforms, by their names in the Python array API."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("gradcli.arrays.flint.complex_numbers.flint_fourier"), name)


class _FunctionInfo:
    """Queries about the functions of numbers: whether one exists, and what it costs."""

    def has(self, name: str) -> bool:
        """Return whether there is a function of numbers with this name."""
        return of_numbers(name) is not None

    def eighths(self, name: str, time: int = 1) -> int:
        """The cost per element in eighths of a step; `time` is the relative cost of the function in floats."""
        return cost(name, time, ctx.prec)


class _Scalars(_FunctionInfo):
    """The elementwise functions of plain numbers, and the constants and literals of programs in ball arithmetic.

    A result that is an integer and exact as a float is returned as a float.
    """

    constants: ClassVar = {
        "pi": lambda: Balls(arb.pi()),
        "π": lambda: Balls(arb.pi()),
        "tau": lambda: Balls(2 * arb.pi()),
        "e": lambda: Balls(arb.const_e()),
    }

    def number(self, text: str) -> Any:
        """The number that a decimal literal denotes."""
        return _plain(Balls(from_text(text)))

    def imaginary(self, text: str) -> Any:
        """The imaginary number that a decimal literal before `j` denotes."""
        return _complex_arrays().imaginary(from_text(text))

    def __getattr__(self, name: str) -> Any:
        function = _function(name)

        def apply(*operands: Any, **params: Any) -> Any:
            return _plain(function(*operands, **params))

        setattr(self, name, apply)
        return apply


class _Floats(_Scalars):
    """The scalars of a run in which the literals of a program denote the nearest floats, not decimals."""

    def number(self, text: str) -> Any:
        return _plain(Balls(exact(float(text))))

    def imaginary(self, text: str) -> Any:
        return _complex_arrays().imaginary(exact(float(text)))


def _plain(result: Any) -> Any:
    if type(result) is Balls:
        number = result.numbers
        if type(number) is fmpq and number.q == 1 and -_WHOLE < number < _WHOLE:
            return float(int(number.p))
    return result


class FlintArrays(_FunctionInfo):
    """The namespace of arrays of balls, on the CPU."""

    name = "flint"
    device_name = "cpu"

    def __init__(self, scalars: _Scalars) -> None:
        self.linalg = _BallLinearAlgebra(self)
        self.fft = _BallFourierTransforms()
        self.scalars = scalars

    def of_floats(self) -> FlintArrays:
        """The same namespace, but the literals of programs denote the nearest floats."""
        return _arrays(_Floats)

    def __getattr__(self, name: str) -> Any:
        """Look up a function by name.

        Raises MissingDigitsError for a function without a definition in ball arithmetic.
        """
        made = _function(name)
        setattr(self, name, made)
        return made

    def of_complex_numbers(self) -> Any:
        """The namespace for operations with complex operands."""
        return _complex_arrays().arrays()

    def of_numbers(self, name: str) -> Callable[..., Any] | None:
        """The function of numbers with this name, None if there is none."""
        return _checked(name)

    # --- arrays in and out

    def asarray(self, value: Any, dtype: str | None = None) -> Array:
        """Convert a number, a list or a NumPy array to balls; bool and int64 are kept, or made if `dtype` says so.

        Complex numbers stay complex, unless `dtype` is bool.
        """
        kind = type(value)
        if kind is Balls:
            return value if dtype in (None, "float64") else self.astype(value, dtype)
        if isinstance(value, (Balls, complex)):
            return self._complex(value, dtype)
        if kind in PYTHON_NUMBERS or kind in _NUMBERS:
            if dtype in ("bool", "int64"):
                return bool(value) if dtype == "bool" else int(value)
            if dtype is not None and dtype.startswith("complex"):
                return self._complex(value, dtype)
            return value if dtype is None and kind in (bool, int) else Balls(exact(value))
        if isinstance(value, (float, str)):
            # A subclass of float may keep its source text.
            return Balls(exact(value))
        import numpy

        array = numpy.asarray(value)
        if _has_complex(array) or (dtype is not None and dtype.startswith("complex")):
            return self._complex(array, dtype)
        if dtype in ("bool", "int64") or (dtype is None and array.dtype.kind in "biu"):
            return array if dtype is None else array.astype(dtype)
        return Balls(_objects(array)) if array.ndim else Balls(exact(array.item()))

    def _complex(self, value: Any, dtype: str | None) -> Array:
        """Complex numbers, or real ones that are to be complex, as complex balls; as truth values for bool."""
        from gradcli.arrays.flint.complex_balls import ComplexBalls, as_complex

        if isinstance(value, ComplexBalls):
            found = value
        elif isinstance(value, Balls):
            found = ComplexBalls(value.numbers)
        elif getattr(value, "ndim", 0):
            found = ComplexBalls(_complex_arrays().objects(value))
        else:
            found = ComplexBalls(as_complex(value.item() if hasattr(value, "item") else value))
        return found if dtype != "bool" else self.of_complex_numbers().not_equal(found, 0.0)

    def astype(self, array: Array, dtype: str) -> Array:
        if dtype.startswith("complex") or (type(array) is not Balls and isinstance(array, (Balls, complex))):
            return self._complex(array, dtype)
        if type(array) is not Balls or dtype.startswith("float"):
            return self.asarray(array, "float64" if dtype.startswith("float") else dtype)
        if dtype == "bool":
            return self.not_equal(array, 0.0)
        import numpy

        whole = self.trunc(array).numbers
        return int(whole.p) if not array.shape else numpy.frompyfunc(lambda x: int(x.p), 1, 1)(whole).astype(dtype)

    def copy(self, array: Array) -> Array:
        if not isinstance(array, Balls):
            return array if type(array) in PYTHON_NUMBERS else array.copy()
        return type(array)(array.numbers.copy()) if array.shape else array

    def to_numpy(self, array: Array) -> Any:
        """`array` in float64 if every number is exactly a float, else an object array of 0-d `Balls`."""
        import numpy

        if not isinstance(array, Balls):
            return numpy.asarray(array)
        if type(array) is not Balls:
            return numpy.asarray(numpy.frompyfunc(type(array), 1, 1)(numpy.asarray(array.numbers, object)), object)
        numbers = numpy.asarray(array.numbers, object)
        if all(map(_is_float, numbers.ravel())):
            return numpy.asarray(numpy.frompyfunc(_to_float, 1, 1)(numbers), "float64")
        return numpy.asarray(numpy.frompyfunc(Balls, 1, 1)(numbers), object)

    def owned(self, array: Array) -> Array:
        return self.copy(array)

    def unshared(self, array: Array, others: Iterable[Array]) -> Array:
        return self.copy(array) if any(other is array for other in others) or isinstance(array, Balls) else array

    def zeros(self, shape: Shape, dtype: str) -> Array:
        return self._full(shape, dtype, 0)

    def ones(self, shape: Shape, dtype: str) -> Array:
        return self._full(shape, dtype, 1)

    def _full(self, shape: Shape, dtype: str, number: int) -> Array:
        if dtype.startswith("complex"):
            return self._complex(self._full(shape, "float64", number), dtype)
        if not shape:
            return self.asarray(number, "float64" if dtype.startswith("float") else dtype)
        import numpy

        if dtype in ("bool", "int64"):
            return numpy.full(shape, number, dtype)
        return Balls(numpy.full(shape, fmpq(number), object))

    def synchronise(self) -> None:
        """Do nothing: results are computed eagerly."""

    # --- running a primitive

    def promoted(self, operands: Sequence[Array], *, truths: bool) -> Sequence[Array]:
        """Convert numbers and float arrays to balls, and truth values to 0 and 1 unless `truths`; integers are kept."""
        return [self._promoted(o, truths) for o in operands]

    def _promoted(self, operand: Array, truths: bool) -> Array:
        kind = type(operand)
        if kind is Balls or kind is int:
            return operand
        if kind is bool:
            return operand if truths else Balls(exact(int(operand)))
        if isinstance(operand, Balls):
            return operand
        if kind not in (float, complex) and operand.dtype.kind in ("iu" if not truths else "iub"):
            return operand
        return self.asarray(operand, "float64")

    def quiet(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def tidy(self, array: Array) -> Array:
        """Normalise a result: 0-d arrays of bool and integers become Python numbers."""
        kind = type(array)
        if kind is Balls or kind in PYTHON_NUMBERS or isinstance(array, Balls):
            return array
        return array if array.ndim else array.item()

    def explained(self, _error: Exception) -> GradcliError | None:
        return None


@cache
def _complex_arrays() -> Any:
    # Imported here, because only programs with complex numbers need it.
    return import_module("gradcli.arrays.flint.complex_numbers.flint_complex_arrays")


def _has_complex(array: Any) -> bool:
    """Return whether a NumPy array has complex numbers; those of object arrays are tested one by one."""
    if array.dtype.kind != "O":
        return bool(array.dtype.kind == "c")
    return any(
        type(x) not in _NUMBERS and is_complex(x) for x in array.flat if hasattr(x, "dtype") or type(x) is complex
    )


def _objects(array: Any) -> Any:
    import numpy

    limits.charge_steps(_EXACT * array.size)
    return numpy.frompyfunc(exact, 1, 1)(array)


def _is_float(number: Any) -> bool:
    """Return whether a number is certainly equal to a float, or is infinite or undefined."""
    if type(number) is arb and not (number.is_finite() and number.is_exact()):
        return not number.is_finite()
    return bool(exact(_to_float(number)) == number)


def _function(name: str) -> Callable[..., Any]:
    if name in _COMPLEX_OF_REAL:
        return _complex_arrays().function(name)  # type: ignore[no-any-return]
    spelling = spellings.of(name)
    found = _checked(name)
    if found is not None:
        return _mapped(found, truths=spelling.truths)
    for home in () if spelling.elementwise else _OF_ARRAYS:
        found = getattr(import_module(home), name, None)
        if found is not None:
            return _of_arrays(found)
    raise MissingDigitsError(name, flint_names.MISSING_FUNCTIONS.get(name))


class MissingDigitsError(BackendError, AttributeError):
    """Raised for a function that ball arithmetic does not have."""

    def __init__(self, name: str, lacking: str | None) -> None:
        reason = "" if lacking is None else f": ball arithmetic has no {lacking}"
        super().__init__(
            f"there are no proved digits of '{name}'{reason}", hint="gradcli ops says which functions have digits"
        )


@cache
def _checked(name: str) -> Callable[..., Any] | None:
    """The function of numbers with this name, None if there is none.

    It accepts truth values, which count as 0 and 1 (except in `where`, if both branches are truth values), and its
    results are checked by `checked_result`.
    """
    function = of_numbers(name)
    if function is None:
        return None
    keeps_truths = name == "where"

    def checked(*numbers: Any, **params: Any) -> Any:
        # `where` with truth values in both branches gives a truth value.
        if bool in map(type, numbers) and not (keeps_truths and all(type(n) is bool for n in numbers[1:])):
            numbers = tuple(fmpq(int(n)) if type(n) is bool else n for n in numbers)
        result = function(*numbers, **params)
        # The most frequent kinds of results need no further check.
        if type(result) is bool or (type(result) is arb and result.is_finite()):
            return result
        return checked_result(bounded_height(result), numbers)

    return checked


def _mapped(function: Callable[..., Any], *, truths: bool) -> Callable[..., Any]:
    """Lift a function of numbers to broadcast operands: balls, integers and truth values."""

    def apply(*operands: Any, **params: Any) -> Any:
        numbers, scalar = [], True
        for operand in operands:
            number = _operand(operand)
            scalar = scalar and (type(number) in _NUMBERS or type(number) is bool)
            numbers.append(number)
        if scalar:
            result = function(*numbers, **params)
            return result if type(result) is bool else Balls(result)
        import numpy

        results = numpy.frompyfunc(partial(function, **params), len(numbers), 1)(*numbers)
        return results.astype(bool) if truths else Balls(results)

    return apply


def _operand(operand: Any) -> Any:
    """Convert an operand to what a function of numbers takes: a number, a truth value, or an object array of these."""
    kind = type(operand)
    if kind is Balls:
        return operand.numbers
    if kind is bool:
        return operand
    if kind in PYTHON_NUMBERS or kind in _NUMBERS:
        return exact(operand)
    if operand.ndim == 0:
        item = operand.item()
        return item if type(item) is bool else exact(item)
    return operand if operand.dtype.kind == "b" else _objects(operand)


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Lift a function of object arrays to balls."""

    def apply(*operands: Any, **params: Any) -> Any:
        return _wrapped(function(*map(_unwrapped, operands), **params))

    return apply


def _unwrapped(operand: Any) -> Any:
    """Convert balls and numbers to NumPy arrays for a function of arrays; return other operands unchanged."""
    kind = type(operand)
    if kind in (tuple, list) and any(type(item) is Balls for item in operand):
        return kind(map(_unwrapped, operand))
    if kind is Balls and operand.shape:
        return operand.numbers
    if kind is not Balls and kind not in PYTHON_NUMBERS:
        return operand
    import numpy

    array = numpy.empty((), object if kind is Balls else kind)
    array[()] = operand.numbers if kind is Balls else operand
    return array


def _wrapped(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(map(_wrapped, result))
    if type(result) in _NUMBERS:
        return Balls(result)
    if getattr(getattr(result, "dtype", None), "kind", "") != "O":
        return result
    return Balls(result) if result.ndim else Balls(result.item())


@cache
def _arrays(scalars: type[_Scalars] = _Scalars) -> FlintArrays:
    return FlintArrays(scalars())


def namespace_of(_array: Array) -> FlintArrays:
    return _arrays()


def on_device(device: str) -> FlintArrays:
    """The namespace on `cpu`, the only device of FLINT. Raises BackendError for others."""
    if device != "cpu":
        raise BackendError(f"the backend flint has no device {device!r}", hint="its device is cpu")
    return _arrays()


def version() -> str:
    return str(__version__)


def devices() -> Iterator[Device]:
    from gradcli.arrays.backends import host

    yield host("cpu")
