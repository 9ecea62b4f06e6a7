"""Exponentially scaled Bessel functions and their derivatives, for libraries that lack them.

The derivatives of a scaled Bessel function cancel if they are expressed in Bessel functions. They are computed here as
integrals of positive integrands, which do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from gradcli.arrays.definitions.common_definitions import as_arrays
from gradcli.named_tuples import NamedTuple

Array = Any

# The asymptotic series of the nth derivative of i0e is used for x > 40 + 2*n, with 16 + n terms.
_FAR, _FAR_BY_ORDER, _TERMS = 40.0, 2.0, 16
# For smaller x the midpoint rule is used, with _NODES + n nodes.
_NODES = 32
# Step and number of nodes of the trapezoidal rule for the derivatives of k0e.
_STEP, _POINTS = 0.2, 34
# The uniform expansion (DLMF 10.41) of modified Bessel functions is accurate to rounding for x > _UNIFORM, with
# _UNIFORM_TERMS terms.
_UNIFORM, _UNIFORM_TERMS = 40.0, 14


def scaled_i(xp: Any, x: Array, n: int) -> Array:
    """(-1)**n times the nth derivative of i0e, for x >= 0.

    It is the mean of u**n*exp(-x*u), u = 1 - cos(t), over all angles t.

    Computed by the midpoint rule, which converges to rounding for a periodic integrand; for large x by Watson's lemma
    for the integral over u.
    """
    if not n:
        return xp.i0e(x)
    start = _FAR + _FAR_BY_ORDER * n
    far = xp.greater(x, start)
    near, large = xp.where(far, 0.0, x), xp.where(far, x, start)
    nodes = _NODES + n
    mean = 0.0 * near
    for k in range(nodes):
        u = 2.0 * math.sin((k + 0.5) * math.pi / (2 * nodes)) ** 2
        mean = mean + (u**n / nodes) * xp.exp(-u * near)
    total = 0.0 * large
    for k in range(_TERMS + n, 0, -1):
        total = (1.0 + total) * ((k - 0.5) * (n + k - 0.5) / (2.0 * k) / large)
    factor = math.prod(k + 0.5 for k in range(n)) / math.sqrt(2.0 * math.pi)
    return xp.where(far, factor * (1.0 + total) * xp.pow(large, -n - 0.5), mean)


def scaled_k(xp: Any, x: Array, n: int) -> Array:
    """The integral of u**n*exp(-x*u), u = cosh(t) - 1, over t > 0: (-1)**n times the nth derivative of k0e.

    For x > 1 computed by the trapezoidal rule in w, w**2 = x*u, which is accurate to rounding there; for x <= 1 by the
    recurrence that follows from Bessel's equation, which loses no digits there.
    """
    if not n:
        return xp.k0e(x)
    far = xp.greater(x, 1.0)
    near, large = xp.where(far, 1.0, x), xp.where(far, x, 1.0)
    total = 0.0 / large
    for k in range(1, _POINTS + 2 * n):
        square = (_STEP * k) ** 2
        total = total + (2.0 * _STEP * square**n * math.exp(-square)) / xp.sqrt(2.0 * large + square)
    before = xp.k0e(near)
    value = xp.k1e(near) - before
    for k in range(2, n + 1):
        before, value = value, xp.divide((k - 1.0 - 2.0 * near) * value + (2.0 * k - 3.0) * before, near)
    return xp.where(far, total * xp.pow(large, -float(n)), value)


@cache
def _uniform_polynomials() -> Sequence[Sequence[float]]:
    """The polynomials U(k) of DLMF 10.41.10, U(k, p) = p**k*P(p**2), as the coefficients of P in ascending order."""
    polynomial = {0: Fraction(1)}
    found = [polynomial]
    for _ in range(_UNIFORM_TERMS):
        following: dict[int, Fraction] = {}
        for power, c in polynomial.items():
            rise = c * Fraction(power, 2) + c / (8 * (power + 1))
            fall = -c * Fraction(power, 2) - 5 * c / (8 * (power + 3))
            following[power + 1] = following.get(power + 1, Fraction(0)) + rise
            following[power + 3] = following.get(power + 3, Fraction(0)) + fall
        polynomial = following
        found.append(polynomial)
    return [[float(p[k + 2 * j]) for j in range(k + 1)] for k, p in enumerate(found)]


class _Uniform(NamedTuple):
    """The uniform expansion of exp(-x)*I(v, x), and the logarithmic derivative of that."""

    value: Array
    slope: Array


def _uniform_i(xp: Any, v: Any, x: Array) -> _Uniform:
    """The expansion by DLMF 10.41.3, 10.41.5 and 10.41.11, in powers of 1/sqrt(v**2 + x**2), for x > 0.

    Terms that cancel are omitted.
    """
    root = xp.hypot(v + 0.0 * x, x)
    inverse, part = 1.0 / root, (v / root) * (v / root)
    total, change = 0.0 * root, 0.0 * root
    for k, polynomial in reversed(list(enumerate(_uniform_polynomials()))):
        inner, bent = 0.0 * part, 0.0 * part
        for j, coefficient in reversed(list(enumerate(polynomial))):
            inner = inner * part + coefficient
            bent = bent * part + coefficient * (k + 0.5 + 2.0 * j)
        total = total * inverse + inner
        change = change * inverse + bent
    rise = v * (v / (root + x))
    exponent = rise - v * xp.asinh(v / x)
    value = total * xp.exp(exponent) * xp.sqrt((0.5 / math.pi) * inverse)
    return _Uniform(value, rise / x - (x * inverse) * inverse * (change / total))


def ive(xp: Any, v: Any, x: Array) -> Array:
    """exp(-x)*I(v, x) for large x, where SciPy's `ive` loses accuracy."""
    return _uniform_i(xp, v, x).value


def ive_slope(xp: Any, v: Any, x: Array) -> Array:
    """The derivative of exp(-abs(x))*I(v, x) with respect to x, without the cancellation of its terms for large x."""
    v, x = as_arrays(xp, v, x)
    size = xp.abs(x)
    far = xp.logical_and(xp.greater(size, _UNIFORM), xp.greater(size, -10.0 * v))
    far = xp.logical_and(far, xp.isfinite(x))
    value = xp.ive(v, x)
    parts = 0.5 * (xp.ive(v - 1.0, x) + xp.ive(v + 1.0, x))
    # For orders near 0 the term of order v - 1 is near order -1, where the sum cancels; use the recurrence upwards.
    low = xp.logical_and(xp.less(xp.abs(v), 1.0), xp.not_equal(x, 0.0))
    parts = xp.where(low, v / xp.where(low, x, 1.0) * value + xp.ive(v + 1.0, x), parts) - xp.sign(x) * value
    large = xp.where(far, size, _UNIFORM)
    return xp.where(far, xp.sign(x) * value * _uniform_i(xp, xp.abs(v), large).slope, parts)
