"""Elementary functions of FLINT numbers, under the names that the namespace looks up; see `flint_numbers`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flint import acb, arb, ctx, fmpq

from gradcli.arrays.flint.balls import (
    INFINITY,
    NEGATIVE_INFINITY,
    UNDEFINED,
    Number,
    UndecidedError,
    is_nan,
    record_discontinuity,
)
from gradcli.arrays.flint.flint_functions import abs as absolute
from gradcli.arrays.flint.flint_functions import add, divide, maximum, minimum, multiply, square
from gradcli.arrays.flint.flint_numbers import (
    HALF,
    ONE,
    TWO,
    ZERO,
    analytic,
    at_infinity,
    compared,
    hull,
    is_at,
    is_finite,
    is_infinite,
    known_integer,
    monotone,
    root,
    with_bounds,
    zero_to,
)

# --- exponentials and logarithms

exp = analytic(arb.exp, zero=ONE, below=ZERO, above=INFINITY)
expm1 = analytic(arb.expm1, zero=ZERO, below=-ONE, above=INFINITY)
sigmoid = analytic(lambda x: 1 / (1 + (-x).exp()), zero=HALF, below=ZERO, above=ONE)
logsigmoid = analytic(lambda x: -(-x).exp().log1p(), below=NEGATIVE_INFINITY, above=ZERO)
softplus = analytic(lambda x: x.exp().log1p(), below=ZERO, above=INFINITY)


def exp2(x: Number) -> Number:
    return pow(TWO, x)


def _logarithm(compute: Callable[[Any], Any], pole: fmpq, exactly: Callable[[fmpq], int | None]) -> Any:
    def logarithm(x: Number) -> Number:
        if is_nan(x):
            return x
        side = compared(x, pole)
        if side <= 0:
            return UNDEFINED if side else NEGATIVE_INFINITY
        if type(x) is fmpq:
            known = exactly(x)
            return with_bounds(compute(arb(x))) if known is None else fmpq(known)
        return INFINITY if is_infinite(x) else with_bounds(compute(x))

    return logarithm


def _zero_at(point: fmpq) -> Callable[[fmpq], int | None]:
    return lambda x: 0 if x == point else None


def _power_of(base: int) -> Callable[[fmpq], int | None]:
    """A function that returns the integer n with base**n = x for a fraction x, or None if there is none."""

    def exactly(x: fmpq) -> int | None:
        number = x if x.q == 1 else 1 / x
        n = known_integer(number)
        if n is None:
            return None
        power = round(n.bit_length() / math.log2(base)) if base > 2 else n.bit_length() - 1
        found = next((p for p in (power - 1, power) if p >= 0 and base**p == n), None)
        return found if found is None or number is x else -found

    return exactly


log = _logarithm(arb.log, ZERO, _zero_at(ONE))
log1p = _logarithm(arb.log1p, -ONE, _zero_at(ZERO))
log2 = _logarithm(lambda x: x.log() / arb.const_log2(), ZERO, _power_of(2))
log10 = _logarithm(lambda x: x.log() / arb.const_log10(), ZERO, _power_of(10))


def logaddexp(x: Number, y: Number) -> Number:
    return _log_of_sum(x, y, lambda d: (-d).exp().log1p())


def logaddexp2(x: Number, y: Number) -> Number:
    if type(x) is fmpq and x == y:
        return x + 1
    return _log_of_sum(x, y, lambda d: (-d * arb.const_log2()).exp().log1p() / arb.const_log2())


def _log_of_sum(x: Number, y: Number, rise: Callable[[Any], Any]) -> Number:
    """The larger number plus `rise` of the distance between both; used for logaddexp and logaddexp2."""
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    if is_infinite(x) or is_infinite(y):
        return maximum(x, y)
    return with_bounds(maximum(x, y) + rise(arb(absolute(x - y))))


def xlogy(x: Number, y: Number) -> Number:
    return ZERO if is_at(x, ZERO) and not is_nan(y) else multiply(x, log(y))


def xlog1py(x: Number, y: Number) -> Number:
    return ZERO if is_at(x, ZERO) and not is_nan(y) else multiply(x, log1p(y))


def logcosh(x: Number) -> Number:
    return _logcosh(absolute(x))


_logcosh = analytic(lambda x: x.cosh().log(), zero=ZERO, above=INFINITY)

# --- powers


def whole_power(x: Number, *, n: float) -> Number:
    """x to the power of an integer."""
    return _whole_power(x, int(n))


def _whole_power(x: Number, n: int) -> Number:
    if n <= 0:
        return divide(ONE, _whole_power(x, -n)) if n else ONE
    if type(x) is fmpq:
        # The height of an exact power must stay bounded.
        if x.height_bits() * n <= 8 * ctx.prec:
            return x**n
        x = arb(x)
    if not x.is_finite():
        return at_infinity(x, NEGATIVE_INFINITY if n % 2 else INFINITY, INFINITY)
    if not x.contains(0):
        return with_bounds(_by_squaring(x, n))
    if x.is_zero():
        return ZERO
    if n % 2:
        return monotone(x, lambda end: with_bounds(_by_squaring(end, n)))
    return zero_to(with_bounds(_by_squaring(x.abs_upper(), n)))


def _by_squaring(x: Number, n: int) -> Number:
    """x**n by repeated squaring, because FLINT computes the power of a ball by its logarithm."""
    result = None
    while True:
        if n % 2:
            result = x if result is None else result * x
        n //= 2
        if not n:
            return result
        x = x * x


def pow(x: Number, q: Number) -> Number:
    if is_at(q, ZERO) or is_at(x, ONE):
        return ONE
    if is_nan(x) or is_nan(q):
        return UNDEFINED
    if type(q) is fmpq and q.q == 1:
        return _whole_power(x, int(q.p))
    if is_infinite(q):
        side = compared(absolute(x), ONE)
        return ONE if side == 0 else INFINITY if (side > 0) == (q > 0) else ZERO
    if is_infinite(x):
        return INFINITY if compared(q, ZERO) > 0 else ZERO
    if type(x) is arb and q > 0 and x.contains(0) and x.lower() >= 0 and not x.is_zero():
        return zero_to(pow(x.upper(), q))
    side = compared(x, ZERO)
    if side == 0:
        return ZERO if compared(q, ZERO) > 0 else INFINITY
    if side < 0:
        if type(q) is fmpq or not q.contains_integer():
            return UNDEFINED
        raise UndecidedError("it cannot be told whether an exponent is whole")
    if type(q) is fmpq and q.q <= ctx.prec:
        if type(x) is fmpq:
            exactly = root(x, int(q.q))
            if exactly is not None:
                return _whole_power(exactly, int(q.p))
        if q.q <= 3:
            return _whole_power(arb(x).root(int(q.q)), int(q.p))
    return with_bounds((arb(x).log() * q).exp())


def sqrt(x: Number) -> Number:
    if is_nan(x) or x < 0:
        return UNDEFINED
    if type(x) is fmpq:
        exactly = root(x, 2)
        return arb(x).sqrt() if exactly is None else exactly
    return INFINITY if is_infinite(x) else with_bounds(x.sqrt())


def rsqrt(x: Number) -> Number:
    return divide(ONE, sqrt(x))


def flat_root(x: Number, *, n: float) -> Number:
    """x**(1/n), but 0 at 0, where its derivative is taken as 0 too."""
    return ZERO if is_at(x, ZERO) else pow(x, 1 / fmpq(*n.as_integer_ratio()))


def cbrt(x: Number) -> Number:
    if type(x) is fmpq:
        exactly = root(x.__abs__(), 3)
        if exactly is not None:
            return exactly if x >= 0 else -exactly
    elif not x.is_finite():
        return at_infinity(x, NEGATIVE_INFINITY, INFINITY)
    elif x.contains(0):
        # FLINT's cube root of 0 is nan.
        return ZERO if x.is_zero() else monotone(x, cbrt)
    return arb(x).root(3) if x >= 0 else -arb(-x).root(3)


def over_one_plus_square(x: Number) -> Number:
    """1/(1 + x**2)."""
    return divide(ONE, add(ONE, multiply(x, x)))


# --- trigonometric functions

sin = analytic(arb.sin, zero=ZERO)
cos = analytic(arb.cos, zero=ONE)
tan = analytic(arb.tan, zero=ZERO)
atan = analytic(arb.atan, zero=ZERO, below=lambda: -arb.pi() / 2, above=lambda: arb.pi() / 2)


def _inverse_of_circular(compute: Callable[[Any], Any], known: fmpq) -> Any:
    """A function on [-1, 1] that is 0 at the point `known`."""

    def function(x: Number) -> Number:
        if is_nan(x) or x > 1 or x < -1:
            return UNDEFINED
        if type(x) is arb and not x.is_exact() and x.lower() >= -1 and x.upper() <= 1:
            # The slope is infinite at the ends, so a ball that reaches one is evaluated by monotonicity.
            return monotone(x, lambda end: with_bounds(compute(end)))
        return ZERO if is_at(x, known) else with_bounds(compute(arb(x)))

    return function


asin = _inverse_of_circular(arb.asin, ZERO)
acos = _inverse_of_circular(arb.acos, ONE)

# The rational values of sin(pi*x), by 6*x modulo 12; by Niven's theorem there are no others at rational x.
_RATIONAL_SINES = {0: ZERO, 1: HALF, 3: ONE, 5: HALF, 6: ZERO, 7: -HALF, 9: -ONE, 11: -HALF}


def sinpi(x: Number) -> Number:
    if type(x) is fmpq:
        turns = x - 2 * (x / 2).floor()
        sixths = known_integer(6 * turns)
        found = None if sixths is None else _RATIONAL_SINES.get(sixths)
        return arb.sin_pi_fmpq(turns) if found is None else found
    return with_bounds(x.sin_pi()) if x.is_finite() else UNDEFINED


def cospi(x: Number) -> Number:
    if type(x) is fmpq:
        return sinpi(x + HALF)
    return with_bounds(x.cos_pi()) if x.is_finite() else UNDEFINED


def atan2(y: Number, x: Number) -> Number:
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    if is_infinite(x) or is_infinite(y):
        eighths = math.atan2(_direction(y), _direction(x)) / math.pi * 4
        return arb.pi() * round(eighths) / 4 if round(eighths) else ZERO
    if is_at(y, ZERO) and x >= 0:
        return ZERO
    if not (x > 0 or y > 0 or y < 0):
        record_discontinuity()
    return with_bounds(arb.atan2(arb(y), arb(x)))


def _direction(x: Number) -> float:
    """0 or an infinity, with the sign of a number."""
    return math.copysign(math.inf if is_infinite(x) else 0.0, compared(x, ZERO))


def hypot(x: Number, y: Number) -> Number:
    if is_infinite(x) or is_infinite(y):
        return INFINITY
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    total = square(x) + square(y)
    if type(total) is fmpq or not total.contains(0):
        return sqrt(total)
    return zero_to(total.abs_upper().sqrt())


def sinc(x: Number, *, n: int) -> Number:
    """The nth derivative of sin(pi*x)/(pi*x).

    It is the integral of (pi*t)**n*cos(pi*t*x + n*pi/2) over 0 < t < 1.
    """
    if not is_finite(x):
        return UNDEFINED
    if n == 0 and type(x) is fmpq and x.q == 1:
        return ZERO if x else ONE
    if is_at(x, ZERO) and n % 2:
        return ZERO
    scale = arb.pi() ** n / (n + 1)
    value = acb(0, arb.pi() * arb(x)).hypgeom_1f1(n + 1, n + 2) * acb(0, 1) ** n
    return with_bounds(scale * value.real)


# --- hyperbolic functions

sinh = analytic(arb.sinh, zero=ZERO, below=NEGATIVE_INFINITY, above=INFINITY)
cosh = analytic(arb.cosh, zero=ONE, below=INFINITY, above=INFINITY)
tanh = analytic(arb.tanh, zero=ZERO, below=-ONE, above=ONE)
sech = analytic(arb.sech, zero=ONE, below=ZERO, above=ZERO)
sech_square = analytic(lambda x: square(x.sech()), zero=ONE, below=ZERO, above=ZERO)
asinh = analytic(arb.asinh, zero=ZERO, below=NEGATIVE_INFINITY, above=INFINITY)
tanhshrink = analytic(lambda x: x - x.tanh(), zero=ZERO, below=NEGATIVE_INFINITY, above=INFINITY)


def csch(x: Number) -> Number:
    return divide(ONE, sinh(x))


def coth(x: Number) -> Number:
    return INFINITY if is_at(x, ZERO) else _coth(x)


_coth = analytic(arb.coth, below=-ONE, above=ONE)


def acosh(x: Number) -> Number:
    if is_nan(x) or x < 1:
        return UNDEFINED
    if is_at(x, ONE):
        return ZERO
    if type(x) is arb and x.contains(1) and x.lower() >= 1:
        return zero_to(x.upper().acosh())
    return INFINITY if is_infinite(x) else with_bounds(arb(x).acosh())


def atanh(x: Number) -> Number:
    if is_nan(x) or x > 1 or x < -1:
        return UNDEFINED
    if is_at(x, ONE) or is_at(x, -ONE):
        return INFINITY if x > 0 else NEGATIVE_INFINITY
    return ZERO if is_at(x, ZERO) else with_bounds(arb(x).atanh())


def elu(x: Number, alpha: Number) -> Number:
    if is_nan(x) or x > 0:
        return x
    left = multiply(alpha, expm1(minimum(x, ZERO)))
    return left if x <= 0 else hull(maximum(x, ZERO), left)
