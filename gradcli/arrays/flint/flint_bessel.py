"""Bessel functions of FLINT numbers, under the names that the namespace looks up; see `flint_numbers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb, ctx, fmpq

from gradcli.arrays.flint.balls import INFINITY, NEGATIVE_INFINITY, UNDEFINED, Number, UndecidedError, is_nan
from gradcli.arrays.flint.flint_elementary import cospi
from gradcli.arrays.flint.flint_functions import abs as absolute
from gradcli.arrays.flint.flint_functions import add, less, multiply, sign, subtract
from gradcli.arrays.flint.flint_numbers import (
    HALF,
    ONE,
    ZERO,
    Unary,
    at_infinity,
    compared,
    is_at,
    is_finite,
    is_infinite,
    known_integer,
    whole_order,
    with_bounds,
)

# If both the order and the precision in bits exceed these, the time of FLINT's modified Bessel function is unbounded.
_HIGH_ORDER, _MANY_BITS = 10**9, 1000

# --- of whole order


def bessel_i(x: Number, *, n: int) -> Number:
    if not is_finite(x):
        return at_infinity(x, NEGATIVE_INFINITY if n % 2 else INFINITY, INFINITY)
    return _at_zero(n) if is_at(x, ZERO) else with_bounds(arb(x).bessel_i(n))


def bessel_j(x: Number, *, n: int) -> Number:
    if not is_finite(x):
        return UNDEFINED
    return _at_zero(n) if is_at(x, ZERO) else with_bounds(arb(x).bessel_j(n))


def _at_zero(n: int) -> fmpq:
    return ZERO if n else ONE


def i1e(x: Number) -> Number:
    return ive(ONE, x)


def scaled_i(x: Number, *, n: int) -> Number:
    """The mean of u**n*exp(-x*u), u = 1 - cos(t), over all angles t.

    u/2 has a beta distribution, so that the mean is (2**n*(1/2)_n/n!)*1F1(n + 1/2; n + 1; -2*x), DLMF 13.4.1.
    """
    if not is_finite(x):
        return at_infinity(x, UNDEFINED, ZERO)
    scale = 2**n * mean_of_powers(n)
    return fmpq(scale) if is_at(x, ZERO) else with_bounds(scale * (-2 * arb(x)).hypgeom_1f1(n + HALF, n + 1))


def mean_of_powers(n: int) -> fmpq:
    """The mean of sin(t)**(2*n) over all angles t: (1/2)_n/n!, with the Pochhammer symbol (1/2)_n."""
    found = ONE
    for k in range(n):
        found *= fmpq(2 * k + 1, 2 * k + 2)
    return found


def _second(value: Callable[[Any], Any], at_zero: Number) -> Unary:
    """A function that is defined for x >= 0, takes the value `at_zero` at 0 and tends to 0 at infinity."""

    def function(x: Number) -> Number:
        if is_nan(x) or less(x, ZERO):
            return UNDEFINED
        if is_at(x, ZERO) or is_infinite(x):
            return ZERO if is_infinite(x) else at_zero
        return with_bounds(value(arb(x)))

    return function


y0 = _second(lambda x: x.bessel_y(0), NEGATIVE_INFINITY)
y1 = _second(lambda x: x.bessel_y(1), NEGATIVE_INFINITY)
k0 = _second(lambda x: x.bessel_k(0), INFINITY)
k1 = _second(lambda x: x.bessel_k(1), INFINITY)
k1e = _second(lambda x: x.bessel_k(1, scaled=True), INFINITY)


def k0e(x: Number, *, n: int) -> Number:
    """The integral of u**n*exp(-x*u), u = cosh(t) - 1, over t > 0.

    It is 2**n*gamma(n + 1/2)*U(n + 1/2, n + 1, 2*x), DLMF 13.4.4.
    """
    return _second(lambda x: 2**n * arb(n + HALF).gamma() * (2 * x).hypgeom_u(n + HALF, n + 1), INFINITY)(x)


# --- of any order


def jv_of_number(v: Number, x: Number) -> Number:
    return _of_order(
        v, x, lambda v, x: x.bessel_j(v), UNDEFINED, ZERO, lambda v: multiply(INFINITY, arb(v + 1).rgamma())
    )


def yv(v: Number, x: Number) -> Number:
    if is_nan(v) or is_nan(x) or is_infinite(v) or less(x, ZERO):
        return UNDEFINED
    if is_at(x, ZERO):
        return multiply(NEGATIVE_INFINITY, ONE if v >= 0 else cospi(v))
    return ZERO if is_infinite(x) else with_bounds(arb(x).bessel_y(arb(v)))


def iv(v: Number, x: Number) -> Number:
    return _of_order(v, x, _modified, INFINITY, INFINITY, lambda _v: INFINITY)


def _modified(v: Any, x: Any) -> Any:
    """I(v, x), for large orders by DLMF 10.25.2, because FLINT's asymptotic expansion takes unbounded time there."""
    size = absolute(x)
    if not (size > 0 and v > 1 and (v > size * size or (v > _HIGH_ORDER and ctx.prec > _MANY_BITS))):
        return x.bessel_i(v)
    found = (v * (size / 2).log() - (v + 1).lgamma()).exp() * (size * size / 4).hypgeom_0f1(v + 1)
    if not x < 0:
        return found
    order = v.unique_fmpz()
    if order is None:
        raise UndecidedError("it cannot be told whether an order is even")
    return -found if int(order) % 2 else found


def ive(v: Number, x: Number) -> Number:
    return _of_order(v, x, lambda v, x: (-absolute(x)).exp() * _modified(v, x), ZERO, ZERO, lambda _v: UNDEFINED)


def ive_slope(v: Number, x: Number) -> Number:
    before, after = ive(subtract(v, ONE), x), ive(add(v, ONE), x)
    return subtract(multiply(HALF, add(before, after)), multiply(sign(x), ive(v, x)))


def _of_order(v: Number, x: Number, value: Callable[[Any, Any], Any], below: Any, above: Any, pole: Unary) -> Number:
    n = known_integer(v)
    if is_nan(v) or is_nan(x) or is_infinite(v) or (n is None and less(x, ZERO) and whole_order(v) is None):
        return UNDEFINED
    if is_infinite(x):
        return at_infinity(x, below, above)
    if is_at(x, ZERO):
        return _at_zero(n) if n is not None else ZERO if compared(v, ZERO) > 0 else pole(v)
    return with_bounds(value(arb(v), arb(x)))
