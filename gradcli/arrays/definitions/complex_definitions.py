"""Elementary functions of complex numbers that libraries lack, or compute less accurately."""

from __future__ import annotations

import math
from typing import Any

from gradcli.arrays.definitions.common_definitions import Array, as_arrays


def logaddexp(xp: Any, x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)) of complex numbers, without overflow: its principal value."""
    x, y = as_arrays(xp, x, y)
    right = xp.less(xp.real(x), xp.real(y))
    large = xp.where(right, y, x)
    rest = xp.where(right, x, y) - large
    regular = xp.isfinite(rest)
    value = large + xp.log1p(xp.exp(xp.where(regular, rest, 0.0)))
    # By whole turns into [-pi, pi].
    value = value - (2j * math.pi) * xp.round(xp.imag(value) / (2.0 * math.pi))
    return xp.where(regular, value, xp.log(xp.exp(x) + xp.exp(y)))


def _decaying(xp: Any, x: Array) -> Array:
    """exp of x or -x, of the one with a negative real part; abs of it is at most 1."""
    return xp.exp(xp.where(xp.less(xp.real(x), 0.0), x, xp.negative(x)))


def sigmoid(xp: Any, x: Array) -> Array:
    """1/(1 + exp(-x)) of complex x, without overflow of exp(-x)."""
    e = _decaying(xp, x)
    return xp.divide(xp.where(xp.less(xp.real(x), 0.0), e, 1.0), 1.0 + e)


def sech(xp: Any, x: Array) -> Array:
    """1/cosh(x) of complex x, without overflow of cosh(x)."""
    e = _decaying(xp, x)
    return xp.divide(e + e, 1.0 + e * e)


def csch(xp: Any, x: Array) -> Array:
    """1/sinh(x) of complex x, without overflow of sinh(x)."""
    low = xp.less(xp.real(x), 0.0)
    value = xp.divide(2.0 * _decaying(xp, x), xp.expm1(2.0 * xp.where(low, x, xp.negative(x))))
    return xp.where(low, value, xp.negative(value))


def log1p(xp: Any, x: Array) -> Array:
    """log(1 + x) of complex x, accurate near 0; NumPy's has the rounding error of 1 + x there."""
    a, b = xp.real(x), xp.imag(x)
    near = xp.complex(0.5 * xp.log1p(a * (2.0 + a) + b * b), xp.atan2(b, 1.0 + a))
    return xp.where(xp.less(xp.abs(x), 0.5), near, xp.log1p(x))


def sinpi(xp: Any, x: Array) -> Array:
    """sin(pi*x) of complex numbers, with full relative accuracy near its zeros, which are real."""
    whole = xp.round(xp.real(x))
    value = xp.sin(math.pi * (x - whole))
    return xp.where(xp.equal(xp.remainder(whole, 2.0), 0.0), value, -value)


def cospi(xp: Any, x: Array) -> Array:
    """cos(pi*x) of complex numbers, with full relative accuracy near its zeros, which are real."""
    whole = xp.round(xp.real(x))
    rest = x - whole
    rest = xp.where(xp.less(xp.real(rest), 0.0), -rest, rest)
    low = xp.less(xp.real(rest), 0.25)
    value = xp.where(low, xp.cos(math.pi * rest), xp.sin(math.pi * (0.5 - rest)))
    return xp.where(xp.equal(xp.remainder(whole, 2.0), 0.0), value, -value)
