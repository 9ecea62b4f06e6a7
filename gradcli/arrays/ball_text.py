"""Numbers of flint as decimals, of which every digit is proved: the last is off by at most one unit."""

from __future__ import annotations

import decimal as decimals
import math
from functools import cache
from typing import NamedTuple

from flint import arb, fmpq, fmpz

from gradcli.arrays.balls import INFINITY, Number, is_exact, precise, to_float

# Bits of a power of 10 beside those of its exponent.
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
    if type(number) is fmpq:
        return _of_fraction(number, digits)
    found = _of_ball(number, digits)
    if found is None:
        return None
    mantissa, _, exponent = found.partition("e")
    whole, _, behind = mantissa.partition(".")
    # Python reads no whole number of more than 4,300 digits.
    return Decimal(int(fmpz(whole + behind)), int(fmpz(exponent.lstrip("+") or "0")) - len(behind), False)


def _of_ball(number: arb, digits: int) -> str | None:
    """FLINT's decimals of a ball, the last of which is off by at most one unit: it writes fewer where they are not known."""
    found: str = number.str(digits, radius=False)
    written = found.partition("e")[0].lstrip("-0.").replace(".", "")
    return found if len(written) == digits else None


def _of_fraction(number: fmpq, digits: int) -> Decimal:
    if number == 0:
        return Decimal(0, 0, True)
    first = first_exponent(number)
    while True:
        exponent = first - digits + 1
        scaled = number * fmpq(10) ** -exponent
        nearest = scaled.round()
        length = len(str(abs(nearest)))
        if length == digits:
            return Decimal(int(nearest), exponent, bool(scaled == nearest))
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


def first_exponent(number: fmpq) -> int:
    """That of its first digit, or one less."""
    top: int = abs(int(number.p))
    bottom: int = int(number.q)
    # Python writes no whole number of so many digits as FLINT does.
    found = len(str(fmpz(top))) - len(str(fmpz(bottom))) - 1
    above = top * 10 ** max(-found - 1, 0) >= bottom * 10 ** max(found + 1, 0)
    return found + 1 if above else found


def _exponent(number: arb) -> int:
    """About the exponent of its first digit."""
    nearby = abs(to_float(number))
    if 0.0 < nearby < math.inf:
        return math.floor(math.log10(nearby))
    size = abs(number).mid()
    # Of a giant its exponent has many digits.
    return int((size.log() / arb(10).log()).mid().floor().unique_fmpz())


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
        return _not_finite(number)
    found = decimal(number, digits)
    return None if found is None else str(found)


def _not_finite(number: arb) -> str | None:
    if not is_exact(number) and not number.is_nan():
        return None
    return "nan" if number.is_nan() else "inf" if number == INFINITY else "-inf"


def in_python(number: Number, digits: int) -> decimals.Decimal | None:
    """A number as one of Python's decimals, None where so many digits are not proved. Raises ArithmeticError for one with
    an exponent that these do not have."""
    number = _as_fraction(number)
    if type(number) is fmpq:
        return _context(digits).divide(decimals.Decimal(int(number.p)), decimals.Decimal(int(number.q)))
    found = _of_ball(number, digits) if number.is_finite() else _not_finite(number)
    return None if found is None else decimals.Decimal(found)


@cache
def _context(digits: int) -> decimals.Context:
    return decimals.Context(digits, Emin=decimals.MIN_EMIN, Emax=decimals.MAX_EMAX)
