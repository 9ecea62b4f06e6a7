"""Functions that an array library lacks, or computes with other edge values, expressed in functions that it has.

`xp` is the namespace of the library, `x` one of its floating-point arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from gradcli.arrays.dtypes import PYTHON_NUMBERS
from gradcli.type_hints import Any

Array = Any

# A scale whose square is negligible beside 1 and still representable in float32.
SMALL = 2.0**-54
# For arguments of at least this, Stirling's series with the terms below is accurate to rounding.
STIRLING = 10.0
_EULER = 0.57721566490153286
# The asymptotic expansion of Bessel functions by modulus and phase is accurate to rounding with _PHASE_TERMS terms for
# x > BESSEL_FAR and x > BESSEL_FAR_BY_ORDER*abs(v). A phase shift beyond _LOST_PHASE has no correct digits left.
BESSEL_FAR, BESSEL_FAR_BY_ORDER, _PHASE_TERMS, _LOST_PHASE = 25.0, 4.0, 16, 1e15
# The number of terms that suffices for orders up to 1.
_LOW_PHASE_TERMS = 9
_BESSEL_NODES = 16
# Dekker's constant: multiplying by it splits a float64 into two halves of 26 bits.
_SPLIT = 2.0**27 + 1.0
# B(2k)/(2k(2k-1)), DLMF 5.11.1.
_STIRLING_COEFFICIENTS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def as_arrays(xp: Any, *operands: Any) -> Sequence[Array]:
    """The operands, with Python numbers converted to arrays like the others.

    A library may not accept two plain numbers in `where` or `log`.
    """
    zero = next((xp.zeros_like(o) for o in operands if type(o) not in PYTHON_NUMBERS), 0.0)
    return [o + zero if type(o) in PYTHON_NUMBERS else o for o in operands]


def product_and_rest(x: Array, y: Array) -> tuple[Array, Array]:
    """x*y rounded, and its rounding error, by T. Dekker, Numerische Mathematik 18 (1971)."""
    parts = []
    for factor in (x, y):
        scaled = factor * _SPLIT
        high = scaled - (scaled - factor)
        parts.append((high, factor - high))
    product = x * y
    (a, b), (c, d) = parts
    return product, ((a * c - product) + a * d + b * c) + b * d


def heaviside(xp: Any, x: Array, y: Any) -> Array:
    """0 below 0, y at 0, 1 above; nan stays nan."""
    # The innermost choice has `x` as an operand, because two Python numbers alone would give float64.
    return xp.where(xp.equal(x, 0.0), y, xp.where(xp.greater(x, 0.0), 1.0, xp.where(xp.less(x, 0.0), 0.0, x)))


def remainder(xp: Any, x: Array, y: Array, plain: Callable[[Array, Array], Array]) -> Array:
    """The remainder as `plain` computes it, but a zero gets the sign of the divisor."""
    value = plain(x, y)
    return xp.where(xp.equal(value, 0.0), xp.copysign(xp.zeros_like(value), y), value)


def floor_divide(xp: Any, x: Array, y: Array) -> Array:
    """The floor of the quotient x/y, computed from the exact remainder."""
    quotient, rest = xp.divide(x, y), xp.fmod(x, y)
    opposite = xp.logical_and(xp.not_equal(rest, 0.0), xp.not_equal(xp.less(rest, 0.0), xp.less(y, 0.0)))
    value = xp.round(xp.divide(x - rest, y))
    value = xp.where(opposite, value - 1.0, value)
    value = xp.where(xp.equal(value, 0.0), xp.copysign(xp.zeros_like(value), quotient), value)
    return xp.where(xp.equal(y, 0.0), quotient, value)


def cbrt(xp: Any, x: Array) -> Array:
    """The cube root, negative for negative x: a power, refined by one step of Newton's method."""
    usable = xp.logical_and(xp.isfinite(x), xp.not_equal(x, 0.0))
    safe = xp.where(usable, x, 1.0)
    root = xp.copysign(xp.pow(xp.abs(safe), 1.0 / 3.0), safe)
    root = root - (root - safe / (root * root)) / 3.0
    return xp.where(usable, root, x)


def gamma(xp: Any, x: Array) -> Array:
    """The gamma function, computed in float64 by its logarithm.

    It is nan at -1, -2, …, and inf with the sign of x at 0.
    """
    wide = xp.astype(x, "float64")
    whole = xp.equal(wide, xp.floor(wide))
    odd = xp.not_equal(xp.remainder(xp.floor(wide), 2.0), 0.0)
    negative = xp.less(wide, 0.0)
    pole = xp.logical_and(whole, negative)
    size = xp.exp(xp.lgamma(xp.where(pole, 1.0, wide)))
    value = xp.where(xp.logical_and(negative, odd), -size, size)
    value = xp.where(xp.equal(wide, 0.0), xp.copysign(math.inf, wide), xp.where(pole, math.nan, value))
    return xp.astype(value, xp.dtype_name(x))


def sigmoid(xp: Any, x: Array) -> Array:
    """1/(1 + exp(-x)), without overflow of exp(-x)."""
    e = xp.exp(-xp.abs(x))
    return xp.where(xp.less(x, 0.0), e, 1.0) / (1.0 + e)


def sech(xp: Any, x: Array) -> Array:
    """1/cosh(x), without overflow of cosh(x)."""
    e = xp.exp(-xp.abs(x))
    return (e + e) / (1.0 + e * e)


def csch(xp: Any, x: Array) -> Array:
    """1/sinh(x), without overflow of sinh(x)."""
    size = xp.abs(x)
    return xp.copysign(xp.divide(2.0 * xp.exp(-size), -xp.expm1(-2.0 * size)), x)


def sech_square(xp: Any, x: Array) -> Array:
    """1/cosh(x)**2, without overflow of cosh(x)**2."""
    inverse = 1.0 / xp.cosh(x)
    return inverse * inverse


def logcosh(xp: Any, x: Array) -> Array:
    """log(cosh(x)), which is linear to rounding for abs(x) > 20."""
    size = xp.abs(x)
    bent = xp.minimum(size, 20.0)
    half = xp.sinh(0.5 * bent)
    return xp.log1p(2.0 * (half * half)) + (size - bent)


def tanhshrink(xp: Any, x: Array) -> Array:
    """x - tanh(x), by the Taylor series of tanh for abs(x) < 0.5 to avoid cancellation."""
    near = xp.less(xp.abs(x), 0.5)
    w = xp.where(near, x, 0.0)
    square, total = w * w, 0.0 * w
    for coefficient in _tanh_coefficients():
        total = coefficient + total * square
    return xp.where(near, -(total * square * w), x - xp.tanh(x))


@cache
def _tanh_coefficients() -> Sequence[float]:
    """The coefficients of x**35, …, x**5, x**3 in the Taylor series of tanh, from y' = 1 - y**2."""
    found = [1.0]
    for k in range(1, 18):
        found.append(-math.fsum(a * b for a, b in zip(found, reversed(found))) / (2 * k + 1))
    return found[:0:-1]


def sinpi(xp: Any, x: Array) -> Array:
    """sin(pi*x), with full relative accuracy near its zeros."""
    whole = xp.round(x)
    value = xp.sin(math.pi * (x - whole))
    return xp.where(xp.equal(xp.remainder(whole, 2.0), 0.0), value, 0.0 - value)


def cospi(xp: Any, x: Array) -> Array:
    """cos(pi*x), with full relative accuracy near its zeros."""
    whole = xp.round(x)
    rest = xp.abs(x - whole)
    low = xp.less(rest, 0.25)
    value = xp.where(low, xp.cos(math.pi * rest), xp.sin(math.pi * (0.5 - rest)))
    return xp.where(xp.equal(xp.remainder(whole, 2.0), 0.0), value, 0.0 - value)


def over_one_plus_square(xp: Any, x: Array) -> Array:
    """1/(1 + x**2), scaled by a power of 2, which rounds nothing and keeps the square from overflowing."""
    scaled = x * SMALL
    return SMALL**2 / (SMALL**2 + scaled * scaled)


@cache
def _lgamma_coefficients() -> Sequence[float]:
    """The coefficients (-1)**k*(zeta(k) - 1)/k for k = 29, …, 3, 2.

    zeta(k) is a sum up to n, with the remainder by the Euler-Maclaurin formula, DLMF 25.2.9.
    """
    n = 50.0

    def zeta_minus_one(k: int) -> float:
        rest = n / (k - 1) + 0.5 + k / (12 * n) - math.prod(range(k, k + 3)) / (720 * n**3)
        rest += math.prod(range(k, k + 5)) / (30240 * n**5)
        return math.fsum([rest * n**-k, *(m**-k for m in range(2, int(n)))])

    return tuple((-1.0) ** k * zeta_minus_one(k) / k for k in range(29, 1, -1))


def lgamma(xp: Any, x: Array, plain: Callable[[Array], Array]) -> Array:
    """The logarithm of the magnitude of the gamma function, with full relative accuracy at its zeros.

    Near its zeros 1 and 2 it is the Taylor series DLMF 5.7.3; elsewhere `plain` computes it.
    """
    low, near = xp.less(x, 1.5), xp.logical_and(xp.greater(x, 0.5), xp.less(x, 2.5))
    w = xp.where(near, xp.where(low, x - 1.0, x - 2.0), 0.0)
    total = 0.0 * w
    for coefficient in _lgamma_coefficients():
        total = coefficient + total * w
    series = w * ((1.0 - _EULER) + total * w)
    return xp.where(near, xp.where(low, series - xp.log1p(w), series), plain(x))


def polygamma(xp: Any, n: int, x: Array) -> Array:
    """The nth derivative of digamma: DLMF 25.11.12, 5.15.6 for x < 0, 5.15.8 for large x."""
    if not n:
        return xp.digamma(x)
    sign, factorial = (-1.0) ** (n + 1), float(math.factorial(n))
    negative = xp.less_equal(x, 0.0)
    right = xp.where(negative, 1.0 - x, x)
    large = xp.greater(right, 1e17)
    value = sign * factorial * xp.zeta(float(n + 1), xp.where(large, 1.0, right))
    value = xp.where(large, sign * (factorial / n) * xp.pow(xp.where(large, right, 1.0), float(-n)), value)
    fraction = xp.where(negative, x - xp.round(x), 0.25)
    pole = xp.equal(fraction, 0.0)
    cotangent = 1.0 / xp.tan(math.pi * xp.where(pole, 0.25, fraction))
    mirrored = -sign * value - math.pi ** (n + 1) * cotangent_derivative(n, cotangent)
    return xp.where(negative, xp.where(pole, sign * math.inf, mirrored), value)


def cotangent_derivative(n: int, c: Array) -> Array:
    """The nth derivative of the cotangent as a polynomial in the cotangent `c`, from c' = -(1 + c**2)."""
    polynomial = [0, 1]
    for _ in range(n):
        slope = [k * p for k, p in enumerate(polynomial)][1:]
        polynomial = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    total = 0.0 * c
    for coefficient in reversed(polynomial):
        total = total * c + float(coefficient)
    return total


def corrected_cube_root(x: Any, root: Any) -> Any:
    """A cube root after one step of Newton's method, for numbers and arrays from 1e-280 to 1e280."""
    # The leading 17 bits are split off, because their cube is exact.
    shifted = root * 68719476737.0
    high = shifted - (shifted - root)
    low = root - high
    rest = x - high * high * high - low * (3.0 * high * root + low * low)
    return root + rest / (3.0 * root * root)


def stirling(z: Array) -> Array:
    """The correction lgamma(z) - ((z - 1/2)*log(z) - z + log(2*pi)/2) of Stirling's formula, for z >= 10."""
    inverse = 1.0 / z
    square = inverse * inverse
    total = 0.0 * z
    for coefficient in reversed(_STIRLING_COEFFICIENTS):
        total = total * square + coefficient
    return total * inverse


# B(2k)/(2k), DLMF 5.11.2.
_DIGAMMA_COEFFICIENTS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def digamma_rise(xp: Any, x: Array, y: Array) -> Array:
    """digamma(x + y) - digamma(x), without cancellation where x and x + y are positive.

    The recurrence DLMF 5.5.2 shifts x by 10. There the asymptotic series, DLMF 5.11.2, are subtracted term by term:
    with p = 1/(x + y) and q = 1/x, the difference p**(2k) - q**(2k) follows from that for k - 1.
    """
    x, y = as_arrays(xp, x, y)
    positive = xp.logical_and(xp.greater(x, 0.0), xp.greater(x + y, 0.0))
    low, step = xp.where(positive, x, 1.0), xp.where(positive, y, 1.0)
    total = 0.0 * low
    for k in range(10):
        total = total + step / (low + (k + step)) / (low + k)
    z = low + 10.0
    p, q = 1.0 / (z + step), 1.0 / z
    minus = -(step * p) * q
    total = total + xp.log1p(step * q) - 0.5 * minus
    p, q, minus = p * p, q * q, minus * (p + q)
    power, difference = q, minus
    for coefficient in _DIGAMMA_COEFFICIENTS:
        total = total - coefficient * difference
        power, difference = power * q, p * difference + power * minus
    plain = xp.digamma(xp.where(positive, 1.0, x + y)) - xp.digamma(xp.where(positive, 1.0, x))
    return xp.where(positive, total, plain)


def betaln(xp: Any, a: Array, b: Array) -> Array:
    """log(beta(a, b)), without cancellation for large operands: Stirling's series, DLMF 5.11.1."""
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    plain = xp.lgamma(small) + xp.lgamma(large) - xp.lgamma(small + large)
    one, both = (xp.logical_and(xp.greater(small, low), xp.greater_equal(large, STIRLING)) for low in (0.0, STIRLING))
    s, t = xp.where(both, small, STIRLING), xp.where(one, large, STIRLING)
    u = xp.where(one, small, 1.0)
    rest = -(t - 0.5) * xp.log1p(u / t) + stirling(t) - stirling(u + t)
    with_one = xp.lgamma(u) - u * xp.log(u + t) + u + rest
    with_both = s * xp.log(s / (s + t)) - 0.5 * xp.log(s) + 0.5 * math.log(2 * math.pi) + stirling(s) + rest
    value = xp.where(both, with_both, xp.where(one, with_one, plain))
    value = xp.where(xp.logical_and(one, xp.equal(large, math.inf)), -math.inf, value)
    return xp.where(xp.logical_and(xp.equal(small, 0.0), xp.greater_equal(large, 0.0)), math.inf, value)


def _sign_of_gamma(xp: Any, x: Array) -> Array:
    """The sign of gamma(x): that of a negative x is the parity of floor(x), and nan where x is a whole number < 0."""
    right = xp.greater_equal(x, 0.0)
    left = xp.where(right, -0.5, x)
    below = xp.floor(left)
    sign = 1.0 - 2.0 * (below - 2.0 * xp.floor(0.5 * below))
    return xp.where(right, 1.0, xp.where(xp.equal(below, left), math.nan, sign))


def beta(xp: Any, a: Array, b: Array) -> Array:
    """gamma(a)*gamma(b)/gamma(a + b); 0 at a pole of gamma(a + b) alone."""
    size = xp.exp(betaln(xp, a, b))
    sign = _sign_of_gamma(xp, a) * _sign_of_gamma(xp, b) * _sign_of_gamma(xp, a + b)
    return xp.where(xp.equal(size, 0.0), size, sign * size)


def _mirrored(xp: Any, function: Callable[[Array], Array], n: int, x: Array) -> Array:
    """Extend a Bessel function of integer order n from x >= 0 to negative x: it has the parity of n."""
    value = function(xp.abs(x))
    return xp.where(xp.less(x, 0.0), -value, value) if n % 2 else value


def _series(x: Array, n: int, terms: int, sign: float) -> Array:
    """(x/2)**n/n! * sum((sign*x**2/4)**k * n!/(k!*(n + k)!)), DLMF 10.2.2 and 10.25.2."""
    quarter = sign * 0.25 * (x * x)
    total = 0.0 * x + 1.0
    for k in range(terms, 0, -1):
        total = 1.0 + total * quarter * (1.0 / (k * (n + k)))
    for k in range(1, n + 1):
        total = total * (0.5 * x) * (1.0 / k)
    return total


def whole_iv(xp: Any, n: int, x: Array) -> Array:
    """The modified Bessel function of the first kind of integer order n > 1.

    Computed for small x by its series, whose terms are all positive; for larger x, where that loses no digits, by the
    recurrence from orders 0 and 1 (DLMF 10.29.1).
    """
    near = max(30.0, n * n / 4.0)

    def right(x: Array) -> Array:
        inside = xp.less_equal(x, near)
        far = xp.where(inside, near, x)
        first = before = xp.i0(far)
        value = xp.i1(far)
        for k in range(1, n):
            before, value = value, before - (2.0 * k / far) * value
        value = xp.where(xp.isfinite(first), value, first)
        return xp.where(inside, _series(xp.where(inside, x, 0.0), n, int(near) + 30, 1.0), value)

    return _mirrored(xp, right, n, x)


def jv(xp: Any, n: int, x: Array) -> Array:
    """The Bessel function of the first kind of integer order n.

    Computed for x < max(4, n) by its series, beyond by the recurrence from orders 0 and 1 (DLMF 10.6.1).
    """
    near = max(4.0, float(n))

    def right(x: Array) -> Array:
        inside = xp.less(x, near)
        far = xp.where(inside, near, x)
        before, value = _bessel_j(xp, 0, far), _bessel_j(xp, 1, far)
        for k in range(1, n):
            before, value = value, (2.0 * k / far) * value - before
        return xp.where(inside, _series(xp.where(inside, x, 0.0), n, n + 25, -1.0), value if n else before)

    return _mirrored(xp, right, n, x)


def _bessel_j(xp: Any, n: int, x: Array) -> Array:
    """j0 or j1 for x >= 4: Bessel's integral, or the modulus and phase for large x."""
    far = xp.logical_and(xp.greater(x, BESSEL_FAR), xp.isfinite(x))
    value = far_bessel(xp, float(n), xp.where(far, x, BESSEL_FAR))
    near = _integral(xp, n, xp.where(xp.greater(x, BESSEL_FAR), 0.0, x))
    return xp.where(far, value, xp.where(xp.equal(x, math.inf), math.nan, near))


def bessel_y(xp: Any, n: int, x: Array, plain: Callable[[Array], Array]) -> Array:
    """y0 or y1 as `plain` computes it, but for large x by the modulus and phase."""
    far = xp.logical_and(xp.greater(x, BESSEL_FAR), xp.isfinite(x))
    return xp.where(far, far_bessel(xp, float(n), xp.where(far, x, BESSEL_FAR), True), plain(xp.where(far, 1.0, x)))


def _integral(xp: Any, n: int, x: Array) -> Array:
    """Bessel's integral, DLMF 10.9.1, by the midpoint rule, whose error is below rounding for a periodic integrand."""
    total = 0.0 * x
    for k in range(_BESSEL_NODES):
        sine = math.sin((k + 0.5) * math.pi / (2 * _BESSEL_NODES))
        total = total + (sine * xp.sin(sine * x) if n else xp.cos(sine * x))
    return total * (1.0 / _BESSEL_NODES)


def far_bessel(xp: Any, v: Any, x: Array, second: bool = False) -> Array:
    """The Bessel function of order v, of the second kind if `second` else of the first, for x > 25 and x > 4*abs(v).

    Computed by its modulus and phase, DLMF 10.18.17 and 10.18.18. The phase shift is kept separate from x, so that the
    cosine and sine of x lose no digits. The coefficients are those of (size/(2*x))**2, so that they do not overflow.
    """
    low = type(v) is float and abs(v) <= 1.0
    terms = _LOW_PHASE_TERMS if low else _PHASE_TERMS
    size = max(abs(2.0 * v), 1.0) if type(v) is float else xp.maximum(xp.abs(2.0 * v), 1.0)
    ratio = 2.0 * v / size
    amplitudes, slopes = [1.0], [1.0]
    for k in range(1, terms + 1):
        odd = (2 * k - 1) / size
        amplitudes.append(amplitudes[-1] * ((ratio - odd) * (ratio + odd) * ((k - 0.5) / k)))
        # The derivative of the phase is the reciprocal of the squared modulus.
        slopes.append(-sum(a * b for a, b in zip(amplitudes[1:], reversed(slopes))))
    inverse = size * 0.5 / x
    square = inverse * inverse
    amplitude, shift = amplitudes[terms] * square, slopes[terms] * (1.0 / (2 * terms - 1)) * square
    for k in range(terms - 1, 0, -1):
        amplitude = (amplitude + amplitudes[k]) * square
        shift = (shift + slopes[k] * (1.0 / (2 * k - 1))) * square
    shift = x * shift
    turns = (v + second) % 4.0 if type(v) is float else xp.remainder(v + 1.0 if second else v, 4.0)
    start = math.pi * (0.5 * turns + 0.25)
    cosine, sine = _turned(start, shift) if low else (xp.cos(shift + start), xp.sin(shift + start))
    value = xp.cos(x) * cosine + xp.sin(x) * sine
    value = value * xp.sqrt((1.0 + amplitude) * ((2.0 / math.pi) / x))
    return value if low else xp.where(xp.less(xp.abs(shift), _LOST_PHASE), value, math.nan)


def _turned(start: float, shift: Array) -> tuple[Array, Array]:
    """The cosine and sine of start + shift for shifts below 1/64, where these polynomials are accurate to rounding."""
    square = shift * shift
    cosine = 1.0 - square * (0.5 - square * (1 / 24 - square * (1 / 720)))
    sine = shift * (1.0 - square * (1 / 6 - square * (1 / 120)))
    return math.cos(start) * cosine - math.sin(start) * sine, math.sin(start) * cosine + math.cos(start) * sine


class SpecialFunctions:
    """A mixin with the special functions that every library except NumPy with SciPy takes from this module."""

    def polygamma(self, n: int, x: Array) -> Array:
        return polygamma(self, n, x)

    def whole_iv(self, n: int, x: Array) -> Array:
        return whole_iv(self, n, x)

    def jv(self, n: int, x: Array) -> Array:
        return jv(self, n, x)
