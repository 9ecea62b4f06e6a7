"""Inverse reciprocal functions (acot, asec, acsc and their hyperbolic counterparts) for all array libraries.

They are expressed in functions that every library has, see `gradcli.arrays.definitions.common_definitions`.
"""

from __future__ import annotations

import math
from typing import Any

Array = Any

# For smaller abs(x), 1/x may overflow or lose bits, and the inverse hyperbolic function of 1/x equals a logarithm.
_TINY = 1e-300


def _root(xp: Any, x: Array) -> Array:
    """sqrt(x**2 - 1) for x >= 1, accurate near 1 and without overflow."""
    return xp.sqrt(x - 1.0) * xp.sqrt(x + 1.0)


def acot(xp: Any, x: Array) -> Array:
    return xp.atan(xp.divide(1.0, x))


def asec(xp: Any, x: Array) -> Array:
    return xp.atan2(_root(xp, xp.abs(x)), xp.sign(x))


def acsc(xp: Any, x: Array) -> Array:
    return xp.copysign(xp.atan2(1.0, _root(xp, xp.abs(x))), x)


def acoth(xp: Any, x: Array) -> Array:
    return xp.copysign(0.5 * xp.log1p(xp.divide(2.0, xp.abs(x) - 1.0)), x)


def asech(xp: Any, x: Array) -> Array:
    tiny = xp.less(xp.abs(x), _TINY)
    safe = xp.where(tiny, 0.5, x)
    value = xp.asinh(xp.divide(xp.sqrt(1.0 - safe) * xp.sqrt(1.0 + safe), safe))
    logarithm = math.log(2.0) - xp.log(xp.where(tiny, x, 1.0))
    return xp.where(tiny, logarithm, xp.where(xp.less(x, 0.0), math.nan, value))


def acsch(xp: Any, x: Array) -> Array:
    size = xp.abs(x)
    tiny = xp.less(size, _TINY)
    logarithm = math.log(2.0) - xp.log(xp.where(tiny, size, 1.0))
    return xp.copysign(xp.where(tiny, logarithm, xp.asinh(xp.divide(1.0, xp.where(tiny, 1.0, size)))), x)
