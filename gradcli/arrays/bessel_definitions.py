"""Scaled Bessel functions and their derivatives, of which no library has the latter; as in `gradcli.arrays.definitions`.

The derivatives of a scaled function cancel where they are written in others. As integrals over something positive
they do not.
"""

from __future__ import annotations

import math
from typing import Any

Array = Any

# Where the asymptotic series of the nth derivative of i0e begins, for each n further on, and its number of terms.
_FAR, _FAR_BY_ORDER, _TERMS = 40.0, 2.0, 16
# The nodes of the midpoint rule up to there.
_NODES = 32
# The step and the number of nodes of the trapezoidal rule for the derivatives of k0e.
_STEP, _POINTS = 0.2, 34


def scaled_i(xp: Any, x: Array, n: int) -> Array:
    """The mean of u**n*exp(-x*u), u = 1 - cos(t), over all angles t, for x >= 0: (-1)**n times the nth derivative of i0e.

    By the midpoint rule, which has all digits for a periodic function; far out by Watson's lemma for the integral over u.
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

    From 1 on by the trapezoidal rule in w, w**2 = x*u, which has all digits there; below by the recurrence that Bessel's
    equation gives, which loses none there.
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
