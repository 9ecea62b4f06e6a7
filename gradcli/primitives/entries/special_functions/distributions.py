"""Elementwise combinatorial functions, entropies and distribution functions of the normal and Student's distribution."""

from __future__ import annotations

import math
from typing import Any

from gradcli import arrays
from gradcli.arrays import mathematical_constants, spellings
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.definitions import special_definitions as definitions
from gradcli.arrays.host_functions import by_scipy
from gradcli.arrays.mathematical_constants import by_formula
from gradcli.arrays.spellings import Spelling
from gradcli.errors import EvaluationError
from gradcli.primitives.axes import integer
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.arithmetic import add, divide, floor, multiply, subtract
from gradcli.primitives.entries.comparisons import equal, greater, greater_equal, less, logical_and, where
from gradcli.primitives.entries.elementwise.elementary import cospi, sinpi
from gradcli.primitives.entries.exponential import exp, log, log1p, share_of_zero
from gradcli.primitives.entries.special_functions.numerical_partials import derivative, partial_of_two
from gradcli.primitives.entries.special_functions.special import (
    betaln,
    digamma,
    digamma_rise,
    gamma,
    lgamma,
    ndtr,
    ndtri,
)
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])
_CHOICES = ((3.7, 1.3), ([[2.3, 5.2]], [[0.8], [1.5]]))
# The largest dimension of multigammaln, which is a sum of as many terms.
_MOST_TERMS = 10_000
_minus_sqrt_half, _sqrt_2_over_pi = by_formula(lambda m: -m.sqrt(0.5)), by_formula(lambda m: m.sqrt(2.0 / m.pi))
_over_sqrt_2_pi, _log_pi = by_formula(lambda m: 1.0 / m.sqrt(2.0 * m.pi)), by_formula(lambda m: m.log(m.pi))

spellings.declare("binom", Spelling({"scipy": "binom"}, elementwise=True, fallback=definitions.binom))
spellings.declare("arrangements", Spelling({"scipy": "poch"}, elementwise=True, fallback=definitions.arrangements))

factorial = Composite(
    "factorial", "x", "gamma(x + 1)", lambda x: gamma(add(x, 1.0)),
    derivative="g*gamma(x + 1)*digamma(x + 1)",
    domain="x is no whole number < 0",
    samples=_POSITIVE,
)  # fmt: skip


def _reciprocal_gamma_rule(g: Any, y: Any, x: Any) -> Any:
    if arrays.is_complex(x):
        return -g * (y * digamma(x))
    # For x < 1/2 the reflection formula DLMF 5.5.3 is used, which is exact at the zeros of 1/gamma.
    left = less(x, 0.5)
    mirrored, right = where(left, x, 0.0), where(left, 1.0, x)
    rest = subtract(1.0, mirrored)
    slope = cospi(mirrored) - divide(sinpi(mirrored), mathematical_constants.pi()) * digamma(rest)
    return g * where(left, gamma(rest) * slope, -y * digamma(right))


rgamma = elementwise(
    "rgamma", "x", "1/gamma(x), 0 at the whole numbers <= 0",
    numbers="analytic", of_complex=complex_by_scipy("rgamma"),
    time=3,
    fallback=definitions.rgamma,
    vjp=(_reciprocal_gamma_rule,),
    spelling=names_elsewhere("scipy"),
    derivative="-g*digamma(x)/gamma(x)",
    samples=(0.7, [0.4, 2.5], [-1.3, -2.0]),
)  # fmt: skip


def _sign_of_gamma(x: Any) -> Any:
    right = greater_equal(x, 0)
    left = where(right, -0.5, x)
    below = floor(left)
    # The parity of `below` without a remainder, which has a kink at integers: (below + 0.5)/2 is never an integer.
    odd = subtract(below, multiply(2.0, floor(divide(add(below, 0.5), 2.0))))
    sign = where(equal(below, left), math.nan, subtract(1.0, multiply(2.0, odd)))
    return where(right, 1.0, sign)


gammasgn = Composite(
    "gammasgn", "x", "the sign of gamma(x): 1, -1, and nan where it has none", _sign_of_gamma,
    derivative="0",
    domain="x is no whole number <= 0",
    samples=(0.7, [-1.3, -2.5]),
)  # fmt: skip


beta = elementwise(
    "beta", "a, b", "gamma(a)*gamma(b)/gamma(a + b)",
    forward=common_definitions.beta,
    time=60,
    vjp=(
        lambda g, y, a, b: -g * (y * digamma_rise(a, b)),
        lambda g, y, a, b: -g * (y * digamma_rise(b, a)),
    ),
    spelling=names_elsewhere("scipy sympy", latex=r"mathrm{B}"),
    derivative="g*beta(a, b)*(digamma(a) - digamma(a + b)), the same with a and b exchanged",
    domain="none of a, b and a + b is a whole number <= 0",
    samples=((0.7, 1.3), ([[0.3, 1.2]], [[0.8], [2.5]]), (-0.4, 1.2)),
)  # fmt: skip


def _inside(n: Any, k: Any) -> tuple[Any, Any]:
    """The operands, replaced by (1, 0) outside the domain 0 <= k <= n, so that the derivatives are finite."""
    there = logical_and(greater_equal(k, 0), greater_equal(n, k))
    return where(there, n, 1.0), where(there, k, 0.0)


def _rise_by_n(n: Any, k: Any) -> Any:
    """digamma(n + 1) - digamma(n - k + 1)"""
    n, k = _inside(n, k)
    return digamma_rise(n - k + 1.0, k)


def _comb_by_k(n: Any, k: Any) -> Any:
    """digamma(n - k + 1) - digamma(k + 1)"""
    n, k = _inside(n, k)
    return digamma_rise(k + 1.0, n - 2.0 * k)


def _perm_by_k(n: Any, k: Any) -> Any:
    n, k = _inside(n, k)
    return digamma(n - k + 1.0)


comb = elementwise(
    "comb", "N, k", "the number of choices of k among N: N!/(k!*(N - k)!)",
    time=10,
    forward=lambda xp, n, k: definitions.within(xp, xp.binom, n, k),
    vjp=(
        lambda g, y, n, k: g * (y * _rise_by_n(n, k)),
        lambda g, y, n, k: g * (y * _comb_by_k(n, k)),
    ),
    piecewise=True,
    spelling=names_elsewhere("scipy"),
    derivative="g*y*(digamma(N + 1) - digamma(N - k + 1)), g*y*(digamma(N - k + 1) - digamma(k + 1))",
    domain="0 <= k <= N",
    edges=("0 outside the domain",),
    samples=_CHOICES,
)  # fmt: skip

perm = elementwise(
    "perm", "N, k", "the number of arrangements of k among N: N!/(N - k)!",
    time=10,
    forward=lambda xp, n, k: definitions.within(xp, xp.arrangements, n, k),
    vjp=(
        lambda g, y, n, k: g * (y * _rise_by_n(n, k)),
        lambda g, y, n, k: g * (y * _perm_by_k(n, k)),
    ),
    piecewise=True,
    spelling=names_elsewhere("scipy"),
    derivative="g*y*(digamma(N + 1) - digamma(N - k + 1)), g*y*digamma(N - k + 1)",
    domain="0 <= k <= N",
    edges=("0 outside the domain",),
    samples=_CHOICES,
)  # fmt: skip

erfcx: Primitive = elementwise(
    "erfcx", "x", "exp(x**2)*erfc(x), without overflow",
    time=3,
    forward=lambda xp, x, *, n: definitions.scaled_erfc(xp, x, n) if n else xp.erfcx(x),
    fallback=definitions.erfcx,
    # The nth derivative is a multiple of the nth repeated integral of erfc, so that nothing cancels.
    vjp=(lambda g, _y, x, *, n: g * (-2.0 * (n + 1) * bind(erfcx, (x,), {"n": n + 1})),),
    prepare=lambda x: ((x,), {"n": 0}),
    spelling=names_elsewhere("scipy"),
    derivative="g*(2*x*erfcx(x) - 2/sqrt(pi))",
    samples=_ANYWHERE,
)  # fmt: skip

erfcinv = Composite(
    "erfcinv", "x", "inverse of erfc", lambda x: multiply(ndtri(multiply(x, 0.5)), _minus_sqrt_half()),
    derivative="-g*sqrt(pi)/2*exp(erfcinv(x)**2)",
    domain="0 < x < 2",
    edges=("erfcinv(0) = inf and erfcinv(2) = -inf, with derivative -inf",),
    samples=(0.7, [0.2, 1.5]),
)  # fmt: skip


def _over_ndtr(x: Any) -> Any:
    """The standard normal density divided by ndtr; for x > 38.6 the density underflows to 0 and erfcx overflows."""
    if mathematical_constants.is_exact():
        return divide(_sqrt_2_over_pi(), erfcx(x * _minus_sqrt_half()))
    far = greater(x, 38.6)
    return where(far, 0.0, divide(_sqrt_2_over_pi(), erfcx(where(far, 0.0, x) * _minus_sqrt_half())))


log_ndtr = elementwise(
    "log_ndtr", "x", "log(ndtr(x)), without underflow",
    time=3,
    vjp=(lambda g, _y, x: g * _over_ndtr(x),),
    spelling=names_elsewhere("scipy"),
    derivative="g*exp(-x**2/2)/(sqrt(2*pi)*ndtr(x))",
    samples=_ANYWHERE,
)  # fmt: skip


def _standard(x: Any, loc: Any, scale: Any) -> Any:
    return divide(subtract(x, loc), scale)


def _norm_pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    z = _standard(x, loc, scale)
    return divide(multiply(exp(multiply(multiply(z, z), -0.5)), _over_sqrt_2_pi()), scale)


norm_pdf = Composite(
    "norm_pdf", "x, loc=0.0, scale=1.0", "density of the normal distribution with mean loc and deviation scale", _norm_pdf,
    derivative="with z = (x - loc)/scale: -g*y*z/scale, g*y*z/scale, g*y*(z**2 - 1)/scale",
    domain="scale > 0",
    samples=(*_ANYWHERE, ([-1.0, 2.0], 0.3, 1.5)),
)  # fmt: skip

norm_cdf = Composite(
    "norm_cdf", "x, loc=0.0, scale=1.0", "distribution function of the normal distribution with mean loc and deviation scale",
    lambda x, loc=0.0, scale=1.0: ndtr(_standard(x, loc, scale)),
    derivative="with p = norm_pdf(x, loc, scale): g*p, -g*p, -g*p*(x - loc)/scale",
    domain="scale > 0",
    samples=(*_ANYWHERE, ([-1.0, 2.0], 0.3, 1.5)),
)  # fmt: skip

entr = elementwise(
    "entr", "x", "-x*log(x), 0 at 0",
    fallback=definitions.entr,
    vjp=(lambda g, _y, x: -g * (1.0 + log(x)),),
    piecewise=True,
    spelling=names_elsewhere("scipy"),
    derivative="-g*(1 + log(x))",
    domain="x > 0",
    edges=("entr(0) = 0, entr'(0) = inf", "-inf where x < 0"),
    samples=_POSITIVE,
)  # fmt: skip

rel_entr = elementwise(
    "rel_entr", "x, y", "x*log(x/y), 0 where x is 0",
    fallback=definitions.rel_entr,
    vjp=(
        lambda g, _y, a, b: g * (1.0 + (log(a) - log(b))),
        lambda g, _y, a, b: g * -share_of_zero(a, b),
    ),
    piecewise=True,
    spelling=names_elsewhere("scipy"),
    derivative="g*(1 + log(x/y)), -g*x/y",
    domain="x > 0, y > 0",
    edges=("0 where x = 0 and y >= 0; there the derivative by x is -inf", "inf where x < 0 or y < 0, or y = 0 < x"),
    samples=((0.7, 1.3), ([[0.3, 1.2]], [[0.8], [2.5]])),
)  # fmt: skip


def _multigammaln(a: Any, d: Any) -> Any:
    count = integer(d, "the dimension of 'multigammaln'")
    if not 0 < count <= _MOST_TERMS:
        raise EvaluationError(f"the dimension of 'multigammaln' must be from 1 to {_MOST_TERMS:,}")
    total = lgamma(a)
    for i in range(1, count):
        total = add(total, lgamma(subtract(a, 0.5 * i)))
    return add(total, 0.25 * count * (count - 1) * _log_pi())


multigammaln = Composite(
    "multigammaln", "a, d", "logarithm of the multivariate gamma function of dimension d", _multigammaln,
    derivative="g*(digamma(a) + … + digamma(a - (d - 1)/2))",
    domain="a > (d - 1)/2",
    aliases=("mvlgamma",),
    samples=((2.7, 3), ([1.4, 2.5], 2)),
)  # fmt: skip


def log_student_density(df: Any, t: Any) -> Any:
    """The logarithm of the density of Student's t distribution."""
    return -betaln(0.5, 0.5 * df) - 0.5 * log(df) - (0.5 * (df + 1.0)) * log1p(divide(t, df) * t)


stdtr = elementwise(
    "stdtr", "df, t", "distribution function of Student's distribution with df degrees of freedom",
    time=150,
    forward=keeping_float32(lambda xp, df, t: by_scipy(xp, "stdtr", df, t)),
    vjp=(derivative("stdtr", 0, 2), lambda g, _y, df, t: g * exp(log_student_density(df, t))),
    spelling=names_elsewhere("scipy"),
    derivative="by df computed by itself, g*(1 + t**2/df)**(-(df + 1)/2)/(sqrt(df)*beta(1/2, df/2))",
    domain="df > 0",
    samples=((2.5, 0.7), ([1.5, 4.0], [0.4, -2.5])),
)  # fmt: skip

stdtrit = elementwise(
    "stdtrit", "df, y", "the t with stdtr(df, t) = y",
    time=300,
    forward=keeping_float32(lambda xp, df, p: by_scipy(xp, "stdtrit", df, p)),
    vjp=(
        lambda g, y, df, _p: -g * bind(partial_of_two, (df, y), {"function": "stdtr", "orders": (1, 0)})
        * exp(-log_student_density(df, y)),
        lambda g, y, df, _p: g * exp(-log_student_density(df, y)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="by df g*-d/f, d being that of stdtr by df and f the density, g/f",
    domain="df > 0, 0 < y < 1",
    samples=((2.5, 0.7), ([1.5, 4.0], [0.2, 0.6])),
)  # fmt: skip
