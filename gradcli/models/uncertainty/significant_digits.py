"""How many digits a value with an uncertainty has: two of the uncertainty, and the value to the same decimal place
(GUM, 7.2.6; JCGM 101:2008, 7.9.2)."""

from __future__ import annotations

import math
from decimal import Context, Decimal

# Stated digits of an uncertainty.
STATED_DIGITS = 2
# Enough digits from the first of the largest float to the last of the smallest.
_EVERY = Context(prec=700)
# Powers of ten that are written without an exponent.
_PLAIN = range(-5, 10)


def last_place(u: float, digits: int = STATED_DIGITS) -> int:
    """The power of ten of the last of the stated digits of an uncertainty, which must be positive."""
    return Decimal(f"{u:.{digits - 1}e}").adjusted() - digits + 1


def tolerance(u: float, digits: int = STATED_DIGITS) -> float:
    """Half a unit of the last stated digit of an uncertainty: smaller differences do not matter (JCGM 101, 7.9.2). 0 where
    the uncertainty is not finite and positive."""
    return 0.5 * 10.0 ** last_place(u, digits) if math.isfinite(u) and u > 0 else 0.0


def stated_text(value: float, u: float, digits: int = STATED_DIGITS) -> str:
    """Value and uncertainty as text: `8.95 ± 0.22`, `(1.2345 ± 0.0067)e-09`."""
    if not (math.isfinite(value) and math.isfinite(u) and u > 0):
        return f"{value} ± {'0' if u == 0 else u}"
    place = last_place(u, digits)
    exponent = max(Decimal(repr(float(value))).adjusted() if value else place, place + digits - 1)
    shift = 0 if exponent in _PLAIN and place <= STATED_DIGITS else exponent
    texts = [f"{_rounded(number, place).scaleb(-shift, _EVERY):f}" for number in (value, u)]
    return " ± ".join(texts) if not shift else f"({' ± '.join(texts)})e{shift:+03d}"


def _rounded(number: float, place: int) -> Decimal:
    # Negative zero becomes 0.
    return Decimal(repr(float(number))).quantize(Decimal(1).scaleb(place), context=_EVERY) or Decimal(0).scaleb(place)
