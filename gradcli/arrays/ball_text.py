"""Numbers of flint as decimals, of which every digit is proved: the last is off by at most one unit."""

from __future__ import annotations

import math
from typing import NamedTuple

from flint import arb, fmpq, fmpz

from gradcli.arrays.balls import INFINITY, Number, is_exact, precise, to_float

_BITS_PER_DIGIT = 3.3219280948873626
# Bits beyond those of the digits, for the power of 10 that a number is divided by.
_GUARD = 64
# Beyond it a number is written with an exponent, as Python writes floats; exact ones of few digits are not.
_FIXED, _SMALLEST_FIXED = 16, -5
# An exact ball with a larger exponent is written as any other.
_LARGEST_EXPONENT = 100_000


class Decimal(NamedTuple):
    """`mantissa` * 10**`exponent`: a number, if it is `exact`, or else one at most 10**`exponent` from it."""

    mantissa: int
    exponent: int
    exact: bool

    def __str__(self) -> str:
        sign, digits = "-" * (self.mantissa < 0), str(abs(self.mantissa))
        first = self.exponent + len(digits) - 1
        if self.exact:
            digits = digits.rstrip("0") or "0"
        if first < _SMALLEST_FIXED or first >= (max(len(digits), _FIXED) if self.exact else len(digits)):
            point = "." * (len(digits) > 1)
            # Python writes no whole number of more than 4,300 digits.
            return f"{sign}{digits[0]}{point}{digits[1:]}e{'+-'[first < 0]}{str(fmpz(abs(first))).zfill(2)}"
        if first < 0:
            return f"{sign}0.{'0' * (-first - 1)}{digits}"
        whole, behind = digits[: first + 1].ljust(first + 1, "0"), digits[first + 1 :]
        return f"{sign}{whole}{'.' * bool(behind)}{behind}"


def decimal(number: Number, digits: int) -> Decimal | None:
    """A finite number in so many significant digits, fewer where those are all; None where they are not proved."""
    number = _as_fraction(number)
    if type(number) is not fmpq and (not number.is_finite() or number.contains(0)):
        return None
    if number == 0:
        return Decimal(0, 0, True)
    with precise(int(digits * _BITS_PER_DIGIT) + _guard(number)):
        first = _exponent(number)
        while True:
            exponent = first - digits + 1
            found = _rounded(number, exponent)
            if found is None:
                return None
            length = len(str(abs(found.mantissa)))
            if length == digits or found.mantissa == 0:
                return found if found.mantissa else None
            first += length - digits


def _as_fraction(number: Number) -> Number:
    """An exact ball that is no giant as a fraction."""
    if type(number) is fmpq or not number.is_exact() or not number.is_finite():
        return number
    return number.fmpq() if abs(int(number.man_exp()[1])) < _LARGEST_EXPONENT else number


def _guard(number: Number) -> int:
    """Bits that the power of 10 next to a number has, beyond those of its digits."""
    _, exponent = arb(number).mid().man_exp()
    return _GUARD + int(exponent).bit_length()


def _exponent(number: Number) -> int:
    """About the exponent of its first digit."""
    nearby = abs(to_float(number))
    if 0.0 < nearby < math.inf:
        return math.floor(math.log10(nearby))
    size = abs(arb(number)).mid()
    # Of a giant its exponent has many digits.
    return int((size.log() / arb(10).log()).mid().floor().unique_fmpz())


def _rounded(number: Number, exponent: int) -> Decimal | None:
    """The nearest multiple of 10**exponent, None where it may be more than that off."""
    if type(number) is fmpq:
        scaled = number * fmpq(10) ** -exponent
        nearest = scaled.round()
        return Decimal(int(nearest), exponent, scaled == nearest)
    scaled = number * arb(10) ** -exponent
    nearest = _nearest(scaled.mid())
    return Decimal(int(nearest), exponent, False) if abs(scaled - nearest) <= 1 else None


def _nearest(middle: Number) -> fmpz:
    return (middle + fmpq(1, 2)).floor().unique_fmpz()


def bound(number: Number, least: int) -> str | None:
    """The power of 10, not below 10**-least, that the magnitude of a number is certainly below; None where none is."""
    size = number.abs_upper() if type(number) is arb else abs(arb(number))
    if not size.is_finite():
        return None
    with precise(_guard(size)):
        exponent = -least if size < arb(10) ** -least else _exponent(size)
        while not size < arb(10) ** exponent:
            exponent += 1
    return f"1e{fmpz(exponent)}"


def text(number: Number, digits: int) -> str | None:
    """A number as text, None where so many digits are not proved; `nan` and the infinities as such."""
    if type(number) is not fmpq and not number.is_finite():
        if not is_exact(number) and not number.is_nan():
            return None
        return "nan" if number.is_nan() else "inf" if number == INFINITY else "-inf"
    found = decimal(number, digits)
    return None if found is None else str(found)
