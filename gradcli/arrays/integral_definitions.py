"""Integrals, inverses and sums that few libraries have, and their derivatives; as in `gradcli.arrays.definitions`.

`n` is the order of a derivative, of which libraries have none, or none that does not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from gradcli import limits
from gradcli.arrays.definitions import STIRLING, as_arrays, cospi, stirling

Array = Any

_LAST_FACTORIAL = 170
# Here exp(x) is near its overflow, and so many terms of the series of the exponential integral have all digits.
_EXP_FAR, _EXP_TERMS = 700.0, 8
# Dawson's function and its derivatives by their asymptotic series, and its number of terms.
_DAWSON_FAR, _DAWSON_TERMS = 7.0, 30
# Elliptic integrals by their Taylor series, and its number of terms.
_ELLIPTIC_NEAR, _ELLIPTIC_TERMS = 0.5, 52
# The terms of zeta that are added before Euler-Maclaurin's formula, and the terms of that.
_ZETA_FIRST, _ZETA_TERMS = 12, 13
# What a power of the logarithms takes there, in eighths of steps.
_ZETA_POWER = 48
# Steps of Newton's method for lambertw, and where its series about the branch point has all digits.
_NEWTON, _BRANCH = 5, 0.01
_BRANCH_SERIES = (
    226287557 / 37623398400, -1963 / 204120, 680863 / 43545600, -221 / 8505, 769 / 17280, -43 / 540, 11 / 72, -1 / 3, 1.0
)  # fmt: skip
# Euler's number is this and as much as its rounding left out.
_EULER_REST = 1.4456468917292502e-16


def _factorial(n: int) -> float:
    return float(math.factorial(n)) if n <= _LAST_FACTORIAL else math.inf


def expi(xp: Any, x: Array) -> Array:
    """The exponential integral Ei, where exp(x) overflows too: there by its asymptotic series, DLMF 6.12.1."""
    far = xp.greater(x, _EXP_FAR)
    large = xp.minimum(xp.where(far, x, _EXP_FAR), 3.0 * _EXP_FAR)
    total = 0.0 * large
    for k in range(_EXP_TERMS, 0, -1):
        total = (1.0 + total) * (k / large)
    half = xp.exp(0.5 * large)
    return xp.where(far, (1.0 + total) * half / large * half, xp.expi(xp.where(far, 1.0, x)))


def expn(xp: Any, x: Array, n: int) -> Array:
    """The exponential integral of order n, DLMF 8.19.1; from order 0 down a sum of positive terms."""
    if n > 0:
        return xp.expn(n, x)
    term = total = 0.0 * x + 1.0
    for k in range(1, 1 - n):
        term = term * x / k
        total = total + term
    return _factorial(-n) * total * xp.exp(-x) * xp.pow(x, float(n - 1))


def dawsn(xp: Any, x: Array, n: int) -> Array:
    """The nth derivative of Dawson's integral: by D' = 1 - 2*x*D, far out by the asymptotic series, DLMF 7.12.1."""
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

    Near 0 by its Taylor series, that of pi/2*F(-power, 1/2; 1; m), elsewhere by the differential equations, DLMF 19.4.
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
    """x**(a - 1)*exp(-x)/gamma(a); for large a by the distance of x from it, as both logarithms are large there."""
    a, x = as_arrays(xp, a, x)
    large, there = xp.greater_equal(a, STIRLING), xp.greater(x, 0.0)
    low, high, y = xp.where(large, 1.0, a), xp.where(large, a, STIRLING), xp.where(there, x, 1.0)
    plain = xp.exp((low - 1.0) * xp.log(y) - y - xp.lgamma(low))
    u = (y - high) / high
    near = xp.less(xp.abs(u), 0.5)
    logarithm = xp.where(near, xp.log1p(xp.where(near, u, 0.0)), xp.log(y / high))
    scaled = xp.exp(-high * (u - logarithm) - stirling(high)) * xp.sqrt(high * (0.5 / math.pi)) / y
    at_zero = xp.where(xp.less(a, 1.0), math.inf, xp.where(xp.equal(a, 1.0), a, 0.0))
    at_zero = xp.where(xp.equal(x, 0.0), at_zero, math.nan)
    value = xp.where(xp.equal(y, math.inf), 0.0, xp.where(large, scaled, plain))
    return xp.where(xp.less(a, 0.0), math.nan, xp.where(there, value, at_zero))


@cache
def _bernoulli() -> Sequence[float]:
    """B(2k)/(2k)! for k = 1, 2, …"""
    numbers = [Fraction(1)]
    for m in range(1, 2 * _ZETA_TERMS + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)) / (m + 1))
    return [float(numbers[2 * k] / math.factorial(2 * k)) for k in range(1, _ZETA_TERMS + 1)]


def hurwitz(xp: Any, x: Array, q: Array, n: int) -> Array:
    """The sum of log(k + q)**n*(k + q)**-x over k = 0, 1, …, for x != 1, q > 0: (-1)**n times the nth derivative of zeta by x.

    The first terms, and Euler and Maclaurin's formula for the others, DLMF 25.11.5, differentiated term by term: those
    derivatives by t are t**(-x - m) times polynomials in log(t).
    """
    return _euler_maclaurin(xp, x, q, n) if n else xp.hurwitz_zeta(x, q)


def riemann(xp: Any, x: Array) -> Array:
    """Riemann's zeta function, for x < 0 by its mirror image, DLMF 25.4.1."""
    low = xp.less(x, 0.0)
    t = xp.where(low, 1.0 - x, x)
    value = _euler_maclaurin(xp, t, 1.0, 0)
    scale = 2.0 * xp.exp(xp.lgamma(t) - t * math.log(2.0 * math.pi)) * cospi(xp, 0.5 * t)
    return xp.where(low, scale * value, value)


def _euler_maclaurin(xp: Any, x: Any, q: Any, n: int) -> Array:
    x, q = as_arrays(xp, x, q)
    total = 0.0 * (x + q)
    limits.charge_steps(_ZETA_POWER * n)
    for k in range(_ZETA_FIRST):
        logarithm = xp.log(q + float(k))
        total = total + _whole_power(logarithm, n) * xp.exp(-x * logarithm)
    t = q + float(_ZETA_FIRST)
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
    """The w with w*exp(w) = x, at least -1 where k = 0, at most -1 where k = -1; nan where there is none.

    By Newton's method for log(x/w) = w, which loses no digit near 0; near -1/e by its series.
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
    """Within a twentieth or so."""
    if k:
        inner = xp.log(-xp.where(xp.less(x, -0.2), -0.2, x))
        return xp.where(xp.less(x, -0.2), branch, inner - xp.log(-inner))
    positive = xp.greater(x, 0.0)
    inner = xp.log1p(xp.where(positive, x, 1.0))
    right = inner * (1.0 - xp.log1p(inner) / (2.0 + inner))
    left = xp.where(positive, 0.0, x)
    return xp.where(positive, right, xp.where(xp.less(x, -0.2), branch, left / (1.0 + left)))
