"""The numbers of a formula as people write them: 1/3 for 0.3333333333333333, log(2) for 0.6931471805599453."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

# A float with fewer digits than this is taken as it is written.
_SHORT = 15
_LARGEST = 1000
_CLOSE = 4e-16
# The powers of pi that turn up in formulas, each with the square roots that go with them.
_HALF = Fraction(1, 2)
_WITH_PI = (
    (Fraction(1), 1),
    (Fraction(-1), 1),
    (_HALF, 1),
    (-_HALF, 1),
    (_HALF, 2),
    (-_HALF, 2),
    (Fraction(2), 1),
)
# The powers of log(n) that do.
_LOGARITHMS = (1, -1, 2, -2, 3, -3, 4)


class Factors(NamedTuple):
    """coefficient * pi**pi * sqrt(root) * log(number)**logarithm."""

    coefficient: Fraction
    pi: Fraction = Fraction(0)
    root: int = 1
    number: int = 1
    logarithm: int = 0


def factors(value: float) -> Factors:
    """A finite number as the factors that it was made of, where its digits give them away."""
    if value < 0:
        found = factors(-value)
        return found._replace(coefficient=-found.coefficient)
    written = Factors(Fraction(repr(value)))
    if value == 0 or len(repr(value).replace(".", "").strip("0")) < _SHORT:
        return written
    return next((f for f in (_rational(value), _logarithm(value), _with_pi(value), _root(value)) if f), written)


def _rational(value: float) -> Factors | None:
    fraction = simple_fraction(value)
    return None if fraction is None else Factors(fraction)


def _logarithm(value: float) -> Factors | None:
    for power in _LOGARITHMS:
        logarithm = value ** (1.0 / power)
        n = round(math.exp(logarithm)) if logarithm < math.log(_LARGEST) else 0
        if n > 1 and abs(math.log(n) ** power - value) <= _CLOSE * value:
            return Factors(Fraction(1), number=n, logarithm=power)
    return None


def _with_pi(value: float) -> Factors | None:
    for pi, root in _WITH_PI:
        fraction = simple_fraction(value / math.pi ** float(pi) / math.sqrt(root))
        if fraction is not None:
            return Factors(fraction, pi, root)
    return None


def _root(value: float) -> Factors | None:
    square = simple_fraction(value * value)
    if square is None or square.numerator * square.denominator > _LARGEST:
        return None
    return Factors(Fraction(1, square.denominator), root=square.numerator * square.denominator)


def simple_fraction(value: float) -> Fraction | None:
    """The fraction of small whole numbers that a float is to its last digit, if there is one."""
    if not math.isfinite(value):
        return None
    found = Fraction(value).limit_denominator(_LARGEST)
    if found == 0 or abs(found.numerator) > _LARGEST:
        return None
    return found if abs(float(found) - value) <= _CLOSE * abs(value) else None
