"""Functions of numbers of flint, element by element, by the names that the namespace is asked for.

Each takes numbers (fmpq or arb; truth values where its operands are such) and gives a number, or a truth value. What
is rational and easily seen to be so is exact, anything else a ball that holds the value for all numbers in the
operands. A comparison that is not `decided` raises UndecidedError, and so does the namespace for a result without
bounds of operands that are balls: only for exact operands, or those that are certainly beyond the domain, a function
gives UNDEFINED, INFINITY or NEGATIVE_INFINITY, those very objects.
"""

from __future__ import annotations

from flint import arb, fmpq

from gradcli.arrays.balls import INFINITY, NEGATIVE_INFINITY, UNDEFINED, Number, decided, is_nan

_ZERO, _ONE = fmpq(0), fmpq(1)


def is_zero(x: Number) -> bool:
    """Whether a number is 0. Raises UndecidedError where that is open."""
    return equal(x, _ZERO)


def equal(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    return decided(bool(x == y), bool(x != y))


def not_equal(x: Number, y: Number) -> bool:
    return not equal(x, y)


def less(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    return decided(bool(x < y), bool(x >= y))


def less_equal(x: Number, y: Number) -> bool:
    if is_nan(x) or is_nan(y):
        return False
    return decided(bool(x <= y), bool(x > y))


def greater(x: Number, y: Number) -> bool:
    return less(y, x)


def greater_equal(x: Number, y: Number) -> bool:
    return less_equal(y, x)


def add(x: Number, y: Number) -> Number:
    return x + y


def subtract(x: Number, y: Number) -> Number:
    return x - y


def multiply(x: Number, y: Number) -> Number:
    if x is y:
        return square(x)
    # A ball times 0 is 0, and no ball.
    if (type(x) is fmpq and x == 0 and _is_finite(y)) or (type(y) is fmpq and y == 0 and _is_finite(x)):
        return _ZERO
    return x * y


def square(x: Number) -> Number:
    """x*x, which for a ball around 0 is not below it."""
    if type(x) is fmpq or not x.contains(0) or not x.is_finite():
        return x * x
    return arb(0).union(x.abs_upper() ** 2)


def _is_finite(x: Number) -> bool:
    return type(x) is fmpq or x.is_finite()


def divide(x: Number, y: Number) -> Number:
    if not is_zero(y):
        return x / y
    if is_nan(x):
        return UNDEFINED
    return UNDEFINED if is_zero(x) else INFINITY if greater(x, _ZERO) else NEGATIVE_INFINITY


def negative(x: Number) -> Number:
    return -x


def positive(x: Number) -> Number:
    return x


def exp(x: Number) -> Number:
    return _ONE if type(x) is fmpq and x == 0 else arb(x).exp()


def log(x: Number) -> Number:
    if is_nan(x) or less(x, _ZERO):
        return UNDEFINED
    if is_zero(x):
        return NEGATIVE_INFINITY
    return _ZERO if type(x) is fmpq and x == 1 else arb(x).log()


def where(condition: bool, x: Number, y: Number) -> Number:
    return x if condition else y


def isfinite(x: Number) -> bool:
    return _is_finite(x)
