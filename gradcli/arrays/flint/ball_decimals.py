"""Convert FLINT numbers to decimals in which every digit is proved: the last digit is off by at most one unit."""

from __future__ import annotations

import decimal as decimals
import math
from functools import cache

from flint import arb, fmpq, fmpz

from gradcli.arrays.flint.balls import INFINITY, Number, is_exact, precise, to_float
from gradcli.named_tuples import NamedTuple

# Extra working bits for powers of 10, added to the bits of their exponent.
_GUARD = 64
# A number is written with an exponent, as in `repr` of a float, if the decimal exponent of its first digit is below
# _SMALLEST_FIXED, or not below the number of its digits (and, for an exact number, not below _FIXED).
_FIXED, _SMALLEST_FIXED = 16, -5
# Exact balls with a larger binary exponent are not converted to fractions, which would be huge.
_LARGEST_EXPONENT = 100_000


class Decimal(NamedTuple):
    """The number `mantissa` * 10**`exponent`: exact if `exact`, else at most 10**`exponent` from the value."""

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
            # fmpz converts it, because Python's `str` refuses integers of more than 4,300 digits.
            return f"{sign}{digits[0]}{point}{digits[1:]}e{'+-'[first < 0]}{str(fmpz(abs(first))).zfill(2)}"
        if first < 0:
            return f"{sign}0.{'0' * (-first - 1)}{digits}"
        whole, behind = digits[: first + 1].ljust(first + 1, "0"), digits[first + 1 :]
        return f"{sign}{whole}{'.' * bool(behind)}{behind}"


def decimal(number: Number, digits: int) -> Decimal | None:
    """A finite number rounded to `digits` significant digits, fewer if that is exact; None if they are not proved."""
    number = _as_fraction(number)
    if type(number) is fmpq:
        return _of_fraction(number, digits)
    found = _of_ball(number, digits)
    if found is None:
        return None
    mantissa, _, exponent = found.partition("e")
    whole, _, behind = mantissa.partition(".")
    # fmpz converts it, because Python's `int` refuses strings of more than 4,300 digits.
    return Decimal(int(fmpz(whole + behind)), int(fmpz(exponent.lstrip("+") or "0")) - len(behind), False)


def _of_ball(number: arb, digits: int) -> str | None:
    """The decimals of a ball as FLINT writes them, or None if fewer than `digits` digits are certain.

    The last digit is off by at most one unit.
    """
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
    """Convert an exact ball with a moderate exponent to a fraction; return other numbers unchanged."""
    if type(number) is fmpq or not number.is_exact() or not number.is_finite():
        return number
    return number.fmpq() if abs(int(number.man_exp()[1])) < _LARGEST_EXPONENT else number


def _guard(number: Number) -> int:
    """Working bits that comparing a number with a power of 10 needs."""
    _, exponent = arb(number).mid().man_exp()
    return _GUARD + int(exponent).bit_length()


def first_exponent(number: fmpq) -> int:
    """The decimal exponent of the first digit of a nonzero fraction, or one less."""
    top: int = abs(int(number.p))
    bottom: int = int(number.q)
    # fmpz writes them, because Python's `str` refuses integers of more than 4,300 digits.
    found = len(str(fmpz(top))) - len(str(fmpz(bottom))) - 1
    above = top * 10 ** max(-found - 1, 0) >= bottom * 10 ** max(found + 1, 0)
    return found + 1 if above else found


def _exponent(number: arb) -> int:
    """The approximate decimal exponent of the first digit of a ball."""
    nearby = abs(to_float(number))
    if 0.0 < nearby < math.inf:
        return math.floor(math.log10(nearby))
    size = abs(number).mid()
    # Outside the range of floats, the exponent is computed from the logarithm in ball arithmetic.
    return int((size.log() / arb(10).log()).mid().floor().unique_fmpz())


def bound(number: Number, least: int) -> str | None:
    """A power of 10, at least 10**-least, that certainly exceeds the magnitude of a number.

    None for a number without a finite bound.
    """
    size = number.abs_upper() if type(number) is arb else abs(arb(number))
    if not size.is_finite():
        return None
    with precise(_guard(size)):
        exponent = -least if size < arb(10) ** -least else _exponent(size)
        while not size < arb(10) ** exponent:
            exponent += 1
    return f"1e{fmpz(exponent)}"


def text(number: Number, digits: int) -> str | None:
    """A number as text with `digits` digits; None if they are not proved. nan and infinities are written as such."""
    if type(number) is not fmpq and not number.is_finite():
        return _not_finite(number)
    found = decimal(number, digits)
    return None if found is None else str(found)


def _not_finite(number: arb) -> str | None:
    if not is_exact(number) and not number.is_nan():
        return None
    return "nan" if number.is_nan() else "inf" if number == INFINITY else "-inf"


def in_python(number: Number, digits: int) -> decimals.Decimal | None:
    """A number as a `decimal.Decimal`; None if that many digits are not proved.

    Raises ArithmeticError if the exponent exceeds the range of `decimal`.
    """
    number = _as_fraction(number)
    if type(number) is fmpq:
        return _context(digits).divide(decimals.Decimal(int(number.p)), decimals.Decimal(int(number.q)))
    found = _of_ball(number, digits) if number.is_finite() else _not_finite(number)
    return None if found is None else decimals.Decimal(found)


@cache
def _context(digits: int) -> decimals.Context:
    return decimals.Context(digits, Emin=decimals.MIN_EMIN, Emax=decimals.MAX_EMAX)
