"""Inverse reciprocal functions (acot, asec, acsc and their hyperbolic counterparts) of FLINT numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from gradcli.arrays.flint.balls import INFINITY, NEGATIVE_INFINITY, UNDEFINED, Number, is_nan
from gradcli.arrays.flint.flint_functions import abs as absolute
from gradcli.arrays.flint.flint_functions import less
from gradcli.arrays.flint.flint_numbers import ONE, ZERO, Unary, is_at, is_infinite, with_bounds


def _of_reciprocal(inverse: Callable[[Any], Any], at_zero: Any, far: Callable[[Number], Any]) -> Unary:
    def function(x: Number) -> Number:
        if is_nan(x):
            return UNDEFINED
        if is_infinite(x):
            return far(x)
        return at_zero() if is_at(x, ZERO) else with_bounds(inverse(1 / arb(x)))

    return function


def _half_pi(_x: Any = None) -> Number:
    return arb.pi() / 2


def _outside(function: Unary, ends: Number | None = None) -> Unary:
    """A function that is defined for abs(x) >= 1, and infinite at 1 and -1 with the sign of x if `ends` is given."""

    def guarded(x: Number) -> Number:
        if is_nan(x) or less(absolute(x), ONE):
            return UNDEFINED
        if ends is not None and (is_at(x, ONE) or is_at(x, -ONE)):
            return INFINITY if x > 0 else NEGATIVE_INFINITY
        return function(x)

    return guarded


acot = _of_reciprocal(arb.atan, _half_pi, lambda _x: ZERO)
asec = _outside(_of_reciprocal(arb.acos, lambda: UNDEFINED, _half_pi))
acsc = _outside(_of_reciprocal(arb.asin, lambda: UNDEFINED, lambda _x: ZERO))
acoth = _outside(_of_reciprocal(arb.atanh, lambda: UNDEFINED, lambda _x: ZERO), INFINITY)
acsch = _of_reciprocal(arb.asinh, lambda: INFINITY, lambda _x: ZERO)
_asech = _of_reciprocal(arb.acosh, lambda: INFINITY, lambda _x: UNDEFINED)


def asech(x: Number) -> Number:
    return UNDEFINED if is_nan(x) or less(x, ZERO) or less(ONE, x) else _asech(x)
