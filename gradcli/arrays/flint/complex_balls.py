"""Complex numbers with proved digits, and arrays of them: pairs of the real numbers of `gradcli.arrays.flint.balls`.

Parts that are fractions stay fractions. Ball arithmetic has no signed zeros, but the side of a branch cut on which a
number lies follows from the sign of a zero part, as in C99 and NumPy. A complex number therefore keeps the signs of its
zero parts as far as they are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

from flint import acb, arb, fmpq

from gradcli.arrays import backends
from gradcli.arrays.flint.balls import (
    UNDEFINED,
    Balls,
    Number,
    UndecidedError,
    bounded_height,
    exact,
    is_exact,
    real_number_needed,
    stands_for_others,
    to_float,
)

ZERO = fmpq(0)


class Complex:
    """The number `real` + i*`imag`.

    `real_sign` and `imag_sign` are the signs, 1 or -1, of parts that are exactly 0; 0 where they are not known, and for
    other parts.
    """

    __slots__ = ("imag", "imag_sign", "real", "real_sign")

    def __init__(self, real: Number, imag: Number, real_sign: int = 0, imag_sign: int = 0) -> None:
        self.real, self.imag = _plain_zero(real), _plain_zero(imag)
        self.real_sign = real_sign if _is_zero(self.real) else 0
        self.imag_sign = imag_sign if _is_zero(self.imag) else 0

    @property
    def parts(self) -> tuple[Number, Number]:
        return self.real, self.imag

    def is_finite(self) -> bool:
        return all(type(part) is fmpq or part.is_finite() for part in self.parts)

    def is_exact(self) -> bool:
        return all(map(is_exact, self.parts))

    def conjugate(self) -> Complex:
        return Complex(self.real, self.imag if _is_nan(self.imag) else -self.imag, self.real_sign, -self.imag_sign)

    def negative(self) -> Complex:
        real, imag = (x if _is_nan(x) else -x for x in self.parts)
        return Complex(real, imag, -self.real_sign, -self.imag_sign)

    def times_i(self) -> Complex:
        return Complex(-self.imag, self.real, -self.imag_sign, self.real_sign)

    def ball(self) -> Any:
        """The number as a complex ball of FLINT."""
        return acb(arb(self.real), arb(self.imag))

    def __repr__(self) -> str:
        return f"Complex({self.real!r}, {self.imag!r})"

    def _refuse(self, *_others: Any) -> Any:
        """Raise EvaluationError: computations with real numbers of FLINT meet a complex one."""
        raise real_number_needed()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __neg__ = __float__ = _refuse


def _plain_zero(x: Number) -> Number:
    return ZERO if type(x) is arb and x.is_zero() else x


def _is_zero(x: Number) -> bool:
    return type(x) is fmpq and x == 0


def _is_nan(x: Number) -> bool:
    return type(x) is arb and x.is_nan()


NOWHERE = Complex(UNDEFINED, UNDEFINED)


def as_complex(value: Any) -> Complex:
    """A number of Python, NumPy or FLINT as a complex number, without rounding.

    A real one has the imaginary part +0, as in NumPy.
    """
    if type(value) is Complex:
        return value
    if isinstance(value, Balls):
        return as_complex(value.item())
    if isinstance(value, complex):
        real, imag = value.real, value.imag
        return Complex(exact(real), exact(imag), int(math.copysign(1.0, real)), int(math.copysign(1.0, imag)))
    return Complex(exact(value), ZERO, 0, 1)


def of_ball(value: Any) -> Complex:
    """A complex ball of FLINT, which must have bounds. Raises UndecidedError otherwise."""
    if not value.is_finite():
        raise UndecidedError("it cannot be told whether a number is finite")
    return Complex(value.real, value.imag)


def finished(z: Complex) -> Complex:
    """Convert parts that are too long fractions to balls. Raises UndecidedError for parts without bounds.

    A number with a part that is not finite is `NOWHERE`: infinities of complex numbers have no value here.
    """
    for part in z.parts:
        if type(part) is not fmpq and not part.is_finite():
            if part.is_nan() or is_exact(part):
                return NOWHERE
            raise UndecidedError("it cannot be told whether a number is finite")
    return Complex(bounded_height(z.real), bounded_height(z.imag), z.real_sign, z.imag_sign)


# --- signs of zeros


def with_signs(result: Complex, operation: Callable[..., complex], *operands: Complex) -> Complex:
    """A result of an arithmetic operation with the signs that its zero parts have in floating point.

    They are known where floating-point numbers next to the operands give them, whichever sign the zeros among the
    operands have of which it is not known.
    """
    if not any(map(_is_zero, result.parts)):
        return result
    signs = {(_zero_sign(found.real), _zero_sign(found.imag)) for found in _float_results(operation, operands)}
    reals, imags = {real for real, _ in signs}, {imag for _, imag in signs}
    return Complex(*result.parts, *(found.pop() if len(found) == 1 else 0 for found in (reals, imags)))


def _zero_sign(x: float) -> int:
    """The sign of a zero; 0 for a number that rounding has left where there should be a zero."""
    return int(math.copysign(1.0, x)) if x == 0.0 else 0


def _float_results(operation: Callable[..., complex], operands: tuple[Complex, ...]) -> Iterator[complex]:
    parts = [_floats_of(part, sign) for z in operands for part, sign in zip(z.parts, (z.real_sign, z.imag_sign))]
    for chosen in product(*parts):
        try:
            yield operation(*(complex(*pair) for pair in zip(chosen[::2], chosen[1::2])))
        except ArithmeticError:
            yield complex(math.nan, math.nan)


def _floats_of(x: Number, sign: int) -> tuple[float, ...]:
    """Floats that stand for a number: both zeros for one with a sign that is not known."""
    if _is_zero(x):
        return (0.0 * sign,) if sign else (0.0, -0.0)
    if type(x) is not fmpq and x.contains(0):
        return (1.0, -1.0)
    found = float(x.mid()) if stands_for_others(x) else to_float(x)
    if found and math.isfinite(found):
        return (found,)
    return (1.0,) if x > 0 else (-1.0,)


# --- arrays


class _ComplexDtype:
    """The dtype of all arrays of complex balls, which take the place of double-precision numbers."""

    name = "complex128"

    def __repr__(self) -> str:
        return self.name


@cache
def _each_complex() -> Any:
    import numpy

    each = numpy.frompyfunc(as_complex, 1, 1)
    return lambda numbers: numpy.asarray(each(numbers), object)


@cache
def _namespace() -> Any:
    namespace: Any = backends.namespace("flint")
    return namespace.of_complex_numbers()


class ComplexBalls(Balls):
    """An array of complex numbers: `numbers` is one `Complex` for zero dimensions, else an object array of them."""

    __slots__ = ()
    dtype: Any = _ComplexDtype()

    def __init__(self, numbers: Any) -> None:
        super().__init__(_each_complex()(numbers) if hasattr(numbers, "shape") else as_complex(numbers))

    def __getitem__(self, key: Any) -> Any:
        return _namespace().index(self, key if type(key) is tuple else (key,))

    @property
    def real(self) -> Balls:
        return _namespace().real(self)  # type: ignore[no-any-return]

    @property
    def imag(self) -> Balls:
        return _namespace().imag(self)  # type: ignore[no-any-return]

    def as_integer_ratio(self) -> tuple[int, int]:
        """Raises ValueError: a complex number is not a fraction."""
        raise ValueError("a complex number is no fraction")

    def __bool__(self) -> bool:
        return bool(_namespace().not_equal(self, 0.0))

    def __float__(self) -> float:
        """Raises EvaluationError: a complex number is not a float."""
        raise real_number_needed()

    def __complex__(self) -> complex:
        number = as_complex(self.item())
        return complex(to_float(number.real), to_float(number.imag))
