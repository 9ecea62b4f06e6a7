"""Functions of SciPy that return several arrays or have inaccurate regions, as functions that return one array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

Array = Any

# SciPy has no Airy functions beyond this magnitude, where two terms of their asymptotic expansions, DLMF 9.7, suffice.
_AIRY_FAR = 1e6
_U, _V = 5 / 72, -7 / 72
# Below this abs(a)*max(abs(h), 1), three terms of the series of Owen's T in a are accurate to rounding.
_OWEN_SMALL = 1e-4
# Below this abs(x), the second term of the series of spherical Bessel functions, x**2/(4*n + 6) of the first, is far
# below rounding.
_SMALL = 1e-50
# For t**2*(1 + 1/df) below this, three terms of the series of Student's CDF are accurate to rounding.
_STUDENT_NEAR = 1e-6
# The largest relative Newton step by which an inverse of SciPy is corrected; a larger one means that the step is
# unreliable.
_STEP = 1e-6


def _airy(
    place: int, correction: float, waves: Callable[[Array, Array], tuple[Array, Array]], power: float, right: float
) -> Any:
    """One of Ai, Ai', Bi, Bi'. For large x it is the constant `right`, for large -x an oscillating expansion."""

    def function(x: Array) -> Array:
        far = np.abs(x) > _AIRY_FAR
        near = special.airy(np.where(far, 1.0, x))[place]
        size = np.abs(np.where(far, x, 1.0))
        phase = size * np.sqrt(size) / 1.5
        leading, following = waves(np.sin(phase - 0.25 * math.pi), np.cos(phase - 0.25 * math.pi))
        wave = (leading + correction / phase * following) * np.power(size, power) / math.sqrt(math.pi)
        # SciPy returns nan where the value overflows.
        value = np.where(np.isnan(near) & (x > 0), right, near)
        return np.where(far, np.where(x > 0, right, wave), value)

    return function


airyai = _airy(0, _U, lambda s, c: (c, s), -0.25, 0.0)
airyaiprime = _airy(1, _V, lambda s, c: (s, -c), 0.25, 0.0)
airybi = _airy(2, _U, lambda s, c: (-s, c), -0.25, math.inf)
airybiprime = _airy(3, _V, lambda s, c: (c, s), 0.25, math.inf)


def _part(function: Any, place: int) -> Any:
    return lambda x: function(x)[place]


fresnels, fresnelc = (_part(special.fresnel, place) for place in range(2))
si, ci = (_part(special.sici, place) for place in range(2))
shi, chi = (_part(special.shichi, place) for place in range(2))


def spherical_jn(x: Array, *, n: int) -> Array:
    return special.spherical_jn(n, x)


def spherical_yn(x: Array, *, n: int) -> Array:
    return special.spherical_yn(n, x)


def spherical_in(x: Array, *, n: int) -> Array:
    """SciPy's function, except near 0, where SciPy returns 0: there the leading term of DLMF 10.53.3."""
    small = np.abs(x) < _SMALL
    double = float(math.prod(range(1, 2 * n + 2, 2)))
    leading = np.power(np.where(small, x, 0.0), n) / double
    return np.where(small, leading, special.spherical_in(n, np.where(small, 1.0, x)))


def spherical_kn(x: Array, *, n: int) -> Array:
    return np.where(np.less(x, 0.0), np.nan, special.spherical_kn(n, np.abs(x)))


def owens_t(h: Array, a: Array) -> Array:
    size = np.maximum(np.abs(h), 1.0)
    small = np.abs(a) * size < _OWEN_SMALL
    s = np.where(small, a, 0.0)
    half = np.where(np.isfinite(h), 0.5 * np.square(h), 1e300)
    second = 1.0 + half
    square = s * s
    series = s * (1.0 - square * (second / 3.0 - square * (second + 0.5 * half * half) / 5.0))
    near = np.exp(-half) * series / (2.0 * math.pi)
    return np.where(small, near, special.owens_t(h, np.where(small, 1.0, a)))


def stdtr(df: Array, t: Array) -> Array:
    """SciPy's function, except around 0, where SciPy loses digits: there the Taylor series."""
    near = np.square(t) * (1.0 + 1.0 / df) < _STUDENT_NEAR
    small = np.where(near, t, 0.0)
    square = np.square(small) / df
    series = small * (1.0 - (df + 1.0) * square * (1.0 / 6.0 - (df + 3.0) * square / 40.0))
    value = 0.5 + series / (np.sqrt(df) * special.beta(0.5, 0.5 * df))
    return np.where(near, value, special.stdtr(df, np.where(near, 1.0, t)))


def _polished(x: Array, difference: Callable[[Array], Array], slope: Callable[[Array], Array]) -> Array:
    """Refine an inverse of SciPy, which may have only nine digits, by one Newton step if that step is small."""
    step = difference(x) / slope(x)
    return np.where(np.abs(step) < _STEP * np.abs(x), x - step, x)


def _gamma_density(a: Array, x: Array) -> Array:
    return np.exp(special.xlogy(a - 1.0, x) - x - special.gammaln(a))


def _beta_density(a: Array, b: Array, x: Array) -> Array:
    return np.exp(special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b))


def gammaincinv(a: Array, p: Array) -> Array:
    return _polished(special.gammaincinv(a, p), lambda x: special.gammainc(a, x) - p, lambda x: _gamma_density(a, x))


def gammainccinv(a: Array, p: Array) -> Array:
    return _polished(special.gammainccinv(a, p), lambda x: special.gammaincc(a, x) - p, lambda x: -_gamma_density(a, x))


def betaincinv(a: Array, b: Array, p: Array) -> Array:
    return _polished(
        special.betaincinv(a, b, p), lambda x: special.betainc(a, b, x) - p, lambda x: _beta_density(a, b, x)
    )


def betainccinv(a: Array, b: Array, p: Array) -> Array:
    return _polished(
        special.betainccinv(a, b, p), lambda x: special.betaincc(a, b, x) - p, lambda x: -_beta_density(a, b, x)
    )


def stdtrit(df: Array, p: Array) -> Array:
    def slope(t: Array) -> Array:
        power = 0.5 * (df + 1.0) * np.log1p(t * t / df)
        return np.exp(-power - special.betaln(0.5, 0.5 * df)) / np.sqrt(df)

    return _polished(special.stdtrit(df, p), lambda t: stdtr(df, t) - p, slope)
