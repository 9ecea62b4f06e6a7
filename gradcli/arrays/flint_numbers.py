"""What functions of numbers of flint are made of.

A *number* is an `fmpq`, which is exact, or an `arb`, a ball. Each function of numbers gives what is rational and easily
seen to be so exactly, anything else as a ball that holds the value for all numbers in its operands; UNDEFINED, INFINITY
or NEGATIVE_INFINITY only where that is certain, as float64 has them; and it raises UndecidedError where a ball is too wide
for any bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flint import arb, arb_series, ctx, fmpq, fmpz

from gradcli import limits
from gradcli.arrays.balls import INFINITY, NEGATIVE_INFINITY, UNDEFINED, Number, UndecidedError, jumps

ZERO, HALF, ONE, TWO = fmpq(0), fmpq(1, 2), fmpq(1), fmpq(2)
# A whole number that is made exactly has at most so many times the bits of the working precision.
_LARGEST_WHOLE = 4
# Products of coefficients of series that take an eighth of a step, where numbers have one bit, and bits that all have beside theirs.
_PRODUCTS, _SERIES = 40_000, 100

Unary = Callable[[Number], Number]


def is_finite(x: Number) -> bool:
    return type(x) is fmpq or x.is_finite()


def is_infinite(x: Number) -> bool:
    return type(x) is arb and not x.is_finite() and not x.is_nan()


def compared(x: Number, y: Number) -> int:
    """-1, 0 or 1 where x, which is not nan, is below, at or above y. Raises UndecidedError where that is open."""
    if x < y:
        return -1
    if x > y:
        return 1
    if x == y:
        return 0
    raise UndecidedError("two numbers cannot be told apart")


def is_at(x: Number, point: fmpq) -> bool:
    """Whether a number is known to be this one."""
    return bool(x == point)


def whole(x: Number) -> int | None:
    """A number as an int where it is known to be a whole one that is not too long, else None."""
    if type(x) is not fmpq or x.q != 1 or x.height_bits() > _LARGEST_WHOLE * ctx.prec:
        return None
    return int(x.p)


def whole_order(x: Number) -> int | None:
    """A number as an int where it is a whole one, None where it is not. Raises UndecidedError where that is open."""
    if type(x) is arb and x.contains_integer():
        raise UndecidedError("it cannot be told whether an order is whole")
    return whole(x)


def certain(x: Any) -> Number:
    """A number with bounds. Raises UndecidedError for one that has none."""
    if x.is_finite():
        return x
    raise UndecidedError("it cannot be told whether a number is finite")


def real(x: Any) -> Number:
    """The real part of a complex number, which is real."""
    return certain(x.real)


def hull(x: Number, y: Number) -> Number:
    """A ball with both numbers and all between them, which is no other's."""
    return arb(x).union(arb(y))


def up_to(size: Number) -> Number:
    """A ball with all numbers from 0 to this one, and none below 0."""
    around = arb(0, arb(size) / 2)
    return around.rad() + around


def step_between(x: Number, y: Number) -> Number:
    """All values of a function that jumps from one number to another."""
    jumps()
    return hull(x, y)


def monotone(x: Number, function: Unary) -> Number:
    """All values of a monotonic function of a ball, from those at its ends."""
    return hull(function(x.lower()), function(x.upper()))


def at_infinity(x: Number, below: Any, above: Any) -> Number:
    """The limit at an infinity, or what a function gives that computes it; nan stays nan."""
    if x.is_nan():
        return UNDEFINED
    limit = above if compared(x, ZERO) > 0 else below
    return limit() if callable(limit) else limit


def analytic(
    compute: Callable[[Any], Any], *, zero: fmpq | None = None, below: Any = UNDEFINED, above: Any = UNDEFINED
) -> Unary:
    """A function that has a value everywhere, by that of balls: `zero` at 0, where that is rational, and its limits."""

    def function(x: Number) -> Number:
        if type(x) is fmpq:
            return zero if zero is not None and x == 0 else certain(compute(arb(x)))
        return certain(compute(x)) if x.is_finite() else at_infinity(x, below, above)

    return function


def stepwise(step: Callable[[fmpq], fmpz]) -> Unary:
    """A function that climbs in steps, by what it is of fractions: of a ball with a step inside all between."""

    def function(x: Number) -> Number:
        if type(x) is fmpq:
            return fmpq(step(x))
        if not x.is_finite():
            return at_infinity(x, NEGATIVE_INFINITY, INFINITY)
        first, last = (step(fraction(end)) for end in (x.lower(), x.upper()))
        return fmpq(first) if first == last else step_between(first, last)

    return function


def fraction(x: Number) -> fmpq:
    """A number without any error as a fraction. Raises UndecidedError where that would be far too long."""
    if type(x) is fmpq:
        return x
    _mantissa, exponent = x.man_exp()
    if abs(int(exponent)) > 2 * _LARGEST_WHOLE * ctx.prec:
        raise UndecidedError("a number is too large for its whole part")
    return x.fmpq()


def root(x: fmpq, n: int) -> fmpq | None:
    """The nth root of a fraction >= 0, where that is a fraction, else None."""
    parts = [part.root(n) for part in (x.p, x.q)]
    if parts[0] ** n == x.p and parts[1] ** n == x.q:
        return fmpq(*parts)
    return None


def coefficient(series: Callable[[Any], Any], x: Number, n: int) -> Number:
    """The nth coefficient of a function of a power series, at a number. Those before it, of which each takes the time of
    the others, are charged."""
    limits.charge_steps(n * n * (_SERIES + ctx.prec) // _PRODUCTS)
    with terms(n + 1):
        return certain(series(arb_series([arb(x), 1], prec=n + 1))[n])


@contextmanager
def terms(count: int) -> Iterator[None]:
    """Within the block power series have so many terms: FLINT cuts them off, at 10 as a rule, and says they are 0."""
    before = ctx.cap
    ctx.cap = count
    try:
        yield
    finally:
        ctx.cap = before
