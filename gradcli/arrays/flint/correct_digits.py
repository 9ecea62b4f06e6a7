"""Count the correct digits of a float, proved by comparing it with the exact value, a fraction or a ball."""

from __future__ import annotations

import math

from flint import arb, fmpq

from gradcli.arrays.flint.balls import Number, exact, is_nan
from gradcli.named_tuples import NamedTuple

# A float64 has at most 16 significant digits.
MOST = 16


class Right(NamedTuple):
    """A lower and an upper bound of the number of correct digits; they agree if the ball is narrow enough."""

    proved: int
    possible: int


NONE, ALL = Right(0, 0), Right(MOST, MOST)


def correct_digits(found: float, number: Number) -> Right | None:
    """The number of correct digits of `found` if the exact value is `number`.

    It is the largest k <= 16 for which they differ by at most 10**-k times the magnitude of the exact value.

    It is 16 if both are equal, also to an infinity, and 0 if exactly one is 0, nan or infinite. The result is None if
    the exact value is undefined.
    """
    if is_nan(number):
        return None
    if type(number) is arb and not number.is_finite():
        return ALL if found == float(number) else NONE
    if not math.isfinite(found):
        return NONE
    error, size = abs(exact(found) - number), abs(number)
    if error == 0:
        return ALL
    if size == 0:
        return NONE
    if type(error) is fmpq:
        return _of_relative(arb(error / size), arb(error / size))
    size = arb(size)
    return _of_relative(error.abs_lower() / size.abs_upper(), error.abs_upper() / size.abs_lower())


def _of_relative(least: arb, most: arb) -> Right:
    """The digits from bounds of the relative error, which is not 0 and may be infinite."""
    proved = (-_log10(most)).lower() if most.is_finite() else arb(0)
    possible = (-_log10(least)).upper() if least > 0 else arb(MOST)
    return Right(_whole(proved), _whole(possible))


def _log10(number: arb) -> arb:
    return number.log() / arb(10).log()


def _whole(digits: arb) -> int:
    return min(MOST, max(0, int(digits.floor().unique_fmpz())))
