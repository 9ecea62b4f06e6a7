"""Arithmetic and elementary functions of complex numbers in ball arithmetic, under the names that the namespace looks up.

The operands are complex or real numbers of FLINT, the results `Complex`, or real numbers and truth values where the name
says so. Values on a branch cut are those of C99 and NumPy if the sign of the zero part is known; see `side_of_cut`.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

from flint import arb, fmpq

from gradcli.arrays.flint import flint_elementary as of_reals
from gradcli.arrays.flint import flint_functions as real_functions
from gradcli.arrays.flint.balls import UNDEFINED, Number, UndecidedError, is_interval_evaluation, is_nan
from gradcli.arrays.flint.complex_balls import NOWHERE, Complex, as_complex, finished, of_ball, with_signs
from gradcli.arrays.flint.flint_elementary import cospi as cospi_of_real
from gradcli.arrays.flint.flint_elementary import sinpi as sinpi_of_real
from gradcli.arrays.flint.flint_functions import add as plus
from gradcli.arrays.flint.flint_functions import divide as over
from gradcli.arrays.flint.flint_functions import multiply as times
from gradcli.arrays.flint.flint_functions import subtract as minus
from gradcli.arrays.flint.flint_numbers import HALF, ONE, TWO, ZERO, is_at, is_finite, known_integer
from gradcli.errors import EvaluationError

# Whether a real number is on a branch cut that lies on the real axis; None where that is not decided.
Cut = Callable[[Number], "bool | None"]

# --- branch cuts


def below(end: int) -> Cut:
    """The cut from minus infinity to an integer."""
    return lambda x: True if x < end else False if x > end else None


def above(end: int) -> Cut:
    """The cut from an integer to infinity."""
    return lambda x: True if x > end else False if x < end else None


def outside(x: Number) -> bool | None:
    """The cuts beyond -1 and 1."""
    return True if x < -1 or x > 1 else False if x > -1 and x < 1 else None


def side_of_cut(z: Complex, cut: Cut) -> int:
    """The side of a cut on which a number lies exactly, 1 above and -1 below; 0 where it is certainly off the cut.

    Raises UndecidedError where that is not certain, and EvaluationError on the cut itself if the sign of the zero
    imaginary part is not known.
    """
    if not _may_be_zero(z.imag):
        return 0
    on_cut = cut(z.real)
    if on_cut is False:
        return 0
    if on_cut is None or not on_axis(z) or (not z.imag_sign and is_interval_evaluation()):
        raise UndecidedError("it cannot be told on which side of a branch cut a number is")
    if not z.imag_sign:
        raise EvaluationError(
            "a number is on a branch cut, and the sign of its zero imaginary part is not known",
            hint="add 0j for the value above the cut; its conjugate, as conj(z + 0j), is below",
        )
    return z.imag_sign


def _without_signs(z: Complex) -> Complex:
    """A result of a function that C99 does not have: libraries do not agree on the signs of its zeros."""
    return Complex(*z.parts)


def _on_side(side: int, value: Complex) -> Complex:
    """The value on a side of a cut, from that above, of a function that is real on the real axis off its cuts."""
    return value if side > 0 else value.conjugate()


def _may_be_zero(x: Number) -> bool:
    return bool(x == 0 if type(x) is fmpq else x.contains(0))


def on_axis(z: Complex) -> bool:
    """Return whether a number is certainly real. FLINT's `z.imag != 0` is not the negation of this."""
    return bool(z.imag == 0)


def _is_origin(z: Complex) -> bool:
    return bool(z.real == 0 and z.imag == 0)


# --- parts


def complex(a: Any, b: Any) -> Complex:
    """The number a + i*b. The signs of zeros among real numbers are not known."""
    a, b = as_complex(a).real, as_complex(b).real
    return Complex(a, b) if is_finite(a) and is_finite(b) else NOWHERE


def real_part(z: Any) -> Number:
    return as_complex(z).real


def imaginary_part(z: Any) -> Number:
    return as_complex(z).imag


def conjugate(z: Any) -> Complex:
    return as_complex(z).conjugate()


def abs(z: Any) -> Number:
    z = as_complex(z)
    return of_reals.hypot(z.real, z.imag)


def phase(z: Any) -> Number:
    z = as_complex(z)
    if not z.is_finite():
        return UNDEFINED
    if _is_origin(z):
        # 0 by convention; in floating point, a real part of -0 gives pi.
        return z.imag_sign * arb.pi() if z.real_sign < 0 and z.imag_sign else ZERO
    side = side_of_cut(z, below(0))
    return side * arb.pi() if side else of_reals.atan2(z.imag, z.real)


real, imag, conj, angle = real_part, imaginary_part, conjugate, phase

# --- comparisons


def equal(x: Any, y: Any) -> bool:
    x, y = as_complex(x), as_complex(y)
    if any(bool(a != b) for a, b in zip(x.parts, y.parts) if not is_nan(a) and not is_nan(b)):
        return False
    return all(real_functions.equal(a, b) for a, b in zip(x.parts, y.parts))


def not_equal(x: Any, y: Any) -> bool:
    return not equal(x, y)


def isfinite(z: Any) -> bool:
    return as_complex(z).is_finite()


def isinf(z: Any) -> bool:
    return any(map(real_functions.isinf, as_complex(z).parts))


def isnan(z: Any) -> bool:
    return any(map(is_nan, as_complex(z).parts))


def may_differ_from_zero(z: Any) -> bool:
    """Return whether a number is not known to be 0."""
    return not _is_origin(as_complex(z))


def _truth(x: Any) -> bool:
    return x if type(x) is bool else not_equal(x, ZERO)


def logical_and(x: Any, y: Any) -> bool:
    return _truth(x) and _truth(y)


def logical_or(x: Any, y: Any) -> bool:
    return _truth(x) or _truth(y)


def logical_not(x: Any) -> bool:
    return not _truth(x)


def where(condition: bool, x: Any, y: Any) -> Any:
    return x if condition else y


# --- arithmetic


def add(x: Any, y: Any) -> Complex:
    x, y = as_complex(x), as_complex(y)
    return with_signs(Complex(plus(x.real, y.real), plus(x.imag, y.imag)), operator.add, x, y)


def subtract(x: Any, y: Any) -> Complex:
    x, y = as_complex(x), as_complex(y)
    return with_signs(Complex(minus(x.real, y.real), minus(x.imag, y.imag)), operator.sub, x, y)


def multiply(x: Any, y: Any) -> Complex:
    same = x is y
    x, y = as_complex(x), as_complex(y)
    if not (x.is_finite() and y.is_finite()):
        return NOWHERE
    if same:
        found = Complex(minus(times(x.real, x.real), times(x.imag, x.imag)), times(TWO, times(x.real, x.imag)))
    else:
        found = Complex(
            minus(times(x.real, y.real), times(x.imag, y.imag)), plus(times(x.real, y.imag), times(x.imag, y.real))
        )
    return with_signs(found, operator.mul, x, y)


def divide(x: Any, y: Any) -> Complex:
    x, y = as_complex(x), as_complex(y)
    if not (x.is_finite() and y.is_finite()) or _is_origin(y):
        return NOWHERE
    size = plus(real_functions.square(y.real), real_functions.square(y.imag))
    found = multiply(x, y.conjugate())
    return with_signs(Complex(over(found.real, size), over(found.imag, size)), operator.truediv, x, y)


def reciprocal(z: Any) -> Complex:
    return divide(ONE, z)


def _inverse(z: Any) -> Complex:
    """1/z as the operand of an inverse function, with the signs of zeros that NumPy's `reciprocal` gives, not a quotient."""
    z = as_complex(z)
    return with_signs(divide(ONE, z), _reciprocal_of_float, z)


def _reciprocal_of_float(z: Any) -> Any:
    if math.fabs(z.real) >= math.fabs(z.imag):
        ratio = z.imag / z.real
        size = z.real + z.imag * ratio
        return builtins.complex(1.0 / size, -ratio / size)
    ratio = z.real / z.imag
    size = z.real * ratio + z.imag
    return builtins.complex(ratio / size, -1.0 / size)


def negative(z: Any) -> Complex:
    return as_complex(z).negative()


def positive(z: Any) -> Complex:
    return as_complex(z)


identity = positive


def cast(z: Any, *, dtype: str) -> Complex:
    """z in another complex dtype, which are one here."""
    if not dtype.startswith("complex"):
        raise EvaluationError("a complex number is cast to no real dtype", hint="real(z) is the real part")
    return as_complex(z)


def zeros_like(_z: Any) -> Complex:
    return Complex(ZERO, ZERO, 1, 1)


def ones_like(_z: Any) -> Complex:
    return Complex(ONE, ZERO, 1, 1)


def square(z: Any) -> Complex:
    return multiply(z, z)


def softsign(z: Any) -> Complex:
    return _without_signs(divide(z, plus(ONE, abs(z))))


def one_minus_square(z: Any) -> Complex:
    return _without_signs(subtract(ONE, square(z)))


def over_one_plus_square(z: Any) -> Complex:
    return _without_signs(divide(ONE, add(ONE, square(z))))


# --- powers


def whole_power(z: Any, *, n: float) -> Complex:
    """z to the power of an integer."""
    found = _whole_power(as_complex(z), int(n))
    return found if n in (1, 2) else _without_signs(found)


def _whole_power(z: Complex, n: int) -> Complex:
    if n <= 0:
        return divide(ONE, _whole_power(z, -n)) if n else ones_like(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z) and n > 2:
        return Complex(of_reals.whole_power(z.real, n=n), ZERO)
    result = None
    while True:
        if n % 2:
            result = z if result is None else multiply(result, z)
        n //= 2
        if not n:
            return result  # type: ignore[return-value]
        z = finished(multiply(z, z))


def pow(x: Any, q: Any) -> Complex:
    x, q = as_complex(x), as_complex(q)
    if q.imag == 0 and q.real == 0:
        return ones_like(x)
    if not (x.is_finite() and q.is_finite()):
        return NOWHERE
    if _is_origin(x):
        return zeros_like(x) if real_functions.greater(q.real, ZERO) else NOWHERE
    if q.imag == 0:
        n = known_integer(q.real)
        if n is not None:
            return whole_power(x, n=n)
        if on_axis(x):
            return _power_of_real(x, q.real)
        if is_at(q.real, HALF):
            return sqrt(x)
    return _without_signs(exp(multiply(q, log(x))))


def _power_of_real(x: Complex, q: Number) -> Complex:
    """A real power of a number on the real axis, other than 0."""
    side = side_of_cut(x, below(0))
    size = of_reals.pow(real_functions.abs(x.real), q)
    if not side:
        return Complex(size, ZERO)
    return _on_side(side, Complex(times(size, cospi_of_real(q)), times(size, sinpi_of_real(q))))


def sqrt(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if _is_origin(z):
        return Complex(ZERO, ZERO, 1, z.imag_sign)
    side = side_of_cut(z, below(0))
    if side:
        return _on_side(side, Complex(ZERO, of_reals.sqrt(-z.real), 1))
    if on_axis(z):
        return Complex(of_reals.sqrt(z.real), ZERO, 0, z.imag_sign)
    if type(z.real) is type(z.imag) is fmpq:
        size = of_reals.hypot(z.real, z.imag)
        if type(size) is fmpq:
            # Both parts of the root may be fractions, as of 3+4j.
            imag = of_reals.sqrt((size - z.real) / 2)
            return Complex(of_reals.sqrt((size + z.real) / 2), imag if z.imag > 0 else -imag)
    return of_ball(z.ball().sqrt())


def rsqrt(z: Any) -> Complex:
    return _without_signs(divide(ONE, sqrt(z)))


# --- exponentials and logarithms


def exp(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    size = of_reals.exp(z.real)
    return Complex(times(size, of_reals.cos(z.imag)), times(size, of_reals.sin(z.imag)), 0, z.imag_sign)


def exp2(z: Any) -> Complex:
    return _without_signs(exp(multiply(z, of_reals.log(TWO))))


def expm1(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z):
        return Complex(of_reals.expm1(z.real), ZERO, 0, z.imag_sign)
    return of_ball(z.ball().expm1())


def sigmoid(z: Any) -> Complex:
    z = as_complex(z)
    if z.is_finite() and on_axis(z):
        return Complex(of_reals.sigmoid(z.real), ZERO)
    return _without_signs(divide(ONE, add(ONE, exp(negative(z)))))


def log(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite() or _is_origin(z):
        return NOWHERE
    side = side_of_cut(z, below(0))
    if side:
        return _on_side(side, Complex(of_reals.log(-z.real), arb.pi()))
    if on_axis(z):
        return Complex(of_reals.log(z.real), ZERO, 0, z.imag_sign)
    size = times(HALF, of_reals.log(plus(real_functions.square(z.real), real_functions.square(z.imag))))
    return Complex(size, of_reals.atan2(z.imag, z.real))


def logaddexp(x: Any, y: Any) -> Complex:
    x, y = as_complex(x), as_complex(y)
    if x.is_finite() and y.is_finite() and on_axis(x) and on_axis(y):
        return Complex(of_reals.logaddexp(x.real, y.real), ZERO)
    return _without_signs(log(add(exp(x), exp(y))))


def softplus(z: Any) -> Complex:
    return logaddexp(ZERO, z)


def logsigmoid(z: Any) -> Complex:
    return negative(softplus(negative(z)))


def xlogy(x: Any, y: Any) -> Complex:
    return zeros_like(x) if _is_origin(as_complex(x)) and as_complex(y).is_finite() else multiply(x, log(y))


def xlog1py(x: Any, y: Any) -> Complex:
    return zeros_like(x) if _is_origin(as_complex(x)) and as_complex(y).is_finite() else multiply(x, log1p(y))


def log2(z: Any) -> Complex:
    return _other_logarithm(z, of_reals.log2, TWO)


def log10(z: Any) -> Complex:
    return _other_logarithm(z, of_reals.log10, fmpq(10))


def _other_logarithm(z: Any, of_real: Callable[[Number], Number], base: fmpq) -> Complex:
    z = as_complex(z)
    if z.is_finite() and on_axis(z) and z.real > 0:
        return Complex(of_real(z.real), ZERO, 0, z.imag_sign)
    return divide(log(z), of_reals.log(base))


def log1p(z: Any) -> Complex:
    z = as_complex(z)
    if z.is_finite() and on_axis(z) and z.real > -1:
        return Complex(of_reals.log1p(z.real), ZERO, 0, z.imag_sign)
    # The sum with a complex 1 would lose the sign of a zero imaginary part.
    return log(Complex(plus(ONE, z.real), z.imag, 0, z.imag_sign))


# --- trigonometric and hyperbolic functions


def sin(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    real = times(of_reals.sin(z.real), of_reals.cosh(z.imag))
    return Complex(real, times(of_reals.cos(z.real), of_reals.sinh(z.imag)), z.real_sign)


def cos(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    real = times(of_reals.cos(z.real), of_reals.cosh(z.imag))
    return Complex(real, -times(of_reals.sin(z.real), of_reals.sinh(z.imag)))


def sinpi(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    turn = times(arb.pi(), z.imag)
    real = times(sinpi_of_real(z.real), of_reals.cosh(turn))
    return Complex(real, times(cospi_of_real(z.real), of_reals.sinh(turn)))


def cospi(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    turn = times(arb.pi(), z.imag)
    real = times(cospi_of_real(z.real), of_reals.cosh(turn))
    return Complex(real, -times(sinpi_of_real(z.real), of_reals.sinh(turn)))


def sinh(z: Any) -> Complex:
    z = as_complex(z)
    return _turned_back(sin(z.times_i()))


def cosh(z: Any) -> Complex:
    return cos(as_complex(z).times_i()) if as_complex(z).is_finite() else NOWHERE


def _turned_back(z: Complex) -> Complex:
    """z/i"""
    return z.times_i().negative()


def tan(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z):
        return Complex(of_reals.tan(z.real), ZERO, 0, z.imag_sign)
    if z.real == 0:
        return Complex(ZERO, of_reals.tanh(z.imag), z.real_sign)
    return of_ball(z.ball().tan())


def tanh(z: Any) -> Complex:
    z = as_complex(z)
    return _turned_back(tan(z.times_i())) if z.is_finite() else NOWHERE


def tanhshrink(z: Any) -> Complex:
    return _without_signs(subtract(z, tanh(z)))


def sech(z: Any) -> Complex:
    return _without_signs(divide(ONE, cosh(z)))


def csch(z: Any) -> Complex:
    return _without_signs(divide(ONE, sinh(z)))


def coth(z: Any) -> Complex:
    return _without_signs(divide(ONE, tanh(z)))


def sech_square(z: Any) -> Complex:
    return _without_signs(square(sech(z)))


# --- their inverses


def asin(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z) and (is_at(z.real, ONE) or is_at(z.real, -ONE)):
        return Complex(of_reals.asin(z.real), ZERO, 0, z.imag_sign)
    side = side_of_cut(z, outside)
    if side:
        right = z.real > 0
        size = of_reals.acosh(real_functions.abs(z.real))
        return _on_side(side, Complex(arb.pi() / 2 if right else -arb.pi() / 2, size))
    if on_axis(z):
        return Complex(of_reals.asin(z.real), ZERO, z.real_sign, z.imag_sign)
    if z.real == 0:
        return Complex(ZERO, of_reals.asinh(z.imag), z.real_sign)
    return of_ball(z.ball().asin())


def acos(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z) and (is_at(z.real, ONE) or is_at(z.real, -ONE)):
        return Complex(of_reals.acos(z.real), ZERO, 1, -z.imag_sign)
    side = side_of_cut(z, outside)
    if side:
        size = of_reals.acosh(real_functions.abs(z.real))
        return _on_side(side, Complex(ZERO, -size, 1) if z.real > 0 else Complex(arb.pi(), -size))
    if on_axis(z):
        return Complex(of_reals.acos(z.real), ZERO, 0, -z.imag_sign)
    if z.real == 0:
        return Complex(arb.pi() / 2, -of_reals.asinh(z.imag))
    return of_ball(z.ball().acos())


def acosh(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if on_axis(z):
        if is_at(z.real, ONE):
            return Complex(ZERO, ZERO, 1, z.imag_sign)
        side = side_of_cut(z, below(1))
        if not side:
            return Complex(of_reals.acosh(z.real), ZERO, 0, z.imag_sign)
        if z.real < -1:
            return _on_side(side, Complex(of_reals.acosh(-z.real), arb.pi()))
        if z.real >= -1:
            return _on_side(side, Complex(ZERO, of_reals.acos(z.real), 1))
        raise UndecidedError("two numbers cannot be told apart")
    side_of_cut(z, below(1))
    return of_ball(z.ball().acosh())


def atanh(z: Any) -> Complex:
    z = as_complex(z)
    if not z.is_finite() or (on_axis(z) and (is_at(z.real, ONE) or is_at(z.real, -ONE))):
        return NOWHERE
    side = side_of_cut(z, outside)
    if side:
        return _on_side(side, Complex(of_reals.atanh(over(ONE, z.real)), arb.pi() / 2))
    if on_axis(z):
        return Complex(of_reals.atanh(z.real), ZERO, z.real_sign, z.imag_sign)
    if z.real == 0:
        return Complex(ZERO, of_reals.atan(z.imag), z.real_sign)
    turned = z.times_i().ball()
    return _turned_back(of_ball(turned.atan()))


def asinh(z: Any) -> Complex:
    return _turned_back(asin(as_complex(z).times_i())) if as_complex(z).is_finite() else NOWHERE


def atan(z: Any) -> Complex:
    return _turned_back(atanh(as_complex(z).times_i())) if as_complex(z).is_finite() else NOWHERE


def acot(z: Any) -> Complex:
    return atan(_inverse(z))


def asec(z: Any) -> Complex:
    return acos(_inverse(z))


def acsc(z: Any) -> Complex:
    return asin(_inverse(z))


def acoth(z: Any) -> Complex:
    return atanh(_inverse(z))


def asech(z: Any) -> Complex:
    return acosh(_inverse(z))


def acsch(z: Any) -> Complex:
    return asinh(_inverse(z))


# --- limits


def taylor_series(_z: Any, *, series: Any, n: int) -> Complex:
    """The limit of the nth derivative of a function at a removable point, which is the operand."""
    return as_complex(series.terms(n)[0])
