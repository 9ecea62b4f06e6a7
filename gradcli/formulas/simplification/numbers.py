"""Recognises the closed form of floats as people write them: 1/3 for 0.3333333333333333, log(2) for
0.6931471805599453."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from gradcli.named_tuples import NamedTuple

# A float with fewer significant digits than this is taken as it is written.
_SHORT = 15
# A float with more digits is rounded to this many significant digits to undo rounding errors of earlier operations.
_ROUNDED = 13
# Only a decimal with more characters than this is written as a fraction.
_LONG = 10
_LARGEST = 1000
_CLOSE = 4e-16
# The powers of pi that are tried, each with a square root that occurs with it.
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
# The powers of log(n) that are tried.
_LOGARITHMS = (1, -1, 2, -2, 3, -3, 4)


class ClosedForm(NamedTuple):
    """The number coefficient * pi**pi * sqrt(root) * log(number)**logarithm."""

    coefficient: Fraction
    pi: Fraction = Fraction(0)
    root: int = 1
    number: int = 1
    logarithm: int = 0


class TypedDecimal(Fraction):
    """An exact fraction that was typed with a decimal point, or computed from such a number, and is written as a
    decimal."""

    __slots__ = ()


def _keeping(name: str) -> Any:
    operation = getattr(Fraction, name)

    def method(self: TypedDecimal, *others: Any) -> Any:
        found = operation(self, *others)
        return TypedDecimal(found) if type(found) is Fraction else found

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "neg", "pos", "abs"):
    setattr(TypedDecimal, f"__{_name}__", _keeping(f"__{_name}__"))


def numerator_and_denominator(number: Fraction) -> tuple[Fraction | int, int]:
    """A number as (numerator, denominator). For a decimal the numerator terminates as a decimal: a third of 0.2 is
    (0.2, 3)."""
    if not isinstance(number, TypedDecimal):
        return number.as_integer_ratio()
    below = number.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    return Fraction(number) * below, below


def typed_decimal(value: float, typed: Collection[float]) -> TypedDecimal | None:
    """A finite number as a TypedDecimal where its digits show that it comes from the `typed` decimals; else None."""
    if not typed or value.is_integer():
        return None
    if abs(value) in typed:
        return TypedDecimal(repr(value))
    found: Fraction | None = Fraction(repr(value))
    if not _is_short(value):
        short = float(f"{value:.{_ROUNDED}g}")
        close = abs(short - value) <= _CLOSE * abs(value)
        found = Fraction(repr(short)) if close else simple_fraction(value)
    # Only a denominator with the factor 5 shows a typed decimal; halves and thirds are in many rules.
    return None if found is None or found.denominator % 5 else TypedDecimal(found)


def _is_short(value: float) -> bool:
    return len(repr(value).strip("-").replace(".", "").strip("0")) < _SHORT


def common_factor(coefficients: Collection[Fraction]) -> Fraction:
    """`content`, or for decimals, which keep their digits, the common absolute value if there is only one, else 1."""
    if any(isinstance(c, TypedDecimal) for c in coefficients):
        first, *others = {abs(c) for c in coefficients}
        return Fraction(1) if others else first
    return content(coefficients)


def content(coefficients: Collection[Fraction]) -> Fraction:
    """The largest positive factor that leaves integer coefficients."""
    return Fraction(math.gcd(*[c.numerator for c in coefficients]), math.lcm(*[c.denominator for c in coefficients]))


def closed_form(value: float) -> ClosedForm:
    """A finite number as a product of the factors that its digits reveal; otherwise the decimal itself."""
    if value < 0:
        found = closed_form(-value)
        return found._replace(coefficient=-found.coefficient)
    written = ClosedForm(Fraction(repr(value)))
    if value == 0 or _is_short(value):
        return written
    return next((f for f in (_rational(value), _logarithm(value), _with_pi(value), _root(value)) if f), written)


def _rational(value: float) -> ClosedForm | None:
    fraction = simple_fraction(value)
    return None if fraction is None else ClosedForm(fraction)


def _logarithm(value: float) -> ClosedForm | None:
    for power in _LOGARITHMS:
        low, high = sorted((math.log(1.5) ** power, math.log(_LARGEST) ** power))
        if not low < value < high:
            # Outside this range exp(value**(1/power)) overflows or n exceeds _LARGEST.
            continue
        n = round(math.exp(value ** (1.0 / power)))
        if abs(math.log(n) ** power - value) <= _CLOSE * value:
            return ClosedForm(Fraction(1), number=n, logarithm=power)
    return None


def _with_pi(value: float) -> ClosedForm | None:
    for pi, root in _WITH_PI:
        fraction = simple_fraction(value / math.pi ** float(pi) / math.sqrt(root))
        if fraction is not None:
            return ClosedForm(fraction, pi, root)
    return None


def _root(value: float) -> ClosedForm | None:
    square = simple_fraction(value * value)
    if square is None or square.numerator * square.denominator > _LARGEST:
        return None
    return ClosedForm(Fraction(1, square.denominator), root=square.numerator * square.denominator)


def simple_fraction(value: float) -> Fraction | None:
    """The fraction of integers up to _LARGEST that equals a float to its last digit, if there is one."""
    if not math.isfinite(value):
        return None
    found = Fraction(value).limit_denominator(_LARGEST)
    if found == 0 or abs(found.numerator) > _LARGEST:
        return None
    return found if abs(float(found) - value) <= _CLOSE * abs(value) else None


def written_fraction(value: float) -> Fraction | None:
    """The fraction that a decimal with many digits is written as, if it evaluates to exactly that float."""
    found = simple_fraction(value) if len(repr(value)) > _LONG else None
    return found if found is not None and found.numerator / found.denominator == value else None


def square_part(n: int) -> int:
    """The largest integer up to 1000 whose square divides n."""
    found = 1
    for k in range(2, min(n, 1000) + 1):
        if k * k > n:
            break
        if n % (k * k) == 0:
            found = k
    return found
