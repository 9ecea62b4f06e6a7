"""Arithmetic of floats that takes note of what was rounded."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


class Rounded(float):
    """A number that may have been rounded where those that are written were taken together."""

    __slots__ = ()


def exactly(operation: Callable[[Any, Any], Any], a: float, b: float) -> float:
    """What an operator makes of two numbers, which is `Rounded` where it is not that exactly."""
    found: float = operation(a, b)
    if type(a) is Rounded or type(b) is Rounded or not all(map(math.isfinite, (a, b, found))):
        return Rounded(found)
    # Most often a number is made negative, or left as it is.
    if operation is operator.mul and (abs(a) == 1.0 or abs(b) == 1.0):
        return found
    # What most programs do without.
    from fractions import Fraction

    return found if operation(Fraction(a), Fraction(b)) == found else Rounded(found)
