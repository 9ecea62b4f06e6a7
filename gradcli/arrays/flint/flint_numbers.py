"""Building blocks of functions of FLINT numbers.

A *number* is an `fmpq`, which is exact, or an `arb`, a ball. A function of numbers returns rational values exactly
where that is easily recognised, and else a ball that encloses its values for all numbers in the operands. It returns
UNDEFINED, INFINITY or NEGATIVE_INFINITY only where that result is certain, as float64 would have it, and raises
UndecidedError if a ball is too wide for finite bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flint import arb, arb_series, ctx, fmpq, fmpz

from gradcli import limits
from gradcli.arrays.flint.balls import (
    INFINITY,
    NEGATIVE_INFINITY,
    UNDEFINED,
    Number,
    UndecidedError,
    record_discontinuity,
)

ZERO, HALF, ONE, TWO = fmpq(0), fmpq(1, 2), fmpq(1), fmpq(2)
# Integers are computed exactly up to this multiple of the working precision in bits.
_LARGEST_WHOLE = 4
# The cost of power series: _PRODUCTS products of coefficients of one bit take an eighth of a step, and each coefficient
# counts _SERIES more bits than the precision.
_PRODUCTS, _SERIES = 40_000, 100

Unary = Callable[[Number], Number]


def is_finite(x: Number) -> bool:
    return type(x) is fmpq or x.is_finite()


def is_infinite(x: Number) -> bool:
    """Return whether a number is an infinity, or a ball without bounds."""
    return type(x) is arb and not x.is_finite() and not x.is_nan()


def compared(x: Number, y: Number) -> int:
    """-1, 0 or 1 as x, which is not nan, is below, equal to or above y.

    Raises UndecidedError if that is not certain.
    """
    if x < y:
        return -1
    if x > y:
        return 1
    if x == y:
        return 0
    raise UndecidedError("two numbers cannot be told apart")


def is_at(x: Number, point: fmpq) -> bool:
    """Return whether a number is certainly equal to `point`."""
    return bool(x == point)


def known_integer(x: Number) -> int | None:
    """A fraction as an int if it is an integer of moderate length, else None; None for balls, also exact ones."""
    if type(x) is not fmpq or x.q != 1 or x.height_bits() > _LARGEST_WHOLE * ctx.prec:
        return None
    return int(x.p)


def whole_order(x: Number) -> int | None:
    """A fraction as an int if it is an integer; None if it is not, and for a ball without integers. Raises
    UndecidedError for a ball that contains an integer, and for integers that are longer than `known_integer` takes."""
    if type(x) is arb and x.contains_integer():
        raise UndecidedError("it cannot be told whether an order is whole")
    order = known_integer(x)
    if order is None and type(x) is fmpq and x.q == 1:
        raise UndecidedError("a whole order is too large")
    return order


def with_bounds(x: Any) -> Number:
    """A number with finite bounds, returned unchanged. Raises UndecidedError for a ball without bounds."""
    if x.is_finite():
        return x
    raise UndecidedError("it cannot be told whether a number is finite")


def real(x: Any) -> Number:
    """The real part of a complex ball that is known to hold a real number."""
    return with_bounds(x.real)


def hull(x: Number, y: Number) -> Number:
    """A new ball that encloses both numbers and everything between them."""
    return arb(x).union(arb(y))


def zero_to(size: Number) -> Number:
    """A ball that encloses all numbers from 0 to `size`, and no negative ones."""
    around = arb(0, arb(size) / 2)
    return around.rad() + around


def step_between(x: Number, y: Number) -> Number:
    """An enclosure of the values of a function that jumps from x to y inside a ball; the jump is recorded."""
    record_discontinuity()
    return hull(x, y)


def monotone(x: Number, function: Unary) -> Number:
    """An enclosure of a monotonic function on a ball, from its values at the ends."""
    return hull(function(x.lower()), function(x.upper()))


def at_infinity(x: Number, below: Any, above: Any) -> Number:
    """The limit at an infinity, given as a number or as a function that computes it; nan stays nan."""
    if x.is_nan():
        return UNDEFINED
    limit = above if compared(x, ZERO) > 0 else below
    return limit() if callable(limit) else limit


def analytic(
    compute: Callable[[Any], Any], *, zero: fmpq | None = None, below: Any = UNDEFINED, above: Any = UNDEFINED
) -> Unary:
    """A function that is defined on the whole real line, from its version for balls.

    `zero` is its value at 0 if that is rational, and `below` and `above` are its limits at the infinities.
    """

    def function(x: Number) -> Number:
        if type(x) is fmpq:
            return zero if zero is not None and x == 0 else with_bounds(compute(arb(x)))
        return with_bounds(compute(x)) if x.is_finite() else at_infinity(x, below, above)

    return function


def stepwise(step: Callable[[fmpq], fmpz]) -> Unary:
    """A step function from its version for fractions; a ball with a step inside gives all values between its ends.
    An infinity is its own value."""

    def function(x: Number) -> Number:
        if type(x) is fmpq:
            return fmpq(step(x))
        if not x.is_finite():
            return at_infinity(x, NEGATIVE_INFINITY, INFINITY)
        first, last = (step(fraction(end)) for end in (x.lower(), x.upper()))
        return fmpq(first) if first == last else step_between(first, last)

    return function


def fraction(x: Number) -> fmpq:
    """An exact number as a fraction. Raises UndecidedError if the fraction would be far too long."""
    if type(x) is fmpq:
        return x
    _mantissa, exponent = x.man_exp()
    if abs(int(exponent)) > 2 * _LARGEST_WHOLE * ctx.prec:
        raise UndecidedError("a number is too large for its whole part")
    return x.fmpq()


def root(x: fmpq, n: int) -> fmpq | None:
    """The nth root of a fraction >= 0 if that is a fraction, else None."""
    parts = [part.root(n) for part in (x.p, x.q)]
    if parts[0] ** n == x.p and parts[1] ** n == x.q:
        return fmpq(*parts)
    return None


def coefficient(series: Callable[[Any], Any], x: Number, n: int) -> Number:
    """The nth Taylor coefficient of a function of a power series, at x.

    The cost of all coefficients up to it is charged.
    """
    limits.charge_steps(n * n * (_SERIES + ctx.prec) // _PRODUCTS)
    with series_length(n + 1):
        return with_bounds(series(arb_series([arb(x), 1], prec=n + 1))[n])


@contextmanager
def series_length(count: int) -> Iterator[None]:
    """Within the block, power series have `count` terms.

    FLINT truncates them, by default after 10 terms, and takes further ones to be 0.
    """
    before = ctx.cap
    ctx.cap = count
    try:
        yield
    finally:
        ctx.cap = before
