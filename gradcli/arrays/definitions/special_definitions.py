"""Special functions that few libraries have, in terms of other functions (see `gradcli.arrays.definitions.common_definitions`).

`xp` is the namespace of a library, `x` one of its floating-point arrays.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli.arrays.definitions.common_definitions import STIRLING, as_arrays, sinpi, stirling

Array = Any

# For arguments above _FRACTION, the continued fraction of scaled_erfc is accurate to rounding after _FRACTION_STEPS
# steps.
_FRACTION, _FRACTION_STEPS = 1.5, 60


def scaled_erfc(xp: Any, x: Array, n: int) -> Array:
    """exp(x**2) times the nth repeated integral of erfc.

    Computed by the recurrence DLMF 7.18.7 from orders -1 and 0. For large x, where that loses digits, the ratios of
    successive orders follow from the continued fraction of the recurrence.
    """
    far = xp.greater(x, _FRACTION)
    near, large = xp.where(far, 0.0, x), xp.where(far, x, _FRACTION)
    steps = n + _FRACTION_STEPS
    quotient = 1.0 / (large + xp.sqrt(large * large + 2.0 * steps))
    product = 0.0 * quotient + 2.0 / math.sqrt(math.pi)
    for k in range(steps, -1, -1):
        quotient = 0.5 / (large + (k + 1) * quotient)
        if k <= n:
            product = product * quotient
    before, value = 2.0 / math.sqrt(math.pi), xp.erfcx(near)
    for k in range(1, n + 1):
        before, value = value, (before - 2.0 * near * value) / (2.0 * k)
    return xp.where(far, product, value)


def erfcx(xp: Any, x: Array) -> Array:
    """exp(x**2)*erfc(x), for libraries that have erfc only."""
    far = xp.greater(x, _FRACTION)
    near = xp.where(far, 0.0, x)
    small = xp.exp(near * near) * xp.erfc(near)
    large = xp.where(far, x, _FRACTION)
    quotient = 1.0 / (large + xp.sqrt(large * large + 2.0 * _FRACTION_STEPS))
    for k in range(_FRACTION_STEPS, -1, -1):
        quotient = 0.5 / (large + (k + 1) * quotient)
    return xp.where(far, 2.0 / math.sqrt(math.pi) * quotient, small)


def rgamma(xp: Any, x: Array) -> Array:
    """1/gamma(x); for x < 1/2 by the reflection formula, DLMF 5.5.3, whose sine has the zeros."""
    left, whole = xp.less(x, 0.5), xp.equal(x, xp.floor(x))
    mirrored = sinpi(xp, xp.where(left, x, 0.0)) * xp.gamma(xp.where(left, 1.0 - x, 1.0)) * (1.0 / math.pi)
    # At the zeros the other factor may be infinite.
    mirrored = xp.where(xp.logical_and(whole, xp.isfinite(x)), 0.0, mirrored)
    return xp.where(left, mirrored, 1.0 / xp.gamma(xp.where(left, 1.0, x)))


def nearest(xp: Any, value: Array, n: Array, k: Array) -> Array:
    """`value` rounded to an integer where n and k are integers, unless the float has no fractional part anyway."""
    whole = xp.logical_and(xp.equal(n, xp.floor(n)), xp.equal(k, xp.floor(k)))
    return xp.where(xp.logical_and(whole, xp.less(value, 2.0**53)), xp.round(value), value)


def binom(xp: Any, n: Array, k: Array) -> Array:
    """n!/(k!*(n - k)!) for 0 <= k <= n.

    If k or n - k is large, it is Stirling's formula, DLMF 5.11.1, written in powers.
    """
    n, k = as_arrays(xp, n, k)
    low, high = xp.minimum(k, n - k), xp.maximum(k, n - k)
    one, both = (xp.greater_equal(smaller, STIRLING) for smaller in (high, low))
    s, t = xp.where(both, low, STIRLING), xp.where(one, high, STIRLING)
    of_both = xp.pow((s + t) / s, s) * xp.sqrt((0.5 / math.pi) * (s + t) / s / t)
    of_both = of_both * xp.exp(t * xp.log1p(s / t) + (stirling(s + t) - stirling(s) - stirling(t)))
    u = xp.where(both, 1.0, low)
    rise = (t + 0.5) * xp.log1p(u / t) - u + (stirling(t + u) - stirling(t))
    of_one = xp.pow(t + u, u) * xp.exp(rise) / xp.gamma(u + 1.0)
    few = xp.where(one, 1.0, high)
    plain = xp.gamma(few + u + 1.0) / (xp.gamma(few + 1.0) * xp.gamma(u + 1.0))
    return nearest(xp, xp.where(both, of_both, xp.where(one, of_one, plain)), n, k)


def arrangements(xp: Any, n: Array, k: Array) -> Array:
    """n!/(n - k)! for 0 <= k <= n; by Stirling's formula for n >= 10.

    If n - k < 10, (n - k)! is (n - k + 10)! divided by ten factors.
    """
    n, k = as_arrays(xp, n, k)
    rest = n - k
    few, low = xp.less(n, STIRLING), xp.less(rest, STIRLING)
    plain = xp.gamma(xp.where(few, n, 1.0) + 1.0) / xp.gamma(xp.where(few, rest, 1.0) + 1.0)
    s, t = xp.where(few, STIRLING, n), xp.where(few, STIRLING, xp.where(low, rest + STIRLING, rest))
    u = xp.where(few, 0.0, xp.where(low, k - STIRLING, k))
    half = xp.pow(s, 0.5 * u)
    value = half * xp.exp((t + 0.5) * xp.log1p(u / t) - u + (stirling(s) - stirling(t))) * half
    for i in range(1, int(STIRLING) + 1):
        value = value * xp.where(low, rest + float(i), 1.0)
    return nearest(xp, xp.where(few, plain, value), n, k)


def within(xp: Any, function: Any, n: Array, k: Array) -> Array:
    """`function`, a number of combinations or permutations, extended by 0 outside 0 <= k <= n; nan stays nan."""
    none = xp.logical_or(xp.less(k, 0.0), xp.less(n, k))
    return xp.where(none, 0.0, function(xp.where(none, 1.0, n), xp.where(none, 0.0, k)))


def entr(xp: Any, x: Array) -> Array:
    """-x*log(x), 0 at 0, -inf for x < 0."""
    value = -x * xp.log(xp.where(xp.greater(x, 0.0), x, 1.0))
    return xp.where(xp.less(x, 0.0), -math.inf, value)


def rel_entr(xp: Any, x: Array, y: Array) -> Array:
    """x*log(x/y), 0 where x = 0 <= y, inf outside the domain."""
    inside = xp.logical_and(xp.greater(x, 0.0), xp.greater(y, 0.0))
    value = x * xp.log(xp.where(inside, x / xp.where(inside, y, 1.0), 1.0))
    nothing = xp.logical_and(xp.equal(x, 0.0), xp.greater_equal(y, 0.0))
    strange = xp.logical_or(xp.not_equal(x, x), xp.not_equal(y, y))
    return xp.where(inside, value, xp.where(strange, x + y, xp.where(nothing, 0.0 * x, math.inf)))
