"""The references for every function of the table: mpmath with 50 digits, NumPy and SciPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.spatial

Interval = tuple[float, float]

mpf = mpmath.mpf
ANYWHERE: Interval = (-20.0, 20.0)
POSITIVE: Interval = (1e-3, 20.0)
INSIDE: Interval = (-0.999, 0.999)
FRACTION: Interval = (1e-3, 0.999)


class Elementwise(NamedTuple):
    """An elementwise function of exact numbers, and the intervals from which its operands are drawn.

    `before` and `then` are arguments before and after the operands.
    """

    function: Callable[..., Any]
    domains: Sequence[Interval]
    before: tuple[Any, ...] = ()
    then: tuple[Any, ...] = ()


def of_one(function: Callable[..., Any], domain: Interval = ANYWHERE, **fields: Any) -> Elementwise:
    return Elementwise(function, (domain,), **fields)


def of_two(
    function: Callable[..., Any], first: Interval = ANYWHERE, second: Interval | None = None, **fields: Any
) -> Elementwise:
    return Elementwise(function, (first, second or first), **fields)


def _trunc(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x))


def _normal(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _normal_inverse(p: Any) -> Any:
    if p > 0.5:
        return -_normal_inverse(1 - p)
    # Newton's method for the logarithm, which is concave: it converges monotonically from below.
    y, step = -mpmath.sqrt(-2 * mpmath.log(2 * p)), mpmath.mpf(1)
    while abs(step) > mpmath.sqrt(mpmath.eps) * abs(y):
        step = mpmath.log(_normal(y) / p) * _normal(y) / mpmath.npdf(y)
        y -= step
    return y


def _multigammaln(a: Any) -> Any:
    return mpmath.log(mpmath.pi) * 3 / 2 + sum(mpmath.loggamma(a - mpf(i) / 2) for i in range(3))


def _hardsigmoid(x: Any) -> Any:
    return min(max(x + 3, 0), 6) / 6


def _selu(x: Any) -> Any:
    """SELU with PyTorch's decimal constants."""
    alpha, scale = mpf("1.6732632423543772848170429916717"), mpf("1.0507009873554804934193349852946")
    return scale * (x if x > 0 else alpha * mpmath.expm1(x))


def _inverse(function: Callable[..., Any], start: Callable[..., Any]) -> Callable[..., Any]:
    """The x at which a function equals p, the last operand, by the secant method starting from SciPy's value."""

    def inverse(*operands: Any) -> Any:
        *parameters, p = operands
        near = start(*map(float, operands))
        return mpmath.findroot(lambda x: function(*parameters, x) - p, (near, near * 0.999999), verify=False)

    return inverse


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(b, a, 0, 1 - x, regularized=True)


def _gammainc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _gammaincc(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, x, regularized=True)


def _by_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of a function by its first operand."""
    return lambda first, *others: mpmath.diff(lambda x: function(x, *others), first)


def _ellipkm1_slope(p: Any) -> Any:
    m = 1 - p
    return -(mpmath.ellipe(m) - p * mpmath.ellipk(m)) / (2 * m * p)


def _spherical(cylinder: Callable[..., Any], x: Any) -> Any:
    """The spherical Bessel function of order 2, by that of order 5/2."""
    return mpmath.sqrt(mpmath.pi / (2 * x)) * cylinder(mpf(5) / 2, x)


def _owens_t(h: Any, a: Any) -> Any:
    return mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mpmath.pi)


def _student(df: Any, t: Any) -> Any:
    tail = mpmath.betainc(df / 2, mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _lpmv(x: Any) -> Any:
    """The associated Legendre function P(2, 1) with the Condon-Shortley phase."""
    return -3 * x * mpmath.sqrt(1 - x * x)


def _harmonic(theta: Any) -> Any:
    return -mpmath.sqrt(5 / (4 * mpmath.pi) / 6) * 3 * mpmath.cos(theta) * mpmath.sin(theta)


ELEMENTWISE = {
    "add": of_two(lambda x, y: x + y),
    "subtract": of_two(lambda x, y: x - y),
    "multiply": of_two(lambda x, y: x * y),
    "divide": of_two(lambda x, y: x / y),
    "negative": of_one(lambda x: -x),
    "identity": of_one(lambda x: x),
    "positive": of_one(lambda x: x),
    "cast": of_one(lambda x: x, then=("float64",)),
    "zeros_like": of_one(lambda x: 0),
    "ones_like": of_one(lambda x: 1),
    "reciprocal": of_one(lambda x: 1 / x),
    "remainder": of_two(lambda x, y: x - y * mpmath.floor(x / y)),
    "fmod": of_two(lambda x, y: x - y * _trunc(x / y)),
    "floor_divide": of_two(lambda x, y: mpmath.floor(x / y)),
    "abs": of_one(abs),
    "sign": of_one(mpmath.sign),
    "sgn": of_one(mpmath.sign),
    "floor": of_one(mpmath.floor),
    "ceil": of_one(mpmath.ceil),
    "round": of_one(mpmath.nint),
    "rint": of_one(mpmath.nint),
    "trunc": of_one(_trunc),
    "frac": of_one(lambda x: x - _trunc(x)),
    "maximum": of_two(max),
    "minimum": of_two(min),
    "fmax": of_two(max),
    "fmin": of_two(min),
    "nextafter": of_two(lambda x, y: math.nextafter(x, y)),
    "nan_to_num": of_one(lambda x: x),
    "lerp": of_two(lambda x, y: x + (y - x) * 0.25, then=(0.25,)),
    "addcmul": of_two(lambda x, y: x + 0.25 * y, then=(0.25,)),
    "addcdiv": of_two(lambda x, y: x + 4 * y, then=(0.25,)),
    "threshold": of_one(lambda x: x if x > 2 else -1, then=(2.0, -1.0)),
    "isinf": of_one(lambda x: False),
    "isposinf": of_one(lambda x: False),
    "isneginf": of_one(lambda x: False),
    "signbit": of_one(lambda x: x < 0),
    "logical_xor": of_two(lambda x, y: (x != 0) != (y != 0)),
    "ldexp": of_two(lambda x, y: x * mpmath.power(2, y), ANYWHERE, (-5.0, 5.0)),
    "isclose": of_two(lambda x, y: abs(x - y) <= mpf(1e-8) + mpf(1e-5) * abs(y)),
    "clamp_min": of_one(lambda x: max(x, -1), then=(-1.0,)),
    "clamp_max": of_one(lambda x: min(x, 2), then=(2.0,)),
    "rsub": of_two(lambda x, y: y - x),
    "clip": of_one(lambda x: min(max(x, -1), 2), then=(-1.0, 2.0)),
    "where": of_two(lambda x, y: x, before=(True,)),
    "heaviside": of_two(lambda x, y: int(x > 0)),
    "copysign": of_two(lambda x, y: abs(x) * mpmath.sign(y)),
    "less": of_two(lambda x, y: x < y),
    "less_equal": of_two(lambda x, y: x <= y),
    "greater": of_two(lambda x, y: x > y),
    "greater_equal": of_two(lambda x, y: x >= y),
    "equal": of_two(lambda x, y: x == y),
    "not_equal": of_two(lambda x, y: x != y),
    "isfinite": of_one(lambda x: True),
    "isnan": of_one(lambda x: False),
    "logical_not": of_one(lambda x: x == 0),
    "logical_and": of_two(lambda x, y: x != 0 and y != 0),
    "logical_or": of_two(lambda x, y: x != 0 or y != 0),
    "pow": of_two(mpmath.power, POSITIVE, (-10.0, 10.0)),
    "whole_power": of_one(lambda x: x**5, then=(5.0,)),
    "square": of_one(lambda x: x * x),
    "sqrt": of_one(mpmath.sqrt, POSITIVE),
    "rsqrt": of_one(lambda x: 1 / mpmath.sqrt(x), POSITIVE),
    "cbrt": of_one(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
    "exp": of_one(mpmath.exp),
    "exp2": of_one(lambda x: mpmath.power(2, x)),
    "expm1": of_one(mpmath.expm1),
    "log": of_one(mpmath.log, POSITIVE),
    "log2": of_one(lambda x: mpmath.log(x, 2), POSITIVE),
    "log10": of_one(mpmath.log10, POSITIVE),
    "log1p": of_one(mpmath.log1p, (-0.999, 20.0)),
    "sigmoid": of_one(lambda x: 1 / (1 + mpmath.exp(-x))),
    "logsigmoid": of_one(lambda x: -mpmath.log1p(mpmath.exp(-x))),
    "softplus": of_one(lambda x: mpmath.log1p(mpmath.exp(x))),
    "logaddexp": of_two(lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y))),
    "logaddexp2": of_two(lambda x, y: mpmath.log(mpmath.power(2, x) + mpmath.power(2, y), 2)),
    "logit": of_one(lambda x: mpmath.log(x / (1 - x)), FRACTION),
    "xlogy": of_two(lambda x, y: x * mpmath.log(y), ANYWHERE, POSITIVE),
    "xlog1py": of_two(lambda x, y: x * mpmath.log1p(y), ANYWHERE, (-0.999, 20.0)),
    "sin": of_one(mpmath.sin),
    "cos": of_one(mpmath.cos),
    "tan": of_one(mpmath.tan),
    "one_minus_square": of_one(lambda x: 1 - x * x),
    "asin": of_one(mpmath.asin, INSIDE),
    "acos": of_one(mpmath.acos, INSIDE),
    "atan": of_one(mpmath.atan),
    "over_one_plus_square": of_one(lambda x: 1 / (1 + x * x)),
    "atan2": of_two(mpmath.atan2),
    "hypot": of_two(mpmath.hypot),
    "sinh": of_one(mpmath.sinh),
    "cosh": of_one(mpmath.cosh),
    "tanh": of_one(mpmath.tanh),
    "sech": of_one(mpmath.sech),
    "sech_square": of_one(lambda x: mpmath.sech(x) ** 2),
    "logcosh": of_one(lambda x: mpmath.log(mpmath.cosh(x))),
    "sec": of_one(mpmath.sec),
    "csc": of_one(mpmath.csc),
    "cot": of_one(mpmath.cot),
    "csch": of_one(mpmath.csch),
    "coth": of_one(mpmath.coth),
    "sinpi": of_one(mpmath.sinpi),
    "cospi": of_one(mpmath.cospi),
    "asinh": of_one(mpmath.asinh),
    "acosh": of_one(mpmath.acosh, (1.0001, 20.0)),
    "atanh": of_one(mpmath.atanh, INSIDE),
    "sind": of_one(lambda x: mpmath.sinpi(mpmath.fmod(x, 360) / 180)),
    "cosd": of_one(lambda x: mpmath.cospi(mpmath.fmod(x, 360) / 180)),
    "tand": of_one(lambda x: mpmath.tan(mpmath.pi * mpmath.fmod(x, 180) / 180)),
    "asind": of_one(lambda x: mpmath.degrees(mpmath.asin(x)), INSIDE),
    "acosd": of_one(lambda x: mpmath.degrees(mpmath.acos(x)), INSIDE),
    "atand": of_one(lambda x: mpmath.degrees(mpmath.atan(x))),
    "deg2rad": of_one(mpmath.radians),
    "rad2deg": of_one(mpmath.degrees),
    "sinc": of_one(mpmath.sincpi),
    "relu": of_one(lambda x: max(x, 0)),
    "leaky_relu": of_two(lambda x, a: x if x > 0 else a * x),
    "elu": of_two(lambda x, a: x if x > 0 else a * mpmath.expm1(x)),
    "silu": of_one(lambda x: x / (1 + mpmath.exp(-x))),
    "gelu": of_one(lambda x: x * _normal(x)),
    "softsign": of_one(lambda x: x / (1 + abs(x))),
    "relu6": of_one(lambda x: min(max(x, 0), 6)),
    "hardtanh": of_one(lambda x: min(max(x, -1), 1)),
    "hardsigmoid": of_one(_hardsigmoid),
    "hardswish": of_one(lambda x: x * _hardsigmoid(x)),
    "celu": of_one(lambda x: x if x > 0 else mpmath.expm1(x)),
    "selu": of_one(_selu),
    "mish": of_one(lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x)))),
    "tanhshrink": of_one(lambda x: x - mpmath.tanh(x)),
    "softshrink": of_one(lambda x: max(x - 0.5, 0) + min(x + 0.5, 0)),
    "hardshrink": of_one(lambda x: x if abs(x) > 0.5 else 0),
    "factorial": of_one(lambda x: mpmath.gamma(x + 1), (1e-3, 30.0)),
    "comb": of_two(mpmath.binomial, (20.0, 40.0), (0.01, 20.0)),
    "perm": of_two(lambda n, k: mpmath.gamma(n + 1) / mpmath.gamma(n - k + 1), (20.0, 40.0), (0.01, 20.0)),
    "multigammaln": of_one(_multigammaln, (1.001, 20.0), then=(3,)),
    "erfcx": of_one(lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    "erfcinv": of_one(lambda x: -_normal_inverse(x / 2) / mpmath.sqrt(2), (1e-3, 1.999)),
    "log_ndtr": of_one(lambda x: mpmath.log1p(-_normal(-x)) if x > 0 else mpmath.log(_normal(x))),
    "norm_pdf": of_one(mpmath.npdf),
    "norm_cdf": of_one(_normal),
    "entr": of_one(lambda x: -x * mpmath.log(x), POSITIVE),
    "rel_entr": of_two(lambda x, y: x * mpmath.log(x / y), POSITIVE),
    "scaled_i": of_one(lambda x: mpmath.exp(-x) * mpmath.besseli(0, x), POSITIVE),
    "i0e": of_one(lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x)),
    "i1e": of_one(lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x)),
    "y0": of_one(lambda x: mpmath.bessely(0, x), (1e-3, 0.8)),
    "y1": of_one(lambda x: mpmath.bessely(1, x), (1e-3, 2.0)),
    "k0": of_one(lambda x: mpmath.besselk(0, x), POSITIVE),
    "k1": of_one(lambda x: mpmath.besselk(1, x), POSITIVE),
    "k0e": of_one(lambda x: mpmath.exp(x) * mpmath.besselk(0, x), POSITIVE),
    "k1e": of_one(lambda x: mpmath.exp(x) * mpmath.besselk(1, x), POSITIVE),
    "jv": of_one(lambda x: mpmath.besselj(2.5, x), (1e-3, 5.0), before=(2.5,)),
    "jv_of_number": of_one(lambda x: mpmath.besselj(2.5, x), (1e-3, 5.0), before=(2.5,)),
    "yv": of_one(lambda x: mpmath.bessely(2.5, x), (1e-3, 5.0), before=(2.5,)),
    "iv": of_one(lambda x: mpmath.besseli(2.5, x), (1e-3, 5.0), before=(2.5,)),
    "ive": of_one(lambda x: mpmath.exp(-x) * mpmath.besseli(2.5, x), (1e-3, 5.0), before=(2.5,)),
    "ive_slope": of_one(
        lambda x: mpmath.exp(-x) * (mpmath.besseli(2.5, x, 1) - mpmath.besseli(2.5, x)), (1e-3, 2.0), before=(2.5,)
    ),
    "rgamma": of_one(mpmath.rgamma, (1e-3, 20.0)),
    "gammasgn": of_one(lambda x: mpmath.sign(mpmath.gamma(x)), (-20.0, 20.0)),
    "partial_of_one": of_one(_ellipkm1_slope, FRACTION, then=("ellipkm1", (1,))),
    "partial_of_two": of_two(_by_first(mpmath.besselk), (0.3, 4.0), (0.5, 5.0), then=("kv", (1, 0))),
    "partial_of_three": Elementwise(
        _by_first(_betainc), ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)), then=("betainc", (1, 0, 0))
    ),
    "partial_of_four": Elementwise(
        _by_first(mpmath.hyp2f1), ((0.5, 4.0), (0.5, 4.0), (0.5, 4.0), (-2.0, 0.9)), then=("hyp2f1", (1, 0, 0, 0))
    ),
    "kv": of_two(mpmath.besselk, (0.3, 4.0), (1e-3, 5.0)),
    "kve": of_two(lambda v, x: mpmath.exp(x) * mpmath.besselk(v, x), (0.3, 4.0), (1e-3, 5.0)),
    "struve": of_two(mpmath.struveh, (0.3, 4.0), (1e-3, 5.0)),
    "modstruve": of_two(mpmath.struvel, (0.3, 4.0), (1e-3, 5.0)),
    "spherical_jn": of_one(lambda x: _spherical(mpmath.besselj, x), (1e-3, 5.0), before=(2,)),
    "spherical_yn": of_one(lambda x: _spherical(mpmath.bessely, x), (1e-3, 2.0), before=(2,)),
    "spherical_in": of_one(lambda x: _spherical(mpmath.besseli, x), (1e-3, 5.0), before=(2,)),
    "spherical_kn": of_one(lambda x: _spherical(mpmath.besselk, x), (1e-3, 5.0), before=(2,)),
    "airyai": of_one(mpmath.airyai, (-2.0, 5.0)),
    "airyaiprime": of_one(lambda x: mpmath.airyai(x, derivative=1), (-0.9, 5.0)),
    "airybi": of_one(mpmath.airybi, (-1.0, 5.0)),
    "airybiprime": of_one(lambda x: mpmath.airybi(x, derivative=1), (-2.0, 5.0)),
    "erfi": of_one(mpmath.erfi, (-5.0, 5.0)),
    "fresnels": of_one(mpmath.fresnels, (-3.0, 3.0)),
    "fresnelc": of_one(mpmath.fresnelc, (-3.0, 3.0)),
    "si": of_one(mpmath.si),
    "ci": of_one(mpmath.ci, (1e-3, 0.5)),
    "sinhc": of_one(lambda x: mpmath.sinh(x) / x),
    "shi": of_one(mpmath.shi),
    "chi": of_one(mpmath.chi, (0.6, 20.0)),
    "owens_t": of_two(_owens_t, (-2.0, 2.0), (0.1, 3.0)),
    "polylog": of_two(lambda s, z: mpmath.re(mpmath.polylog(s, z)), (0.5, 4.0), (-0.9, 0.9)),
    "ellipkinc": of_two(mpmath.ellipf, (0.1, 1.5), (-3.0, 0.9)),
    "ellipeinc": of_two(mpmath.ellipe, (0.1, 1.5), (-3.0, 0.9)),
    "ellipkm1": of_one(lambda p: mpmath.ellipk(1 - p), POSITIVE),
    "elliprf": Elementwise(mpmath.elliprf, (POSITIVE, POSITIVE, POSITIVE)),
    "elliprd": Elementwise(mpmath.elliprd, (POSITIVE, POSITIVE, POSITIVE)),
    "elliprg": Elementwise(mpmath.elliprg, (POSITIVE, POSITIVE, POSITIVE)),
    "elliprc": of_two(mpmath.elliprc, POSITIVE),
    "elliprj": Elementwise(mpmath.elliprj, (POSITIVE, POSITIVE, POSITIVE, POSITIVE)),
    "elliptic_e": of_one(mpmath.ellipe, (-20.0, 0.999)),
    "hyp0f1": of_two(mpmath.hyp0f1, (0.5, 4.0), (0.1, 5.0)),
    "hyp1f1": Elementwise(mpmath.hyp1f1, ((0.5, 4.0), (0.5, 4.0), (-3.0, 3.0))),
    "hyperu": Elementwise(mpmath.hyperu, ((0.5, 4.0), (0.5, 4.0), (0.1, 3.0))),
    "hyp2f1": Elementwise(mpmath.hyp2f1, ((0.5, 4.0), (0.5, 4.0), (0.5, 4.0), (-2.0, 0.9))),
    "gammaincinv": of_two(_inverse(_gammainc, scipy.special.gammaincinv), (0.5, 4.0), (0.1, 0.9)),
    "gammainccinv": of_two(_inverse(_gammaincc, scipy.special.gammainccinv), (0.5, 4.0), (0.1, 0.9)),
    "betaincc": Elementwise(_betaincc, ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9))),
    "betaincinv": Elementwise(_inverse(_betainc, scipy.special.betaincinv), ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9))),
    "betainccinv": Elementwise(_inverse(_betaincc, scipy.special.betainccinv), ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9))),
    "stdtr": of_two(_student, (0.5, 4.0), (-4.0, 4.0)),
    "stdtrit": of_two(_inverse(_student, scipy.special.stdtrit), (0.5, 4.0), (0.1, 0.4)),
    "acot": of_one(mpmath.acot),
    "asec": of_one(mpmath.asec, (1.001, 20.0)),
    "acsc": of_one(mpmath.acsc, (1.001, 20.0)),
    "acoth": of_one(mpmath.acoth, (1.001, 20.0)),
    "asech": of_one(mpmath.asech, FRACTION),
    "acsch": of_one(mpmath.acsch),
    "eval_hermite": of_one(lambda x: 8 * x**3 - 12 * x, (1.3, 5.0), before=(3,)),
    "eval_hermitenorm": of_one(lambda x: x**3 - 3 * x, (1.8, 5.0), before=(3,)),
    "eval_chebyt": of_one(lambda x: 4 * x**3 - 3 * x, (0.9, 5.0), before=(3,)),
    "eval_chebyu": of_one(lambda x: 8 * x**3 - 4 * x, (0.8, 5.0), before=(3,)),
    "eval_legendre": of_one(lambda x: (5 * x**3 - 3 * x) / 2, (0.8, 5.0), before=(3,)),
    "eval_laguerre": of_one(lambda x: (x * x - 4 * x + 2) / 2, (3.5, 9.0), before=(2,)),
    "eval_genlaguerre": of_two(lambda a, x: mpmath.laguerre(2, a, x), (0.1, 1.0), (5.0, 9.0), before=(2,)),
    "eval_gegenbauer": of_two(lambda a, x: mpmath.gegenbauer(3, a, x), (0.5, 4.0), (1.0, 2.0), before=(3,)),
    "eval_jacobi": Elementwise(
        lambda a, b, x: mpmath.jacobi(3, a, b, x), ((0.5, 4.0), (0.5, 4.0), (1.0, 2.0)), before=(3,)
    ),
    "lpmv": of_one(_lpmv, FRACTION, before=(1, 2)),
    "assoc_legendre": of_one(_lpmv, FRACTION, before=(2, 1)),
    "sph_legendre_p": of_one(_harmonic, (0.1, 1.4), before=(2, 1)),
    "Znm": of_two(lambda t, p: mpmath.sqrt(2) * _harmonic(t) * mpmath.cos(p), (0.1, 1.4), (0.1, 1.4), before=(2, 1)),
    "Max": of_two(max),
    "Min": of_two(min),
    "lowergamma": of_two(lambda s, x: mpmath.gammainc(s, 0, x), (0.5, 4.0), (0.1, 5.0)),
    "uppergamma": of_two(mpmath.gammainc, (0.5, 4.0), (0.1, 5.0)),
    "loggamma": of_one(mpmath.loggamma, (0.1, 0.9)),
    "exp1": of_one(mpmath.e1, POSITIVE),
    "expi": of_one(mpmath.ei),
    "expn": of_one(lambda x: mpmath.expint(3, x), POSITIVE, before=(3,)),
    "dawsn": of_one(lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)),
    "ellipk": of_one(mpmath.ellipk, (-20.0, 0.999)),
    "ellipe": of_one(mpmath.ellipe, (-20.0, 0.999)),
    "gamma_density": of_two(lambda a, x: x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a), POSITIVE),
    "beta_density": Elementwise(
        lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b), (POSITIVE, POSITIVE, FRACTION)
    ),
    "gammainc": of_one(lambda x: mpmath.gammainc(2.5, 0, x, regularized=True), POSITIVE, before=(2.5,)),
    "gammaincc": of_one(lambda x: mpmath.gammainc(2.5, x, regularized=True), POSITIVE, before=(2.5,)),
    "betainc": of_one(lambda x: mpmath.betainc(2.5, 1.5, 0, x, regularized=True), FRACTION, before=(2.5, 1.5)),
    "zeta": of_one(mpmath.zeta, (1.01, 20.0)),
    "riemann_zeta": of_one(mpmath.zeta, (1.01, 20.0)),
    "hurwitz_zeta": of_two(mpmath.zeta, (1.01, 20.0), POSITIVE),
    "lambertw": of_one(lambda x: mpmath.re(mpmath.lambertw(x)), (-0.36, 20.0)),
    "erf": of_one(mpmath.erf),
    "erfc": of_one(mpmath.erfc),
    "erfinv": of_one(mpmath.erfinv, INSIDE),
    "ndtr": of_one(_normal),
    "ndtri": of_one(_normal_inverse, FRACTION),
    "gamma": of_one(mpmath.gamma, (-10.0, 30.0)),
    "lgamma": of_one(lambda x: mpmath.re(mpmath.loggamma(x)), (-10.0, 100.0)),
    "digamma": of_one(mpmath.digamma, (-0.9, 20.0)),
    "polygamma": of_one(lambda x: mpmath.psi(3, x), POSITIVE, before=(3,)),
    "betaln": of_two(lambda a, b: mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b), POSITIVE),
    "beta": of_two(lambda a, b: mpmath.exp(mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)), POSITIVE),
    "digamma_rise": of_two(lambda x, y: mpmath.digamma(x + y) - mpmath.digamma(x), POSITIVE),
    "bessel_i": of_one(lambda x: mpmath.besseli(3, x), then=(3,)),
    "bessel_j": of_one(lambda x: mpmath.besselj(3, x), then=(3,)),
    "i0": of_one(lambda x: mpmath.besseli(0, x)),
    "i1": of_one(lambda x: mpmath.besseli(1, x)),
    "j0": of_one(lambda x: mpmath.besselj(0, x)),
    "j1": of_one(lambda x: mpmath.besselj(1, x)),
    "flat_sqrt": of_one(mpmath.sqrt, POSITIVE),
    "flat_root": of_one(lambda x: mpmath.root(x, 3), POSITIVE, then=(3.0,)),
}


def exactly(name: str, points: Sequence[Any]) -> np.ndarray:
    """The function at points (one array for each operand), computed with 50 digits and rounded once."""
    with mpmath.workdps(50):
        function = ELEMENTWISE[name].function
        return np.array([float(function(*map(mpf, map(float, point)))) for point in zip(*points)])


# --- functions of whole tensors, with the arguments of the entries


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, (list, tuple, np.ndarray)) else axis


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
        return function(np.asarray(x), axis=_axes(axis), keepdims=keepdims)

    return reference


def _norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: Any = False) -> Any:
    if ord == math.inf:
        return np.max(np.abs(x), axis=_axes(axis), keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=_axes(axis), keepdims=keepdims) ** (1 / ord)


def _logsumexp(x: Any, axis: Any = None, keepdims: Any = False, b: Any = 1.0) -> Any:
    return np.log(np.sum(b * np.exp(x), axis=_axes(axis), keepdims=keepdims))


def _transpose(x: Any, *axes: Any) -> Any:
    return np.swapaxes(x, *axes) if len(axes) == 2 else np.transpose(x, *axes)


def _scatter(x: Any, key: Any, shape: Any) -> Any:
    out = np.zeros(shape)
    np.add.at(out, key, x)
    return out


def _each_matrix(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix, mapped over the leading axes."""

    def reference(x: Any, *rest: Any) -> Any:
        x = np.asarray(x)
        found = [np.asarray(function(matrix, *rest)) for matrix in x.reshape(-1, *x.shape[-2:])]
        return np.reshape(found, x.shape[:-2] + found[0].shape)

    return reference


def _exact(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of a matrix, computed with 50 digits."""

    def of_matrix(x: Any) -> Any:
        with mpmath.workdps(50):
            result = function(mpmath.matrix(x.tolist()))
            return np.array(result.tolist() if isinstance(result, mpmath.matrix) else result, dtype=float)

    return _each_matrix(of_matrix)


def _inverse(a: Any) -> Any:
    return a**-1


def _pseudoinverse(a: Any) -> Any:
    return (a.T * a) ** -1 * a.T if a.rows >= a.cols else a.T * (a * a.T) ** -1


def _singular_values(a: Any) -> Any:
    return mpmath.svd_r(a, compute_uv=False)


def _mean(x: Any) -> Any:
    """The symmetric part of a matrix."""
    return (x + np.swapaxes(x, -1, -2)) / 2


def _column(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of a matrix whose result is a column, as a vector."""
    return lambda x: _exact(function)(x)[..., 0]


def _solve(a: Any, b: Any) -> Any:
    vector = np.ndim(b) == 1
    columns = np.reshape(b, (-1, 1)) if vector else np.asarray(b)
    found = _exact(_inverse)(a) @ columns
    return found[..., 0] if vector else found


def _symmetric(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function applied to the symmetric part of a matrix."""
    return lambda a: function((a + a.T) / 2)


def _with_signs(function: Callable[[Any], Any], lapack: Callable[[Any], Any]) -> Callable[..., Any]:
    """A matrix whose columns have arbitrary signs, with the signs that LAPACK chooses."""
    return lambda x: np.copysign(_exact(function)(x), lapack(x))


def _share_of_each(labels: Any, scores: Any) -> Any:
    """Class probabilities: one-hot for labels, or `labels` itself if it contains probabilities (classes on the last
    axis)."""
    return labels if np.shape(labels) == np.shape(scores) else np.eye(np.shape(scores)[-1])[np.asarray(labels, int)]


def _classified(logs: Callable[[Any], Any]) -> Callable[..., Any]:
    """The weighted mean of -logs(scores) at the labels, or by class probabilities."""

    def reference(scores: Any, labels: Any, weight: Any = 1.0) -> Any:
        logarithms = np.moveaxis(logs(scores), min(np.ndim(scores) - 1, 1), -1)
        shares = _share_of_each(labels, logarithms) * weight
        count = np.size(labels) / np.shape(scores)[-1] if np.shape(labels) == np.shape(scores) else np.sum(shares)
        return -np.sum(shares * logarithms) / count

    return reference


def _elements(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, target: Any, reduction: Any = "mean", *rest: Any) -> Any:
        each = function(np.abs(np.subtract(x, target)), *rest)
        return each if reduction == "none" else getattr(np, reduction)(each)

    return reference


def _binary(p: Any, target: Any, weight: Any = 1.0, reduction: str = "mean") -> Any:
    return getattr(np, reduction)(-weight * (target * np.log(p) + (1 - target) * np.log(1 - p)))


def _binary_of_logits(x: Any, target: Any, weight: Any = 1.0, reduction: str = "mean", positive: Any = 1.0) -> Any:
    each = positive * target * np.log1p(np.exp(-x)) + (1 - target) * np.log1p(np.exp(x))
    return getattr(np, reduction)(weight * each)


def _gaussian(x: Any, target: Any, var: Any) -> Any:
    var = var[:, None] if np.ndim(var) < np.ndim(x) else var
    return np.mean(np.log(var) + (x - target) ** 2 / var) / 2


def _poisson(x: Any, target: Any, of_log: bool = True, full: bool = False) -> Any:
    each = np.exp(x) - target * x if of_log else x - target * np.log(x + 1e-8)
    large = np.maximum(target, 1.0)
    stirling = large * np.log(large) - large + np.log(2 * np.pi * large) / 2
    return np.mean(each + np.where(target > 1, stirling, 0.0) * full)


_LOSSES = {
    "mse_loss": _elements(np.square),
    "l1_loss": _elements(lambda d: d),
    "smooth_l1_loss": _elements(lambda d, beta=1.0: np.where(d < beta, d * d / (2 * beta), d - beta / 2)),
    "huber_loss": _elements(lambda d, delta=1.0: np.where(d < delta, d * d / 2, delta * (d - delta / 2))),
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _binary_of_logits,
    "nll_loss": _classified(lambda x: x),
    "cross_entropy": _classified(lambda x: x - np.log(np.sum(np.exp(x), axis=min(np.ndim(x) - 1, 1), keepdims=True))),
    "gaussian_nll_loss": _gaussian,
    "poisson_nll_loss": _poisson,
}


def _solve_triangular(a: Any, b: Any, trans: int = 0, lower: bool = False, unit: bool = False) -> Any:
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle * (1 - np.eye(len(a[0]))) + np.eye(len(a[0]))
    return _solve(np.swapaxes(triangle, -1, -2) if trans else triangle, b)


def _thin(a: Any) -> Any:
    return mpmath.svd_r(a, full_matrices=False)


def _matrix_norm(x: Any, ord: Any = "fro", axis: Any = (-2, -1)) -> Any:
    return np.linalg.norm(x, ord, tuple(np.asarray(axis).tolist()))


def _key_along(axis: int, indices: Any) -> tuple[Any, ...]:
    places = np.asarray(indices, int)
    return tuple(places if a == axis else grid for a, grid in enumerate(np.indices(places.shape)))


def _running_positions(extreme: Callable[..., Any]) -> Callable[..., Any]:
    """The position of the extreme element up to each element, the last of equal ones."""

    def of_list(x: Any) -> Any:
        return [extreme(range(k + 1), key=lambda i: (x[i], i if extreme is max else -i)) for k in range(len(x))]

    return lambda x, axis: np.apply_along_axis(of_list, axis, x)


def _gather(x: Any, axis: int, indices: Any) -> Any:
    return np.asarray(x)[_key_along(axis, indices)]


def _put(put: Callable[..., Any], x: Any, axis: int, indices: Any, source: Any) -> Any:
    out = np.array(x)
    put(out, _key_along(axis, indices), source)
    return out


def _index_add(x: Any, axis: int, indices: Any, source: Any, alpha: float = 1.0) -> Any:
    out = np.array(x)
    np.add.at(out, (slice(None),) * axis + (np.asarray(indices, int),), alpha * source)
    return out


def _as_strided(x: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    places = np.tensordot(np.asarray(stride, int), np.indices(np.asarray(size, int)), 1)
    return np.ravel(x)[offset + places]


def _unflatten(x: Any, axis: int, sizes: Any) -> Any:
    return np.reshape(x, (*np.shape(x)[:axis], *np.asarray(sizes, int), *np.shape(x)[axis + 1 :]))


def _diag_embed(x: Any, k: int = 0, first: int = -2, second: int = -1) -> Any:
    matrices = np.array([np.diag(row, k) for row in np.reshape(x, (-1, np.shape(x)[-1]))])
    return np.moveaxis(matrices.reshape(np.shape(x)[:-1] + matrices.shape[1:]), (-2, -1), (first, second))


def _layer_norm(x: Any, sizes: Any, weight: Any = 1.0, bias: Any = 0.0) -> Any:
    axes = tuple(range(-np.size(sizes), 0))
    centred = x - np.mean(x, axis=axes, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=axes, keepdims=True) + 1e-5) * weight + bias


def _attention(query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0, causal: bool = False) -> Any:
    scores = np.dot(query, np.transpose(key)) / np.sqrt(np.shape(query)[-1]) + (0.0 if mask is None else mask)
    powers = np.exp(scores) * (np.tri(len(query), len(key)) if causal else 1.0)
    return np.dot(powers / np.sum(powers, axis=-1, keepdims=True), value)


def _correlation(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: int = 0, dilation: int = 1) -> Any:
    axes = np.ndim(weight) - 2
    strides = np.broadcast_to(stride, axes)
    sizes = np.shape(weight)[2:]
    x = np.pad(x, [(0, 0)] * (np.ndim(x) - axes) + [(padding, padding)] * axes)
    counts = [(n - dilation * (k - 1) - 1) // s + 1 for n, k, s in zip(np.shape(x)[-axes:], sizes, strides)]
    result = 0.0
    for tap in np.ndindex(*sizes):
        cut = tuple(slice(dilation * t, dilation * t + s * (n - 1) + 1, s) for t, s, n in zip(tap, strides, counts))
        moved = np.tensordot(np.asarray(weight)[(..., *tap)], x[(..., *cut)], (1, np.ndim(x) - axes - 1))
        result = result + np.moveaxis(moved, 0, np.ndim(x) - axes - 1)
    return result if bias is None else result + np.reshape(bias, (-1, *[1] * axes))


def _pooled(join: Callable[..., Any], axes: int, beside: float) -> Callable[..., Any]:
    def reference(x: Any, size: Any, stride: Any = None, padding: int = 0) -> Any:
        x = np.pad(x, [(0, 0)] * (np.ndim(x) - axes) + [(padding, padding)] * axes, constant_values=beside)
        sizes = tuple(np.broadcast_to(size, axes).tolist())
        within = tuple(range(-axes, 0))
        windows = np.lib.stride_tricks.sliding_window_view(x, sizes, within)
        steps = np.broadcast_to(size if stride is None else stride, axes)
        return join(windows[(..., *(slice(None, None, s) for s in steps), *(slice(None),) * axes)], axis=within)

    return reference


def _renormed(x: Any, p: float, axis: int, most: float) -> Any:
    norms = np.sum(abs(x) ** p, axis=1 - axis, keepdims=True) ** (1 / p)
    return np.where(norms > most, x * most / (norms + 1e-7), x)


_LAYERS = {
    "renorm": _renormed,
    "normalize": lambda x, p=2.0, axis=1: x / np.sum(abs(x) ** p, axis=axis, keepdims=True) ** (1 / p),
    "cosine_similarity": lambda x, y, axis=1: (
        np.sum(x * y, axis=axis) / np.sqrt(np.sum(x * x, axis=axis) * np.sum(y * y, axis=axis))
    ),
    "pairwise_distance": lambda x, y, p=2.0: np.sum(abs(x - y + 1e-6) ** p, axis=-1) ** (1 / p),
    "layer_norm": _layer_norm,
    "rms_norm": lambda x, sizes, weight=1.0: (
        x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.finfo(float).eps) * weight
    ),
    "glu": lambda x, axis=-1: np.multiply(*np.split(x, 2, axis)[:1], 1 / (1 + np.exp(-np.split(x, 2, axis)[1]))),
    "embedding": lambda places, weight: weight[np.asarray(places, int)],
    "scaled_dot_product_attention": _attention,
    "conv1d": _correlation,
    "conv2d": _correlation,
    "avg_pool1d": _pooled(np.mean, 1, 0.0),
    "avg_pool2d": _pooled(np.mean, 2, 0.0),
    "max_pool1d": _pooled(np.max, 1, -np.inf),
    "max_pool2d": _pooled(np.max, 2, -np.inf),
}


def _transposed_correlation(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, more: Any = 0
) -> Any:
    axes = np.ndim(weight) - 2
    strides, paddings, mores = (np.broadcast_to(n, axes) for n in (stride, padding, more))
    sizes, places = np.shape(weight)[2:], np.shape(x)[-axes:]
    result = np.zeros(
        (
            *np.shape(x)[: -axes - 1],
            np.shape(weight)[1],
            *((n - 1) * s + k + m for n, s, k, m in zip(places, strides, sizes, mores)),
        )
    )
    for place in np.ndindex(*places):
        window = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, strides, sizes))
        result[(..., *window)] += np.tensordot(x[(..., *place)], weight, 1)
    result = result[(..., *(slice(p, n - p) for p, n in zip(paddings, np.shape(result)[-axes:])))]
    return result if bias is None else result + np.reshape(bias, (-1, *[1] * axes))


def _normed(x: Any, axes: tuple[int, ...]) -> Any:
    return (x - np.mean(x, axes, keepdims=True)) / np.sqrt(np.var(x, axes, keepdims=True) + 1e-5)


def _on_channels(x: Any, weight: Any, bias: Any) -> Any:
    ends = (-1, *[1] * (np.ndim(x) - 2))
    return x * np.reshape(1.0 if weight is None else weight, ends) + np.reshape(0.0 if bias is None else bias, ends)


def _batch_norm(x: Any, mean: Any, var: Any, weight: Any, bias: Any, training: Any = False) -> Any:
    if training:
        return _on_channels(_normed(x, (0, *range(2, np.ndim(x)))), weight, bias)
    ends = (-1, *[1] * (np.ndim(x) - 2))
    return _on_channels((x - np.reshape(mean, ends)) / np.sqrt(np.reshape(var, ends) + 1e-5), weight, bias)


def _group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None) -> Any:
    return _on_channels(_normed(np.reshape(x, (len(x), groups, -1)), (2,)).reshape(np.shape(x)), weight, bias)


def _response_norm(x: Any, size: int, alpha: float, beta: float = 0.75, k: float = 1.0) -> Any:
    count = np.shape(x)[1]
    means = [np.sum(x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1] ** 2, 1) / size for c in range(count)]
    return x / (k + alpha * np.stack(means, 1)) ** beta


def _reduced(loss: Any, reduction: str) -> Any:
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](loss)


def _multi_margin(
    x: Any, labels: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    labels = np.asarray(labels, int)
    losses = np.maximum(0, margin - np.take_along_axis(x, labels[:, None], 1) + x) ** p
    losses *= 1.0 if weight is None else np.asarray(weight)[labels][:, None]
    return _reduced((losses.sum(1) - losses[np.arange(len(x)), labels]) / np.shape(x)[1], reduction)


def _multilabel(x: Any, target: Any, weight: Any = 1.0, reduction: str = "mean") -> Any:
    losses = target * np.log1p(np.exp(-x)) + (1 - target) * np.log1p(np.exp(x))
    return _reduced(np.mean(losses * weight, -1), reduction)


def _distance(x: Any, y: Any) -> Any:
    return np.sqrt(np.sum((x - y + 1e-6) ** 2, -1))


def _triplet(
    a: Any,
    p: Any,
    n: Any,
    margin: float = 1.0,
    _p: float = 2.0,
    _eps: float = 1e-6,
    swap: Any = False,
    reduction: str = "mean",
) -> Any:
    far = np.minimum(_distance(a, n), _distance(p, n)) if swap else _distance(a, n)
    return _reduced(np.maximum(0, _distance(a, p) - far + margin), reduction)


def _cosine(x: Any, y: Any) -> Any:
    return np.sum(x * y, -1) / np.sqrt(np.sum(x * x, -1) * np.sum(y * y, -1))


def _put_slice(x: Any, src: Any, key: Any) -> Any:
    found = np.array(x)
    found[key] = src
    return found


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    return _put_slice(x, np.asarray(source)[: np.count_nonzero(mask)], np.asarray(mask, bool))


def _put_diagonal(x: Any, src: Any, k: int = 0) -> Any:
    rows = np.arange(len(src))
    return _put_slice(x, src, (rows, rows + k))


def _shuffled(x: Any, factor: int) -> Any:
    channels, height, width = np.shape(x)
    parts = np.reshape(x, (channels // factor**2, factor, factor, height, width)).transpose(0, 3, 1, 4, 2)
    return parts.reshape(-1, height * factor, width * factor)


def _unshuffled(x: Any, factor: int) -> Any:
    channels, height, width = np.shape(x)
    parts = np.reshape(x, (channels, height // factor, factor, width // factor, factor)).transpose(0, 2, 4, 1, 3)
    return parts.reshape(-1, height // factor, width // factor)


def _of_lines(values: Any, source: Any) -> Any:
    return np.interp(np.maximum(source, 0), np.arange(len(values)), values)


def _of_cubics(values: Any, source: Any) -> Any:
    """Cubic convolution interpolation with the parameter -0.75 and repeated ends."""
    found = 0.0
    for tap in range(-1, 3):
        d = abs(source - np.floor(source) - tap)
        inner, outer = (1.25 * d - 2.25) * d * d + 1, -0.75 * (((d - 5) * d + 8) * d - 4)
        taken = np.asarray(values)[np.clip(np.floor(source).astype(int) + tap, 0, len(values) - 1)]
        found = found + np.where(d <= 1, inner, outer) * taken
    return found


def _of_means(values: Any, source: Any) -> Any:
    old, new = len(values), len(source)
    return np.array([np.mean(values[i * old // new : -(-(i + 1) * old // new)]) for i in range(new)])


def _nearest(values: Any, source: Any) -> Any:
    # Enlarging by integer factors, or shrinking.
    return np.asarray(values)[np.arange(len(source)) * len(values) // len(source)]


def _resized(x: Any, size: Any = None, factor: int = 1, mode: str = "nearest", aligned: Any = False) -> Any:
    way = {"nearest": _nearest, "area": _of_means, "bicubic": _of_cubics}.get(mode, _of_lines)
    for axis in range(2, np.ndim(x)):
        old = np.shape(x)[axis]
        new = old * int(factor) if size is None else np.broadcast_to(size, np.ndim(x) - 2)[axis - 2]
        middles = (np.arange(new) + 0.5) * old / new - 0.5
        source = np.linspace(0, old - 1, new) if aligned else middles
        x = np.apply_along_axis(way, axis, x, source)
    return x


def _in_parts(x: Any, size: Any, join: Callable[..., Any], axes: int) -> Any:
    for axis, count in zip(range(-axes, 0), np.broadcast_to(size, axes)):
        old = np.shape(x)[axis]
        bounds = [(i * old // count, -(-(i + 1) * old // count)) for i in range(count)]
        x = np.stack([join(np.take(x, range(*ends), axis), axis=axis) for ends in bounds], axis)
    return x


def _unpooled(x: Any, places: Any, size: Any, _stride: Any = None, _padding: Any = 0, new: Any = None) -> Any:
    shape = np.shape(x)
    new = np.multiply(shape[1:], size) if new is None else np.asarray(new, int)
    made = np.zeros((shape[0], np.prod(new)))
    np.put_along_axis(made, np.reshape(places, (shape[0], -1)).astype(int), np.reshape(x, (shape[0], -1)), 1)
    return made.reshape(shape[0], *new)


def _multilabel_margin(x: Any, labels: Any, reduction: str = "mean") -> Any:
    losses = []
    for scores, row in zip(np.atleast_2d(x), np.atleast_2d(labels).astype(int)):
        given = [*itertools.takewhile(lambda label: label >= 0, row)]
        others = [c for c in range(len(scores)) if c not in given]
        losses.append(sum(max(0, 1 - scores[label] + scores[c]) for label in given for c in others) / len(scores))
    return _reduced(np.array(losses), reduction)


def _scattered(x: Any, axis: int, index: Any, src: Any, how: str, own: bool = True) -> Any:
    terms: dict[Any, list[float]] = {place: [value] if own else [] for place, value in np.ndenumerate(x)}
    for place, target in np.ndenumerate(np.asarray(index, int)):
        terms[(*place[:axis], target, *place[axis + 1 :])].append(np.asarray(src)[place])
    of = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[how]
    return np.reshape([of(found) if found else x[place] for place, found in terms.items()], np.shape(x))


def _scattered_slices(x: Any, axis: int, index: Any, src: Any, how: str, own: bool = True) -> Any:
    along = np.reshape(index, (-1, *[1] * (np.ndim(x) - axis - 1)))
    return _scattered(x, axis, np.broadcast_to(along, np.shape(src)), src, how, own)


_OF_OPERATORS = {
    "scatter_reduce": _scattered,
    "index_reduce": _scattered_slices,
    "interpolate": _resized,
    "upsample_nearest": _resized,
    "upsample_bilinear": lambda x, size: _resized(x, size, 1, "bilinear", True),
    **{f"adaptive_max_pool{axes}d": lambda x, size, axes=axes: _in_parts(x, size, np.max, axes) for axes in (1, 2, 3)},
    **{
        f"lp_pool{axes}d": lambda x, p, size, stride=None, axes=axes: (
            _pooled(np.sum, axes, 0.0)(np.asarray(x) ** p, size, stride) ** (1 / p)
        )
        for axes in (1, 2, 3)
    },
    **{f"max_unpool{axes}d": _unpooled for axes in (1, 2, 3)},
    "adaptive_avg_pool1d": lambda x, size: _resized(x, size, 1, "area"),
    "adaptive_avg_pool2d": lambda x, size: _resized(x, size, 1, "area"),
    "adaptive_avg_pool3d": lambda x, size: _resized(x, size, 1, "area"),
    "addmv": lambda x, a, b, beta=1.0, alpha=1.0: beta * np.asarray(x) + alpha * np.dot(a, b),
    "addr": lambda x, a, b, beta=1.0, alpha=1.0: beta * np.asarray(x) + alpha * np.multiply.outer(a, b),
    "addbmm": lambda x, a, b, beta=1.0, alpha=1.0: beta * np.asarray(x) + alpha * np.einsum("nij,njk->ik", a, b),
    "vecdot": lambda x, y, axis=-1: np.sum(np.multiply(x, y), axis),
    "bilinear": lambda x, y, weight, bias: np.einsum("i,oij,j->o", x, weight, y) + bias,
    "dist": lambda x, y, p=2.0: np.sum(abs(np.subtract(x, y)) ** p) ** (1 / p),
    "pdist": lambda x, p=2.0: scipy.spatial.distance.pdist(x, "minkowski", p=p),
    "block_diag": scipy.linalg.block_diag,
    "tensorsolve": np.linalg.tensorsolve,
    "tensorinv": np.linalg.tensorinv,
    "lu_solve": lambda b, lu, pivots: scipy.linalg.lu_solve((np.asarray(lu), np.asarray(pivots, int) - 1), b),
    "cov": lambda x, y=None, rowvar=True, bias=False, ddof=None, f=None, a=None: np.cov(
        x, y, rowvar, bias, ddof, None if f is None else np.asarray(f, int), a
    ),
    "corrcoef": np.corrcoef,
    "cumulative_trapezoid": scipy.integrate.cumulative_trapezoid,
    "msort": lambda x: np.sort(x, 0),
    "narrow": lambda x, axis, start, length: np.take(x, range(start, start + length), axis),
    "expand_as": lambda x, other: np.broadcast_to(x, np.shape(other)),
    "reshape_as": lambda x, other: np.reshape(x, np.shape(other)),
    "dstack": np.dstack,
    "diagflat": np.diagflat,
    "cartesian_prod": lambda *tensors: np.stack([p.ravel() for p in np.meshgrid(*tensors, indexing="ij")], -1),
    "select_scatter": lambda x, src, _axis, place: _put_slice(x, src, (slice(None), place)),
    "slice_scatter": lambda x, src, _axis, start, end: _put_slice(x, src, (slice(None), slice(start, end))),
    "diagonal_scatter": _put_diagonal,
    "index_fill": lambda x, _axis, places, value: _put_slice(x, value, (slice(None), np.asarray(places, int))),
    "index_copy": lambda x, _axis, places, src: _put_slice(x, src, (slice(None), np.asarray(places, int))),
    "masked_scatter": _masked_scatter,
    "pixel_shuffle": _shuffled,
    "pixel_unshuffle": _unshuffled,
    "channel_shuffle": lambda x, groups: np.reshape(
        np.reshape(x, (len(x), groups, -1, *np.shape(x)[2:])).swapaxes(1, 2), np.shape(x)
    ),
    "prelu": lambda x, weight: np.where(x > 0, x, x * np.asarray(weight)),
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "instance_norm": lambda x, _mean=None, _var=None, weight=None, bias=None: _on_channels(
        _normed(x, (2,)), weight, bias
    ),
    "local_response_norm": _response_norm,
    "conv3d": _correlation,
    "conv_transpose1d": _transposed_correlation,
    "conv_transpose2d": _transposed_correlation,
    "conv_transpose3d": _transposed_correlation,
    "avg_pool3d": _pooled(np.mean, 3, 0.0),
    "max_pool3d": _pooled(np.max, 3, -np.inf),
    "margin_ranking_loss": lambda x, y, t, margin=0.0, reduction="mean": _reduced(
        np.maximum(0, margin - np.multiply(t, np.subtract(x, y))), reduction
    ),
    "soft_margin_loss": lambda x, t, reduction="mean": _reduced(np.log1p(np.exp(-np.multiply(t, x))), reduction),
    "hinge_embedding_loss": lambda x, t, margin=1.0, reduction="mean": _reduced(
        np.where(np.equal(t, 1), x, np.maximum(0, margin - np.asarray(x))), reduction
    ),
    "cosine_embedding_loss": lambda x, y, t, margin=0.0, reduction="mean": _reduced(
        np.where(np.equal(t, 1), 1 - _cosine(x, y), np.maximum(0, _cosine(x, y) - margin)), reduction
    ),
    "multi_margin_loss": _multi_margin,
    "multilabel_margin_loss": _multilabel_margin,
    "multilabel_soft_margin_loss": _multilabel,
    "triplet_margin_loss": _triplet,
}


TENSORS: dict[str, Callable[..., Any]] = {
    "sum": _reduction(np.sum),
    "mean": _reduction(np.mean),
    "prod": _reduction(np.prod),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "var": _reduction(np.var),
    "std": _reduction(np.std),
    "median": _reduction(np.median),
    "any": _reduction(np.any),
    "all": _reduction(np.all),
    "argmax": _reduction(np.argmax),
    "argmin": _reduction(np.argmin),
    "norm": _norm,
    "logsumexp": _logsumexp,
    "order_statistic": lambda x, k: np.sort(x, axis=-1)[..., int(k)],
    "cumsum": lambda x, axis=0: np.cumsum(x, axis=axis),
    "cumprod": lambda x, axis=0: np.cumprod(x, axis=axis),
    **{
        name: getattr(np, name)
        for name in ("polyval", "poly", "polyadd", "polysub", "polymul", "polyder", "polyint", "polyfit")
    },
    "fftshift": np.fft.fftshift,
    "ifftshift": np.fft.ifftshift,
    "fftfreq": np.fft.fftfreq,
    "rfftfreq": np.fft.rfftfreq,
    "softmax": lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
    "softmin": lambda x, axis=-1: np.exp(-x) / np.sum(np.exp(-x), axis=axis, keepdims=True),
    "log_softmax": lambda x, axis=-1: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)),
    "sort": lambda x, axis=-1: np.sort(x, axis=axis),
    "sort_by": lambda x, keys, axis: np.take_along_axis(x, np.argsort(keys, axis=axis), axis),
    "unsort_by": lambda x, keys, axis: np.take_along_axis(x, np.argsort(np.argsort(keys, axis=axis), axis=axis), axis),
    "index": lambda x, key: np.asarray(x)[key],
    "put_at": _scatter,
    "reshape": lambda x, *shape: np.reshape(x, *shape),
    "permute": lambda x, *axes: np.transpose(x, *axes),
    "transpose": _transpose,
    "swapaxes": np.swapaxes,
    "moveaxis": np.moveaxis,
    "squeeze": np.squeeze,
    "expand_dims": np.expand_dims,
    "ravel": np.ravel,
    "flatten": lambda x, first=0, last=-1: np.reshape(
        x, (*np.shape(x)[:first], -1, *(np.shape(x)[last + 1 :] if last >= 0 else ()))
    ),
    "broadcast_to": np.broadcast_to,
    "concat": lambda tensors, axis=0: np.concatenate(tensors, axis=axis),
    "stack": lambda tensors, axis=0: np.stack(tensors, axis=axis),
    "vstack": np.vstack,
    "hstack": np.hstack,
    "flip": np.flip,
    "roll": np.roll,
    "tile": np.tile,
    "repeat": np.repeat,
    "tril": np.tril,
    "triu": np.triu,
    "take": lambda x, indices, axis=None: np.take(x, np.asarray(indices, dtype=int), axis=axis),
    "diag": np.diag,
    "matmul": lambda a, b: np.einsum("...ij,...jk->...ik" if np.ndim(b) > 1 else "...j,j->...", a, b),
    "dot": np.dot,
    "inner": np.inner,
    "vdot": np.vdot,
    "outer": lambda a, b: np.multiply.outer(a, b),
    "trace": np.trace,
    "diagonal": np.diagonal,
    "einsum": np.einsum,
    "tensordot": np.tensordot,
    "kron": np.kron,
    "cross": lambda a, b, axis=None, axisa=-1, axisb=-1, axisc=-1: np.cross(a, b, axisa, axisb, axisc, axis),
    "inv": _exact(_inverse),
    "det": _exact(mpmath.det),
    "logdet": _exact(lambda a: mpmath.log(mpmath.det(a))),
    "solve": _solve,
    "matrix_power": lambda x, n: _exact(lambda a: a ** int(n))(x),
    "cholesky": _exact(_symmetric(mpmath.cholesky)),
    "eigvalsh": _column(_symmetric(lambda a: mpmath.eigsy(a, eigvals_only=True))),
    "eigenvectors": _with_signs(_symmetric(lambda a: mpmath.eigsy(a)[1]), lambda x: np.linalg.eigh(_mean(x))[1]),
    "orthonormal": _with_signs(lambda a: mpmath.qr(a, mode="skinny")[0], lambda x: np.linalg.qr(x)[0]),
    "svdvals": _column(_singular_values),
    "pinv": _exact(_pseudoinverse),
    "matrix_exp": _exact(mpmath.expm),
    "sqrtm": _exact(mpmath.sqrtm),
    "logm": _exact(mpmath.logm),
    "zeros": lambda *shape: np.zeros(shape[0] if len(shape) == 1 else shape),
    "ones": lambda *shape: np.ones(shape[0] if len(shape) == 1 else shape),
    "full": np.full,
    "full_like": lambda x, value: np.full(np.shape(x), value),
    "eye": np.eye,
    "arange": np.arange,
    "linspace": np.linspace,
    "geomspace": np.geomspace,
    "tri": np.tri,
    "digitize": np.digitize,
    "logspace": lambda start, stop, num, base=10.0: base ** np.linspace(start, stop, num),
    # --- references defined above
    **_LOSSES,
    **_LAYERS,
    **_OF_OPERATORS,
    "positions_in_order": lambda x, axis: np.argsort(x, axis=axis),
    "cummax_positions": _running_positions(max),
    "cummin_positions": _running_positions(min),
    "argsort": lambda x, axis=-1, descending=False: np.argsort(-x if descending else x, axis=axis),
    "count_nonzero": _reduction(np.count_nonzero),
    "nansum": _reduction(np.nansum),
    "nanmean": _reduction(np.nanmean),
    "nanprod": _reduction(np.nanprod),
    "nanmax": _reduction(np.nanmax),
    "nanmin": _reduction(np.nanmin),
    "nanvar": _reduction(np.nanvar),
    "nanstd": _reduction(np.nanstd),
    "nanmedian": _reduction(np.nanmedian),
    "ptp": _reduction(np.ptp),
    "average": np.average,
    "quantile": np.quantile,
    "percentile": np.percentile,
    "logcumsumexp": lambda x, axis: np.log(np.cumsum(np.exp(x), axis=axis)),
    "trapezoid": np.trapezoid,
    "difference": np.diff,
    "affine": lambda bias, x, weight: np.dot(x, np.transpose(weight)) + bias,
    "linear": lambda x, weight, bias=0.0: np.dot(x, np.transpose(weight)) + bias,
    "baddbmm": lambda x, a, b, beta=1.0, alpha=1.0: beta * np.asarray(x) + alpha * np.einsum("nij,njk->nik", a, b),
    "cdist": lambda x, y, p=2.0: np.sum(abs(x[:, None] - y) ** p, axis=-1) ** (1 / p),
    "log_magnitude": _exact(lambda a: mpmath.log(abs(mpmath.det(a)))),
    "determinant_sign": _exact(lambda a: mpmath.sign(mpmath.det(a))),
    "solve_triangular": _solve_triangular,
    "cholesky_inverse": lambda root, upper=False: np.linalg.inv(root.T @ root if upper else root @ root.T),
    "cholesky_solve": lambda b, root, upper=False: _solve(root.T @ root if upper else root @ root.T, b),
    "paired_values": _column(_singular_values),
    "left_vectors": _with_signs(lambda a: _thin(a)[0], lambda x: np.linalg.svd(x, full_matrices=False)[0]),
    "right_vectors": _with_signs(
        lambda a: _thin(a)[2].T, lambda x: np.linalg.svd(x, full_matrices=False)[2].swapaxes(-1, -2)
    ),
    "multi_dot": np.linalg.multi_dot,
    "vander": np.vander,
    "matrix_rank": np.linalg.matrix_rank,
    "cond": lambda a, p=None: np.linalg.cond(np.asarray(a, float), p),
    "matrix_norm": _matrix_norm,
    "take_along_axis": lambda x, indices, axis: np.take_along_axis(x, np.asarray(indices, int), axis),
    "argwhere": np.argwhere,
    "take_along_dim": lambda x, indices, axis=None: (
        np.ravel(x)[np.ravel(np.asarray(indices, int))]
        if axis is None
        else np.take_along_axis(x, np.asarray(indices, int), axis)
    ),
    "gather": _gather,
    "scatter": partial(_put, np.ndarray.__setitem__),
    "scatter_add": partial(_put, np.add.at),
    "index_select": lambda x, axis, indices: np.take(x, np.asarray(indices, int), axis),
    "index_add": _index_add,
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "masked_select": lambda x, mask: np.asarray(x)[np.broadcast_to(mask, np.shape(x))],
    "one_hot": lambda labels, classes=3: np.eye(classes)[labels],
    "unflatten": _unflatten,
    "diag_embed": _diag_embed,
    "rot90": np.rot90,
    "as_strided": _as_strided,
    "pad": lambda x, widths, mode="constant", value=0.0: np.pad(
        x, np.asarray(widths, int), mode, **({"constant_values": value} if mode == "constant" else {})
    ),
    "unfold": lambda x, axis, size, step=1: np.lib.stride_tricks.sliding_window_view(x, size, axis),
    "interp": np.interp,
    "searchsorted": np.searchsorted,
    "bucketize": lambda x, bounds, _int32=False, right=False: np.searchsorted(bounds, x, "right" if right else "left"),
    "bincount": lambda x, weights=None, least=0: np.bincount(np.asarray(x, int), weights, least),
    "convolve": np.convolve,
    "asarray": np.asarray,
    "real": np.real,
    "imag": np.imag,
    "angle": np.angle,
    "isreal": np.isreal,
    "iscomplex": np.iscomplex,
    "allclose": np.allclose,
    "column_stack": np.column_stack,
    "append": np.append,
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "atleast_3d": np.atleast_3d,
    "rollaxis": np.rollaxis,
    "flipud": np.flipud,
    "fliplr": np.fliplr,
    "partition": lambda x, kth, axis=-1: np.sort(x, axis),
    "slopes": np.gradient,
    "solve_sylvester": scipy.linalg.solve_sylvester,
    "solve_banded": scipy.linalg.solve_banded,
    "copy": np.copy,
}
