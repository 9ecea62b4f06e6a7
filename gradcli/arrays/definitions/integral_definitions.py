"""Integrals, inverses and series that few libraries have, and their derivatives; see
`gradcli.arrays.definitions.common_definitions`.

`n` is the order of a derivative that libraries lack, or compute with cancellation; for `expn` that of the integral.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from gradcli import limits
from gradcli.arrays.definitions.common_definitions import (
    STIRLING,
    as_arrays,
    cospi,
    product_and_rest,
    stirling,
)

Array = Any

# The largest n whose factorial is a finite float64.
_LAST_FACTORIAL = 170
# Above _EXP_FAR, exp(x) is near its overflow, and _EXP_TERMS terms of the asymptotic series of Ei are accurate to
# rounding.
_EXP_FAR, _EXP_TERMS = 700.0, 8
# For abs(x) > _DAWSON_FAR, Dawson's function and its derivatives use the asymptotic series, with _DAWSON_TERMS terms.
_DAWSON_FAR, _DAWSON_TERMS = 7.0, 30
# For abs(m) <= _ELLIPTIC_NEAR, derivatives of elliptic integrals use their Taylor series, with _ELLIPTIC_TERMS terms.
_ELLIPTIC_NEAR, _ELLIPTIC_TERMS = 0.5, 52
# The number of terms of atanh(t)/t for t up to 1/3; and the scale that keeps Dekker's splitting of large numbers from
# overflowing.
_ATANH_TERMS, _SCALE = 16, 2.0**-40
# Above these parameters (both, or the larger one), the incomplete beta function is that of a normal or of a gamma
# distribution plus a correction.
_BOTH_LARGE, _ONE_LARGE = 1e7, 1e30
# The number of terms of zeta that are summed before the Euler-Maclaurin formula, and the number of terms of that.
_ZETA_FIRST, _ZETA_TERMS = 12, 13
# The range of x in which the Euler-Maclaurin formula for derivatives does not cancel, and beyond which zeta's further
# terms are 0; and the number of terms of the Taylor series in q.
_LOWEST_POWER, _HIGHEST_POWER, _TAYLOR_TERMS = -1.0, 1000.0, 64
# The cost in eighths of a step of each power of the logarithms, per order of the derivative.
_ZETA_POWER = 48
# From _SINHC_FAR + _SINHC_BY_ORDER*n on, the nth derivative of sinh(x)/x uses a recurrence; below, its series has
# _SINHC_TERMS more terms than that bound.
_SINHC_FAR, _SINHC_BY_ORDER, _SINHC_TERMS = 20.0, 2.0, 25
# The number of Newton steps for lambertw, and the abs(p) up to which its series about the branch point is used.
_NEWTON, _BRANCH = 5, 0.01
# The coefficients of the series in p = sqrt(2*(e*x + 1)), the highest power first: R. Corless, G. Gonnet, D. Hare, D.
# Jeffrey and D. Knuth, "On the Lambert W function", 1996, equation 4.22.
_BRANCH_SERIES = (
    226287557 / 37623398400, -1963 / 204120, 680863 / 43545600, -221 / 8505, 769 / 17280, -43 / 540, 11 / 72, -1 / 3, 1.0
)  # fmt: skip
# The rounding error of math.e: e is math.e plus this.
_EULER_REST = 1.4456468917292502e-16


def _factorial(n: int) -> float:
    """n! as a float, infinite above _LAST_FACTORIAL."""
    return float(math.factorial(n)) if n <= _LAST_FACTORIAL else math.inf


def expi(xp: Any, x: Array) -> Array:
    """The exponential integral Ei, without overflow of exp(x): for large x by its asymptotic series, DLMF 6.12.1."""
    far = xp.greater(x, _EXP_FAR)
    large = xp.minimum(xp.where(far, x, _EXP_FAR), 3.0 * _EXP_FAR)
    total = 0.0 * large
    for k in range(_EXP_TERMS, 0, -1):
        total = (1.0 + total) * (k / large)
    half = xp.exp(0.5 * large)
    return xp.where(far, (1.0 + total) * half / large * half, xp.expi(xp.where(far, 1.0, x)))


def expn(xp: Any, x: Array, n: int) -> Array:
    """The exponential integral of order n, DLMF 8.19.1; for n <= 0 as a sum of positive terms."""
    if n > 0:
        return xp.expn(n, x)
    term = total = 0.0 * x + 1.0
    for k in range(1, 1 - n):
        term = term * x / k
        total = total + term
    return _factorial(-n) * total * xp.exp(-x) * xp.pow(x, float(n - 1))


def dawsn(xp: Any, x: Array, n: int) -> Array:
    """The nth derivative of Dawson's integral.

    It follows from D' = 1 - 2*x*D, and for large x from the asymptotic series, DLMF 7.12.1.
    """
    if not n:
        return xp.dawsn(x)
    size = xp.abs(x)
    far = xp.greater(size, _DAWSON_FAR)
    near, inverse = xp.where(far, 0.0, x), 1.0 / xp.where(far, size, _DAWSON_FAR)
    before = xp.dawsn(near)
    value = 1.0 - 2.0 * near * before
    for k in range(1, n):
        before, value = value, -2.0 * (near * value + k * before)
    square, total = inverse * inverse, 0.0 * inverse
    for k in range(_DAWSON_TERMS, -1, -1):
        rise = math.prod((2 * k + 2 + j) / (2 * k + j) for j in range(1, n + 1)) * (k + 0.5)
        total = 1.0 + total * square * rise
    series = total * (_factorial(n) * 0.5 * (-1.0) ** n)
    for _ in range(n + 1):
        series = series * inverse
    mirrored = xp.where(xp.less(x, 0.0), -series, series) if n % 2 == 0 else series
    return xp.where(far, mirrored, value)


def elliptic(xp: Any, m: Array, n: int, power: float) -> Array:
    """The nth derivative of the complete elliptic integral of (1 - m*sin(t)**2)**power, power = -1/2 or 1/2.

    Near 0 it is the Taylor series of pi/2*F(-power, 1/2; 1; m); elsewhere it follows from the differential equations,
    DLMF 19.4.
    """
    second = power > 0.0
    if not n:
        return xp.ellipe(m) if second else xp.ellipk(m)
    near = xp.less_equal(xp.abs(m), _ELLIPTIC_NEAR)
    low, m = xp.where(near, m, 0.0), xp.where(near, _ELLIPTIC_NEAR, m)
    a, total = n - power, 0.0 * low
    for k in range(_ELLIPTIC_TERMS, 0, -1):
        total = (1.0 + total) * low * ((a + k - 1.0) * (n + k - 0.5) / ((n + k) * k))
    leading = 0.5 * math.pi * math.prod((k - power) * (k + 0.5) / (k + 1) for k in range(n))
    first, other = xp.ellipk(m), xp.ellipe(m)
    if second:
        before, value = other, xp.divide(other - first, 2.0 * m)
    else:
        before, value = first, xp.divide(other - (1.0 - m) * first, 2.0 * m * (1.0 - m))
    for k in range(2, n + 1):
        linear = (k - 1.0) * (1.0 - m) if second else (k - 1.0) * (1.0 - 2.0 * m)
        rest = (k - 2.0) * (k - 2.0) - 0.25 if second else (k - 1.5) * (k - 1.5)
        if second:
            linear = linear - (k - 2.0) * m
        before, value = value, xp.divide(rest * before - linear * value, m * (1.0 - m))
    return xp.where(near, leading * (1.0 + total), value)


def gamma_density(xp: Any, a: Array, x: Array) -> Array:
    """x**(a - 1)*exp(-x)/gamma(a), the density of the gamma distribution.

    For large a it is expressed by the distance of x from a, because the logarithms are large and cancel there.
    """
    a, x = as_arrays(xp, a, x)
    large, there = xp.greater_equal(a, STIRLING), xp.greater(x, 0.0)
    low, high, y = xp.where(large, 1.0, a), xp.where(large, a, STIRLING), xp.where(there, x, 1.0)
    plain = xp.exp((low - 1.0) * xp.log(y) - y - xp.lgamma(low))
    u = (y - high) / high
    scaled = xp.exp(high * _log1p_rest(xp, u, y / high) - stirling(high)) * xp.sqrt(high * (0.5 / math.pi)) / y
    at_zero = xp.where(xp.less(a, 1.0), math.inf, xp.where(xp.equal(a, 1.0), a, 0.0))
    at_zero = xp.where(xp.equal(x, 0.0), at_zero, math.nan)
    value = xp.where(xp.equal(y, math.inf), 0.0, xp.where(large, scaled, plain))
    value = xp.where(xp.logical_and(xp.equal(a, math.inf), xp.less(x, math.inf)), 0.0, value)
    return xp.where(xp.less(a, 0.0), math.nan, xp.where(there, value, at_zero))


def _log1p_rest(xp: Any, u: Array, above: Array) -> Array:
    """log(1 + u) - u without cancellation near 0, given `above` = 1 + u.

    With t = u/(2 + u) the logarithm is 2*atanh(t), and u is 2*t + u*t.
    """
    near = xp.less(xp.abs(u), 0.5)
    v = xp.where(near, u, 0.0)
    t = v / (2.0 + v)
    square, total = t * t, 0.0 * t
    for k in range(_ATANH_TERMS, 0, -1):
        total = (total + 1.0 / (2 * k + 1)) * square
    return xp.where(near, t * (2.0 * total - v), xp.log(xp.where(near, 1.0, above)) - u)


def beta_deviation(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """b*x - a*(1 - x) for large a and b, without cancellation: (a + b) times the distance of x from a/(a + b)."""
    rest = 1.0 - x
    left_out = (1.0 - rest) - x
    a, b = a * _SCALE, b * _SCALE
    (first, first_rest), (second, second_rest) = product_and_rest(b, x), product_and_rest(a, rest)
    return ((first - second) + (first_rest - second_rest - a * left_out)) * (1.0 / _SCALE)


def beta_exponent(xp: Any, a: Array, b: Array, x: Array, deviation: Array) -> Array:
    """a*log(x*(a + b)/a) + b*log((1 - x)*(a + b)/b), which is at most 0, given `deviation` = b*x - a*(1 - x)."""
    u, w = deviation / a, -deviation / b
    first = _log1p_rest(xp, u, x * (1.0 + b / a))
    return a * first + b * _log1p_rest(xp, w, (1.0 - x) * (1.0 + a / b))


def beta_density(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """x**(a - 1)*(1 - x)**(b - 1)/beta(a, b), the density of the beta distribution.

    For large parameters it is rearranged as in `gamma_density` to avoid cancellation.
    """
    a, b, x = as_arrays(xp, a, b, x)
    there = xp.logical_and(
        xp.logical_and(xp.greater(a, 0.0), xp.greater(b, 0.0)), xp.logical_and(xp.greater(x, 0.0), xp.less(x, 1.0))
    )
    swapped = xp.greater(a, b)
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    large = xp.logical_and(xp.greater_equal(high, STIRLING), there)
    both = xp.logical_and(xp.greater_equal(low, STIRLING), large)
    y = xp.where(there, x, 0.5)

    # Both parameters are large: Stirling's series, DLMF 5.11.1.
    s, t = xp.where(both, a, STIRLING), xp.where(both, b, STIRLING)
    z = xp.where(both, y, 0.5)
    exponent = beta_exponent(xp, s, t, z, beta_deviation(xp, s, t, z))
    exponent = exponent + stirling(s + t) - stirling(s) - stirling(t)
    of_both = xp.exp(exponent) * xp.sqrt((0.5 / math.pi) * (s / (s + t)) * t) / (z * (1.0 - z))

    # One parameter is large.
    one = xp.logical_and(large, xp.logical_not(both))
    s, t = xp.where(one, low, 1.0), xp.where(one, high, STIRLING)
    z, rest = xp.where(swapped, 1.0 - y, y), xp.where(swapped, y, 1.0 - y)
    logarithm = xp.where(swapped, xp.log(rest), xp.log1p(-z))
    total = s + t
    exponent = s * xp.log(z * total) + t * logarithm - xp.lgamma(s)
    exponent = exponent + ((t - 0.5) * xp.log1p(s / t) - s) + (stirling(total) - stirling(t))
    of_one = xp.exp(exponent) / (z * rest)

    s, t = xp.where(large, 1.0, xp.where(there, a, 1.0)), xp.where(large, 1.0, xp.where(there, b, 1.0))
    plain = xp.pow(y, s - 1.0) * xp.pow(1.0 - y, t - 1.0) * (xp.gamma(s + t) / (xp.gamma(s) * xp.gamma(t)))
    value = xp.where(both, of_both, xp.where(one, of_one, plain))
    value = xp.where(xp.logical_and(xp.equal(high, math.inf), xp.less(low, math.inf)), 0.0, value)
    return xp.where(there, value, _beta_density_at_ends(xp, a, b, x))


def _beta_density_at_ends(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """The density at x = 0 and 1; nan elsewhere.

    It is 0 or infinite, or the other parameter if the power of the vanishing factor is 0.
    """
    near, far = xp.where(xp.equal(x, 0.0), a, b), xp.where(xp.equal(x, 0.0), b, a)
    value = xp.where(xp.less(near, 1.0), math.inf, xp.where(xp.equal(near, 1.0), far, 0.0))
    known = xp.logical_and(xp.greater(near, 0.0), xp.greater(far, 0.0))
    at_end = xp.logical_or(xp.equal(x, 0.0), xp.equal(x, 1.0))
    return xp.where(xp.logical_and(at_end, known), value, math.nan)


def is_of_large(xp: Any, a: Array, b: Array) -> Array:
    """Return whether `betainc_of_large` is accurate to rounding."""
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    both, one = xp.greater(low, _BOTH_LARGE), xp.logical_and(xp.greater(low, 0.0), xp.greater(high, _ONE_LARGE))
    return xp.logical_and(xp.logical_or(both, one), xp.less(high, math.inf))


def betainc_of_large(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """The incomplete beta function for large parameters and 0 < x < 1.

    DLMF 8.18.9 is used if both parameters are large, 8.18.3 if one is.
    """
    both = xp.greater(xp.minimum(a, b), _BOTH_LARGE)
    s, t, z = xp.where(both, a, 1.0), xp.where(both, b, 1.0), xp.where(both, x, 0.25)
    deviation, total = beta_deviation(xp, s, t, z), s + t
    exponent = xp.minimum(beta_exponent(xp, s, t, z, deviation), 0.0)
    # To first order, eta is the deviation in standard deviations.
    eta = xp.copysign(xp.sqrt(-2.0 * exponent / total), deviation)
    spread = xp.sqrt(s / total) * xp.sqrt(t / total)
    scaled = deviation / total / spread
    small = xp.less(xp.abs(scaled), 1e-6 * spread)
    series = (t - s) / total / (3.0 * spread) - scaled * (1.0 - spread * spread) / (12.0 * spread * spread)
    safe = xp.where(small, 1.0, eta)
    first = xp.where(small, series, (xp.where(small, 0.0, scaled) - safe) / safe / xp.where(small, 1.0, scaled))
    correction = xp.exp(exponent) * first / xp.sqrt(2.0 * math.pi * total)
    of_both = 0.5 * xp.erfc(xp.copysign(xp.sqrt(-exponent), -deviation)) + correction

    low, high, swapped = xp.minimum(a, b), xp.maximum(a, b), xp.greater(a, b)
    logarithm = xp.where(swapped, xp.log(x), xp.log1p(-x))
    y = -(high + 0.5 * (low - 1.0)) * logarithm
    low = xp.where(both, 1.0, low)
    of_one = xp.where(swapped, xp.gammaincc(low, y), xp.gammainc(low, y))
    return xp.where(both, of_both, of_one)


@cache
def _bernoulli() -> Sequence[float]:
    """B(2k)/(2k)! for k = 1, 2, …"""
    numbers = [Fraction(1)]
    for m in range(1, 2 * _ZETA_TERMS + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)) / (m + 1))
    return [float(numbers[2 * k] / math.factorial(2 * k)) for k in range(1, _ZETA_TERMS + 1)]


def hurwitz(xp: Any, x: Array, q: Array, n: int) -> Array:
    """(-1)**n times the nth derivative of the Hurwitz zeta function by x, for x != 1 and q > 0.

    It is the sum of log(k + q)**n*(k + q)**-x over k = 0, 1, …

    The first terms are summed, and the rest follows by the Euler-Maclaurin formula, DLMF 25.11.5, differentiated term
    by term: the derivatives by t are t**(-x - m) times polynomials in log(t). The result is nan for x < -1, where the
    parts cancel.
    """
    if not n:
        return xp.hurwitz_zeta(x, q)
    return xp.where(xp.less(x + 0.0 * q, _LOWEST_POWER), math.nan, euler_maclaurin(xp, x, q, n))


def continued_hurwitz(xp: Any, x: Array, q: Array) -> Array:
    """The analytic continuation of the Hurwitz zeta function to x < 1, for q > 0.

    It is the sum of (k + q)**-x for x > 1. The result is nan where neither formula below is accurate.

    The Euler-Maclaurin formula cancels for x < 0 unless q is large. There the Taylor series in q about 1, DLMF
    25.11.10, is used, with q shifted to between 1/2 and 3/2 by the first terms.
    """
    large, above = xp.greater(q, float(_ZETA_FIRST)), xp.greater_equal(x, 0.0)
    far = xp.logical_and(large, xp.greater(q, -x))
    value = euler_maclaurin(xp, xp.where(above, x, 0.5), q, 0)
    value = xp.where(far, euler_maclaurin(xp, xp.where(far, x, 0.5), xp.where(far, q, 15.0), 0, first=0), value)
    steps = xp.where(large, 0.0, xp.floor(q + 0.5) - 1.0)
    near = xp.where(large, 1.0, q - steps)
    # At the pole of zeta its factor is 0; the limit of their product is the product of the other factors.
    total, factor, others, move = 0.0 * (x + near), 1.0 + 0.0 * (x + near), 0.0 * x, 1.0 - near
    for k in range(_TAYLOR_TERMS):
        power = x + float(k)
        pole = xp.equal(power, 1.0)
        total = total + xp.where(pole, others, factor * xp.riemann_zeta(xp.where(pole, 2.0, power)))
        others = factor * move / (k + 1.0)
        factor = others * power
    for k in range(_ZETA_FIRST):
        total = total - xp.where(xp.less(float(k), steps), xp.pow(near + float(k), -x), 0.0)
    total = total + xp.where(xp.less(steps, 0.0), xp.pow(q, -x), 0.0)
    return xp.where(xp.logical_or(above, far), value, xp.where(large, math.nan, total))


def riemann(xp: Any, x: Array) -> Array:
    """Riemann's zeta function; for x < 0 by the reflection formula, DLMF 25.4.1."""
    low = xp.less(x, 0.0)
    t = xp.where(low, 1.0 - x, x)
    value = euler_maclaurin(xp, t, 1.0, 0)
    scale = 2.0 * xp.exp(xp.lgamma(t) - t * math.log(2.0 * math.pi)) * cospi(xp, 0.5 * t)
    return xp.where(low, scale * value, value)


def euler_maclaurin(xp: Any, x: Any, q: Any, n: int, first: int = _ZETA_FIRST) -> Array:
    """(-1)**n times the nth derivative of the Hurwitz zeta function by x, from a sum of the `first` terms."""
    x, q = as_arrays(xp, x, q)
    total = 0.0 * (x + q)
    limits.charge_steps(_ZETA_POWER * n)
    for k in range(first):
        logarithm = xp.log(q + float(k))
        total = total + _whole_power(logarithm, n) * xp.exp(-x * logarithm)
    t = q + float(first)
    # For larger x the remaining terms are 0, but their factors would overflow.
    x = xp.minimum(x, _HIGHEST_POWER)
    logarithm = xp.log(t)
    there = xp.exp(-x * logarithm)
    inverse = xp.divide(1.0, x - 1.0)
    integral, power = (1.0 + 0.0 * total) * inverse, 1.0
    for j in range(1, n + 1):
        power = power * logarithm
        integral = (power + j * integral) * inverse
    total = total + there * (t * integral + 0.5 * power)
    polynomial: list[Any] = [*([0.0] * n), 1.0]
    scale = there
    for m in range(2 * _ZETA_TERMS - 1):
        slopes = [*((j + 1) * polynomial[j + 1] for j in range(n)), 0.0]
        polynomial = [slope - (x + float(m)) * p for slope, p in zip(slopes, polynomial)]
        scale = xp.divide(scale, t)
        if m % 2 == 0:
            value = polynomial[n]
            for p in reversed(polynomial[:n]):
                value = value * logarithm + p
            total = total - _bernoulli()[m // 2] * scale * value
    return total


def _whole_power(x: Array, n: int) -> Array:
    return math.prod([x] * n, start=1.0)


def lambertw(xp: Any, x: Array, k: int) -> Array:
    """Lambert's W: the w with w*exp(w) = x, w >= -1 for k = 0, w <= -1 for k = -1; nan if there is none.

    Computed by Newton's method for log(x/w) = w, which loses no digits near 0; near -1/e by a series about the branch
    point.
    """
    above = (math.e * x + 1.0) + _EULER_REST * x
    there = xp.greater_equal(above, -1e-15)
    if k:
        there = xp.logical_and(there, xp.less(x, 0.0))
    p = xp.sqrt(2.0 * xp.maximum(xp.where(there, above, 0.0), 0.0))
    p = -p if k else p
    branch = 0.0 * p
    for coefficient in _BRANCH_SERIES:
        branch = (branch + coefficient) * p
    branch = branch - 1.0
    close = xp.less(xp.abs(p), _BRANCH)
    regular = xp.logical_and(xp.logical_and(there, xp.not_equal(x, 0.0)), xp.logical_not(close))
    regular = xp.logical_and(regular, xp.less(x, math.inf))
    safe = xp.where(regular, x, -0.25 if k else 1.0)
    w = _first_guess(xp, safe, xp.where(regular, branch, -0.5), k)
    for _ in range(_NEWTON):
        w = w * (1.0 + xp.log(safe / w)) / (1.0 + w)
    value = xp.where(there, xp.where(regular, w, xp.where(close, branch, x)), math.nan)
    return xp.where(xp.equal(x, 0.0), -math.inf, value) if k else value


def _first_guess(xp: Any, x: Array, branch: Array, k: int) -> Array:
    """A starting value for Newton's method with a relative error of about 5 %."""
    if k:
        inner = xp.log(-xp.where(xp.less(x, -0.2), -0.2, x))
        return xp.where(xp.less(x, -0.2), branch, inner - xp.log(-inner))
    positive = xp.greater(x, 0.0)
    inner = xp.log1p(xp.where(positive, x, 1.0))
    right = inner * (1.0 - xp.log1p(inner) / (2.0 + inner))
    left = xp.where(positive, 0.0, x)
    return xp.where(positive, right, xp.where(xp.less(x, -0.2), branch, left / (1.0 + left)))


def sinhc(xp: Any, x: Array, n: int) -> Array:
    """The nth derivative of sinh(x)/x.

    Near 0 it is the series, whose terms have one sign; elsewhere the recurrence x*f[n] + n*f[n-1] = sinh(x) or cosh(x),
    which loses no digits there.
    """
    end = _SINHC_FAR + _SINHC_BY_ORDER * n
    size = xp.abs(x)
    near = xp.less(size, end)
    low, high = xp.where(near, size, 0.0), xp.where(near, end, size)
    square, total = low * low, 0.0 * low
    for k in range(int(end) + _SINHC_TERMS, (n + 1) // 2, -1):
        # The ratio of the term x**(2*k - n)/((2*k - n)!*(2*k + 1)) to the one before it.
        total = (1.0 + total) * square * ((2.0 * k - 1.0) / ((2.0 * k + 1.0) * (2.0 * k - n) * (2.0 * k - n - 1.0)))
    first = (n + 1) // 2
    leading = (low if n % 2 else 1.0) / (2.0 * first + 1.0)
    # sinh and cosh are divided by x in two steps, because they overflow where the quotient does not.
    half = xp.exp(0.5 * high)
    small = xp.exp(-high) * 0.5
    large = 0.5 * half / high * half
    sinh, cosh = large - small / high, large + small / high
    value = sinh
    for k in range(1, n + 1):
        value = (cosh if k % 2 else sinh) - k / high * value
    value = xp.where(near, leading * (1.0 + total), value)
    return xp.where(xp.less(x, 0.0), -value, value) if n % 2 else value
