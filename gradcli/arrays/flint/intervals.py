"""Intervals with exact ends: conversion from and to balls of FLINT, and to decimals that are rounded outward."""

from __future__ import annotations

from flint import arb, fmpq

from gradcli.arrays.flint.ball_decimals import Decimal, first_exponent
from gradcli.arrays.flint.balls import INFINITY, NEGATIVE_INFINITY, Number, is_nan
from gradcli.named_tuples import NamedTuple

# A bound with a larger binary exponent is not converted to a fraction; it is written as a power of 10 with this
# exponent, as 0 or as an infinity.
_LARGEST_EXPONENT = 10_000
_LARGEST_DECIMAL = 3_000


class Bounds(NamedTuple):
    """The numbers from `low` to `high`, which are exact or infinite."""

    low: Number
    high: Number

    @property
    def is_finite(self) -> bool:
        return bool(self.low > NEGATIVE_INFINITY and self.high < INFINITY)

    def joined(self, other: Bounds) -> Bounds:
        """The smallest interval that contains both."""
        return Bounds(min(self.low, other.low), max(self.high, other.high))

    def narrowed(self, other: Bounds) -> Bounds:
        """The intersection of two enclosures of the same numbers."""
        return Bounds(max(self.low, other.low), min(self.high, other.high))


ALL = Bounds(NEGATIVE_INFINITY, INFINITY)
NOTHING = Bounds(INFINITY, NEGATIVE_INFINITY)


def bounds(number: Number) -> Bounds:
    """The interval that a number encloses; all numbers if it is undefined or infinite."""
    if type(number) is fmpq:
        return Bounds(number, number)
    if is_nan(number) or not number.is_finite():
        return ALL
    return Bounds(_exact(number.lower()), _exact(number.upper()))


def _exact(end: arb) -> Number:
    if not end.is_finite():
        return end
    mantissa, exponent = end.man_exp()
    # The exponent of the first bit decides, because the last bit of a long mantissa is far below it.
    return end.fmpq() if abs(int(exponent) + int(mantissa).bit_length()) < _LARGEST_EXPONENT else end


def simplest(part: Bounds) -> fmpq:
    """The fraction with the smallest denominator within the bounds; of several the one next to 0."""
    low, high = part
    if low <= 0 <= high:
        return fmpq(0)
    if high < 0:
        return -simplest(Bounds(-high, -low))
    whole = fmpq(low.ceil())
    if whole <= high:
        return whole
    below = fmpq(low.floor())
    return below + 1 / simplest(Bounds(1 / (high - below), 1 / (low - below)))


def ball(low: fmpq, high: fmpq, *, at_high: bool = False) -> Number:
    """A ball that stands for all numbers from `low` to `high`.

    The radius of a ball is rounded up. One end is met to the working precision, the lower one unless `at_high`, so that
    a function which is undefined beyond an end is still defined up to it.
    """
    if low == high:
        return low
    around = arb(0, (high - low) / 2)
    radius = around.rad()
    made = (arb(high) - radius if at_high else arb(low) + radius) + around
    return made if made.contains(arb(low)) and made.contains(arb(high)) else arb(low).union(arb(high))


def intersection(number: Number, known: Bounds) -> Number:
    """The intersection of a ball with known bounds, as a ball; one end is met to the working precision."""
    if type(number) is fmpq or not (known.is_finite and number.is_finite()):
        return number
    low, high = (_exact(end) for end in (number.lower(), number.upper()))
    if low < known.low < high:
        return ball(known.low, min(high, known.high))
    return ball(low, known.high, at_high=True) if low < known.high < high else number


def text(number: Number, digits: int, *, upward: bool) -> str:
    """A bound as a decimal of `digits` significant digits, rounded up or down; fewer digits if these are exact."""
    if type(number) is not fmpq:
        if not number.is_finite():
            return "inf" if number > 0 else "-inf"
        return _giant(number, upward)
    if number == 0:
        return "0"
    exponent = first_exponent(number) - digits + 1
    while True:
        scaled = number * fmpq(10) ** -exponent
        mantissa = int(scaled.ceil() if upward else scaled.floor())
        if len(str(abs(mantissa))) <= digits or mantissa % 10 == 0:
            return str(Decimal(mantissa, exponent, True))
        exponent += 1


def _giant(number: arb, upward: bool) -> str:
    """A bound whose magnitude is too large or too small for a decimal, rounded outward."""
    sign = "" if number > 0 else "-"
    outward = (number > 0) == upward
    if abs(number) > 1:
        return f"{sign}inf" if outward else f"{sign}1e+{_LARGEST_DECIMAL}"
    return f"{sign}1e-{_LARGEST_DECIMAL}" if outward else "0"
