"""How many digits of a float are right: proved from the number that it should be, which is a fraction or lies in a ball."""

from __future__ import annotations

import math
from typing import NamedTuple

from flint import arb, fmpq

from gradcli.arrays.balls import Number, exact, is_nan

# As many as a number in float64 has.
MOST = 16


class Right(NamedTuple):
    """The digits that are certainly right, and those that are at most: the same where the ball is narrow enough."""

    proved: int
    possible: int


NONE, ALL = Right(0, 0), Right(MOST, MOST)


def right_digits(found: float, number: Number) -> Right | None:
    """How many digits of `found` are right, if it should be `number`: those k, at most 16, for which they differ by no
    more than 10**-k times the size of the number.

    All are where both are equal, also to nan or an infinity, and none where one alone is 0, nan or infinite; but where
    the number alone is undefined, nothing is known of a float.
    """
    if is_nan(number):
        return ALL if math.isnan(found) else None
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
    if size.contains(0):
        return Right(0, MOST)
    return _of_relative(error.abs_lower() / size.abs_upper(), error.abs_upper() / size.abs_lower())


def _of_relative(least: arb, most: arb) -> Right:
    """From bounds of the relative error."""
    return Right(_count(most, upper=True), MOST if least.contains(0) else _count(least, upper=False))


def _count(relative: arb, *, upper: bool) -> int:
    digits = -relative.log() / arb(10).log()
    whole = (digits.lower() if upper else digits.upper()).floor()
    return min(MOST, max(0, int(whole.unique_fmpz())))
