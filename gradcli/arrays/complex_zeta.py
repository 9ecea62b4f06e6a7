"""Riemann's zeta function of complex numbers, and its derivatives, in NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

from gradcli import limits
from gradcli.arrays.definitions.common_definitions import cospi, sinpi
from gradcli.arrays.definitions.integral_definitions import euler_maclaurin
from gradcli.arrays.host_functions import check_on_host
from gradcli.arrays.scipy_complex import by_scipy

# The Euler-Maclaurin formula is used after the first _FIRST + abs(Im s)/_TURN terms: those that it leaves out fall by
# a factor of about (abs(s) + 2*k)/(2*pi*first) each.
_FIRST, _TURN = 18, 1.5
# From this real part on, the terms beyond the first ones are below rounding errors.
_FAR_RIGHT = 60.0
# The cost of a term in eighths of a step.
_TERM = 8


def zeta_derivative(xp: Any, s: Any, n: int) -> Any:
    """(-1)**n times the nth derivative of zeta, for arrays of NumPy; nan at the pole.

    Left of 0 it follows from the reflection formula DLMF 25.4.1. Raises MissingFunctionError for arrays of another
    library.
    """
    check_on_host(xp, "zeta")
    import numpy as np

    with np.errstate(all="ignore"):
        given, s = np.asarray(s), np.asarray(s, "complex128")
        left = np.real(s) < 0.0
        right = np.where(left, 1.0 - s, s)
        value = _of_right_half(np, right, n)
        if left.any():
            value = np.where(left, _reflected(xp, np.where(left, right, 1.0), n), value)
        return value.astype(given.dtype)


def _of_right_half(np: Any, s: Any, n: int) -> Any:
    flat = s.ravel()
    far = np.real(flat) > _FAR_RIGHT
    total = sum(math.log(k) ** n * np.exp(-flat * math.log(k)) for k in range(1, _FIRST))
    height = np.where(far | ~np.isfinite(flat), 0.0, np.abs(np.imag(flat)))
    # Numbers share a sum of about the length that each needs, as longer ones have larger rounding errors.
    doublings = np.ceil(np.log2(1.0 + height / (_FIRST * _TURN)))
    for doubling in np.unique(doublings):
        chosen = (doublings == doubling) & ~far
        first = _FIRST * 2 ** int(doubling)
        limits.charge_steps(_TERM * first * int(chosen.sum()))
        total[chosen] = euler_maclaurin(np, flat[chosen], 1.0, n, first)
    return total.reshape(s.shape)


def _reflected(xp: Any, t: Any, n: int) -> Any:
    """The nth derivative by t of 2*(2*pi)**-t*gamma(t)*cos(pi*t/2)*zeta(t), which is zeta(1 - t)."""
    import numpy as np

    height = 0.5 * math.pi * np.abs(np.imag(t))
    # The exponential growth of the cosine is moved to the first factor, whose logarithm has these derivatives.
    scale = 2.0 * np.exp(by_scipy(xp, "lgamma", t) - t * math.log(2.0 * math.pi) + height)
    rates = [by_scipy(xp, "digamma", t) - math.log(2.0 * math.pi)]
    rates += [by_scipy(xp, "polygamma", k, t) for k in range(1, n)]
    sizes = [np.ones_like(t)]
    for k in range(n):
        sizes.append(sum(math.comb(k, j) * sizes[k - j] * rates[j] for j in range(k + 1)))
    waves = [(0.5 * math.pi) ** k * _damped_cosine(np, t, k, height) for k in range(n + 1)]
    zetas = [(-1.0) ** k * _of_right_half(np, t, k) for k in range(n + 1)]
    total = np.zeros_like(t)
    for i in range(n + 1):
        for j in range(n + 1 - i):
            ways = math.comb(n, i) * math.comb(n - i, j)
            total = total + ways * sizes[i] * waves[j] * zetas[n - i - j]
    return scale * total


def _damped_cosine(np: Any, t: Any, turns: int, height: Any) -> Any:
    """cos(pi/2*(t + turns))*exp(-height), where `height` is pi/2*abs(Im t)."""
    cosine, sine = cospi(np, 0.5 * np.real(t)), sinpi(np, 0.5 * np.real(t))
    for _ in range(turns % 4):
        cosine, sine = -sine, cosine
    fall = np.exp(-2.0 * height)
    return 0.5 * (cosine * (1.0 + fall) + 1j * sine * np.sign(np.imag(t)) * np.expm1(-2.0 * height))
