"""Comparisons, arithmetic, rounding and choices of FLINT numbers, under the names that the namespace looks up.

`gradcli.arrays.flint.flint_numbers` says what a number is. A function with a jump or kink inside a ball returns a ball that
encloses all of its values there; a comparison raises UndecidedError.
"""

from __future__ import annotations

import math

from flint import arb, fmpq, fmpz

from gradcli.arrays import floats
from gradcli.arrays.flint.balls import UNDEFINED, Number, UndecidedError, decided, exact, is_nan
from gradcli.arrays.flint.flint_numbers import (
    ONE,
    ZERO,
    compared,
    hull,
    is_at,
    is_finite,
    is_infinite,
    monotone,
    step_between,
    stepwise,
    with_bounds,
    zero_to,
)

# --- comparisons


def is_zero(x: Number) -> bool:
    """Return whether a number is 0. Raises UndecidedError if the ball does not decide it."""
    return equal(x, ZERO)


def equal(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    # The same ball object denotes the same number, although balls in general may differ.
    return x is y or decided(bool(x == y), bool(x != y), x, "=", y)


def not_equal(x: Number, y: Number) -> bool:
    return not equal(x, y)


def less(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    return decided(bool(x < y), bool(x >= y), x, "<", y)


def less_equal(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    return decided(bool(x <= y), bool(x > y), x, "<=", y)


def greater(x: Number, y: Number) -> bool:
    return less(y, x)


def greater_equal(x: Number, y: Number) -> bool:
    return less_equal(y, x)


def isfinite(x: Number) -> bool:
    return is_finite(x)


def isinf(x: Number) -> bool:
    return is_infinite(x)


def isnan(x: Number) -> bool:
    return is_nan(x)


def logical_and(x: Number, y: Number) -> bool:
    return _truth(x) and _truth(y)


def logical_or(x: Number, y: Number) -> bool:
    return _truth(x) or _truth(y)


def logical_not(x: Number) -> bool:
    return not _truth(x)


def _truth(x: Number) -> bool:
    return x if type(x) is bool else not_equal(x, ZERO)


# --- arithmetic


def add(x: Number, y: Number) -> Number:
    total = x + y
    return total if type(total) is fmpq or total.is_finite() else _of_infinities(floats.add, x, y)


def subtract(x: Number, y: Number) -> Number:
    difference = x - y
    return difference if type(difference) is fmpq or difference.is_finite() else _of_infinities(floats.subtract, x, y)


def multiply(x: Number, y: Number) -> Number:
    if type(x) is type(y) is arb and x is not y:
        # A fast path for the most frequent case.
        product = x * y
        if product.is_finite():
            return product
    if not (is_finite(x) and is_finite(y)):
        return _of_infinities(floats.multiply, x, y)
    if x is y:
        return square(x)
    # FLINT's product with an exact 0 would be a ball, not an exact 0.
    if is_at(x, ZERO) or is_at(y, ZERO):
        return ZERO
    return x * y


def divide(x: Number, y: Number) -> Number:
    if not (is_finite(x) and is_finite(y)) or is_at(y, ZERO):
        return _of_infinities(floats.divide, x, y)
    if is_at(x, ZERO) and compared(y, ZERO):
        return ZERO
    quotient = x / y
    return quotient if type(quotient) is fmpq else with_bounds(quotient)


def _of_infinities(function: object, x: Number, y: Number) -> Number:
    """The IEEE 754 result where an operand is infinite or nan, or a divisor is 0.

    Finite operands matter by their signs only.
    """
    value: float = function(_sign_of(x), _sign_of(y))  # type: ignore[operator]
    return exact(value)


def _sign_of(x: Number) -> float:
    if is_nan(x):
        return math.nan
    sign = float(compared(x, ZERO))
    return sign if is_finite(x) else sign * math.inf


def square(x: Number) -> Number:
    """x*x; the square of a ball around 0 contains no negative numbers."""
    if type(x) is fmpq or not x.contains(0):
        return x * x
    return zero_to(x.abs_upper() ** 2)


def negative(x: Number) -> Number:
    return x if is_nan(x) else -x


def positive(x: Number) -> Number:
    return x


def abs(x: Number) -> Number:
    if is_nan(x) or x >= 0:
        return x
    return -x if x <= 0 else zero_to(x.abs_upper())


def reciprocal(x: Number) -> Number:
    return divide(ONE, x)


def zeros_like(_x: Number) -> Number:
    return ZERO


def ones_like(_x: Number) -> Number:
    return ONE


def one_minus_square(x: Number) -> Number:
    return 1 - square(x) if is_finite(x) else multiply(subtract(ONE, x), add(ONE, x))


# --- steps

floor = stepwise(fmpq.floor)
ceil = stepwise(fmpq.ceil)
trunc = stepwise(fmpq.trunc)


def _nearest(x: fmpq) -> fmpz:
    below = (x + fmpq(1, 2)).floor()
    return below - 1 if below - x == fmpq(1, 2) and below % 2 else below


round = stepwise(_nearest)


def sign(x: Number) -> Number:
    if is_nan(x):
        return x
    try:
        return fmpq(compared(x, ZERO))
    except UndecidedError:
        return step_between(-ONE, ONE)


def heaviside(x: Number, y: Number) -> Number:
    if is_nan(x):
        return x
    try:
        return (ZERO, y, ONE)[compared(x, ZERO) + 1]
    except UndecidedError:
        return step_between(hull(ZERO, ONE), y)


def floor_divide(x: Number, y: Number) -> Number:
    if is_infinite(x) and not is_at(y, ZERO):
        return UNDEFINED
    if is_infinite(y) and is_finite(x):
        return -ONE if compared(x, ZERO) * compared(y, ZERO) < 0 else ZERO
    return floor(divide(x, y))


def remainder(x: Number, y: Number) -> Number:
    return _rest(x, y, floor)


def fmod(x: Number, y: Number) -> Number:
    return _rest(x, y, trunc)


def _rest(x: Number, y: Number, rounded: object) -> Number:
    if is_nan(x) or is_nan(y) or is_infinite(x) or is_at(y, ZERO):
        return UNDEFINED
    if is_infinite(y):
        return y if rounded is floor and compared(x, ZERO) * compared(y, ZERO) < 0 else x
    return x - y * rounded(divide(x, y))  # type: ignore[operator]


# --- choices


def where(condition: bool, x: Number, y: Number) -> Number:
    return x if condition else y


def maximum(x: Number, y: Number) -> Number:
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    return x if x >= y else y if y >= x else arb(x).max(arb(y))


def minimum(x: Number, y: Number) -> Number:
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    return x if x <= y else y if y <= x else arb(x).min(arb(y))


def clip(x: Number, low: Number, high: Number) -> Number:
    return minimum(maximum(x, low), high)


def copysign(x: Number, y: Number) -> Number:
    size = abs(x)
    if is_nan(y):
        return size
    try:
        return -size if compared(y, ZERO) < 0 else size
    except UndecidedError:
        return step_between(-size, size)


def relu(x: Number) -> Number:
    return maximum(x, ZERO)


def leaky_relu(x: Number, slope: Number) -> Number:
    if is_nan(x) or x > 0:
        return x
    if x <= 0:
        return multiply(slope, x)
    return hull(maximum(x, ZERO), multiply(slope, minimum(x, ZERO)))


def softsign(x: Number) -> Number:
    if not is_finite(x):
        return UNDEFINED
    return _softsign(x) if type(x) is fmpq else monotone(x, _softsign)


def _softsign(x: Number) -> Number:
    return x / (1 + abs(x))


def may_differ_from_zero(x: Number) -> bool:
    """Return whether a number is not known to be 0."""
    return type(x) is not fmpq or x != 0
