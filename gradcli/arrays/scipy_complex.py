"""Special functions of complex numbers, by SciPy and NumPy, under the names of this package."""

from __future__ import annotations

import math
from typing import Any

from gradcli import limits
from gradcli.arrays.definitions.common_definitions import cospi, cotangent_derivative, sinpi
from gradcli.arrays.definitions.integral_definitions import euler_maclaurin
from gradcli.arrays.host_functions import check_on_host

# Names that differ from SciPy's.
_OTHER_NAMES = {"lgamma": "loggamma", "digamma": "psi"}
_BY_ORDER = {"y0": ("yv", 0.0), "y1": ("yv", 1.0), "k0": ("kv", 0.0), "k1": ("kv", 1.0)}
# Functions that SciPy computes together.
_TOGETHER = {
    "airy": ("airyai", "airyaiprime", "airybi", "airybiprime"),
    "fresnel": ("fresnels", "fresnelc"),
    "sici": ("si", "ci"),
    "shichi": ("shi", "chi"),
}
_PARTS = {name: (of_all, place) for of_all, names in _TOGETHER.items() for place, name in enumerate(names)}
# From this modulus on, the derivatives of Dawson's integral follow from _DAWSON_TERMS terms of an asymptotic series.
_DAWSON_FAR, _DAWSON_TERMS = 7.0, 30
# The asymptotic series of polygamma has this many terms, which are accurate to rounding from _FAR on.
_TERMS, _FAR = 12, 16.0
# From this imaginary part on, the terms of the Fourier series of a cotangent fall by exp(-pi) each.
_FAR_FROM_AXIS, _HARMONICS = 0.5, 30


def by_scipy(xp: Any, name: str, *operands: Any) -> Any:
    """A function of complex NumPy arrays and numbers. Raises MissingFunctionError for arrays of another library."""
    check_on_host(xp, name)
    import numpy
    import scipy.special

    with numpy.errstate(all="ignore"):
        if name in _PARTS:
            of_all, place = _PARTS[name]
            return getattr(scipy.special, of_all)(*operands)[place]
        if name in _BY_ORDER:
            function, order = _BY_ORDER[name]
            return getattr(scipy.special, function)(order, *operands)
        if name == "polygamma":
            return _polygamma(*operands)
        return getattr(scipy.special, _OTHER_NAMES.get(name, name))(*operands)


def _polygamma(n: int, z: Any) -> Any:
    """The nth derivative of digamma, n > 0: DLMF 5.15.6 left of 1/2, 5.15.5 up to _FAR, and 5.15.8 from there on."""
    import numpy as np

    z = np.asarray(z)
    left = np.real(z) < 0.5
    right = np.where(left, 1.0 - z, z)
    value = _right_polygamma(n, right)
    if not left.any():
        return value
    return np.where(left, (-1.0) ** n * value - _slope_of_cotangent(n, z), value)


def _slope_of_cotangent(n: int, z: Any) -> Any:
    """The nth derivative of pi*cot(pi*z), n > 0; far from the real axis by its Fourier series, which does not cancel."""
    import numpy as np

    # The cotangent has the period 1.
    reduced = z - np.round(np.real(z))
    far = np.abs(np.imag(z)) > _FAR_FROM_AXIS
    near = math.pi ** (n + 1) * cotangent_derivative(n, 1.0 / np.tan(math.pi * np.where(far, 0.25, reduced)))
    side = np.where(np.imag(z) < 0, -2j, 2j) * math.pi
    wave = np.exp(side * np.where(far, reduced, 1j * np.sign(np.imag(side))))
    series = -side * side**n * sum(k**n * wave**k for k in range(1, _HARMONICS))
    return np.where(far, series, near)


def _right_polygamma(n: int, z: Any) -> Any:
    import numpy as np
    from scipy.special import bernoulli

    sign = (-1.0) ** (n + 1)
    total = np.zeros_like(z)
    for _ in range(int(_FAR)):
        near = np.real(z) < _FAR
        total = total + np.where(near, math.factorial(n) / np.where(near, z, 1.0) ** (n + 1), 0.0)
        z = np.where(near, z + 1.0, z)
    series = math.factorial(n - 1) / z**n + math.factorial(n) / (2.0 * z ** (n + 1))
    for k, number in enumerate(bernoulli(2 * _TERMS)[2::2], 1):
        series = series + number * (math.factorial(2 * k + n - 1) / math.factorial(2 * k)) / z ** (2 * k + n)
    return sign * (total + series)


def dawsn_derivative(xp: Any, z: Any, n: int) -> Any:
    """The nth derivative of Dawson's integral D: by D' = 1 - 2*z*D, which cancels for large z. There D is
    sqrt(pi)*i/2*exp(-z**2), in the lower half-plane its negative, plus the asymptotic series DLMF 7.12.1."""
    value = by_scipy(xp, "dawsn", z)
    if not n:
        return value
    import numpy as np

    with np.errstate(all="ignore"):
        z = np.asarray(z)
        far = np.abs(z) > _DAWSON_FAR
        before, value = value, 1.0 - 2.0 * z * value
        for k in range(1, n):
            before, value = value, -2.0 * (z * value + k * before)
        if not far.any():
            return value
        inverse = 1.0 / np.where(far, z, _DAWSON_FAR)
        total = 0.0 * inverse
        for k in range(_DAWSON_TERMS, -1, -1):
            rise = math.prod((2 * k + 2 + j) / (2 * k + j) for j in range(1, n + 1)) * (k + 0.5)
            total = 1.0 + total * inverse * inverse * rise
        series = total * (math.factorial(n) * 0.5 * (-1.0) ** n) * inverse ** (n + 1)
        # The nth derivative of the exponential is a Hermite polynomial times it.
        earlier, hermite = np.zeros_like(z), np.ones_like(z)
        for k in range(n):
            earlier, hermite = hermite, -2.0 * (z * hermite + k * earlier)
        wave = 0.5j * math.sqrt(math.pi) * np.sign(np.imag(z)) * hermite * np.exp(-z * z)
        return np.where(far, series + wave, value)


# The Euler-Maclaurin formula is used after the first _FIRST + abs(Im s)/_TURN terms: those that it leaves out fall by
# a factor of about (abs(s) + 2*k)/(2*pi*first) each.
_FIRST, _TURN = 18, 1.5
# From this real part on, the terms beyond the first ones are below rounding errors.
_FAR_RIGHT = 60.0
# The cost of a term in eighths of a step, and the numbers for which a term takes an eighth more.
_TERM, _NUMBERS = 8, 5


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
        limits.charge_steps(first * (_TERM + int(chosen.sum()) // _NUMBERS))
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
