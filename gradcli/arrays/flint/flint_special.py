"""Special functions of FLINT numbers, under the names that the namespace looks up (see `gradcli.arrays.flint.flint_numbers`).

Functions that Arb lacks are expressed in those that it has, by their definitions; digits lost to cancellation are
recovered at a higher precision.
"""

from __future__ import annotations

import math
from typing import Any

from flint import acb, acb_series, arb, ctx, fmpq, fmpz

from gradcli import limits
from gradcli.arrays.flint.balls import (
    INFINITY,
    NEGATIVE_INFINITY,
    UNDEFINED,
    Number,
    UndecidedError,
    is_nan,
    stands_for_others,
)
from gradcli.arrays.flint.flint_elementary import exp, log, sinpi
from gradcli.arrays.flint.flint_functions import abs as absolute
from gradcli.arrays.flint.flint_functions import add, divide, less, multiply, negative, subtract
from gradcli.arrays.flint.flint_numbers import (
    HALF,
    ONE,
    TWO,
    ZERO,
    analytic,
    at_infinity,
    coefficient,
    compared,
    hull,
    is_at,
    is_finite,
    is_infinite,
    known_integer,
    real,
    series_length,
    whole_order,
    with_bounds,
)

# For smaller arguments, polygamma is computed by reflection.
_REFLECTED = -8
# For larger orders, the time that FLINT takes is unbounded.
_HIGHEST_ORDER = 10**18
# For a ball with fewer accurate bits than _NARROW, FLINT sums at least a term for each order, up to _WIDEST; each is
# charged _WIDE eighths of a step.
_NARROW, _WIDEST, _WIDE = 20, 100_000, 2
# zeta at negative integers down to minus this is computed exactly by Bernoulli numbers.
_BERNOULLI = 1000

# --- error functions

erf = analytic(arb.erf, zero=ZERO, below=-ONE, above=ONE)
erfc = analytic(arb.erfc, zero=ONE, below=TWO, above=ZERO)


def _log_ndtr(x: Any) -> Any:
    tail = (absolute(x) / arb(2).sqrt()).erfc() / 2
    return (-tail).log1p() if x > 0 else tail.log() if x < 0 else ((-x / arb(2).sqrt()).erfc() / 2).log()


log_ndtr = analytic(_log_ndtr, below=NEGATIVE_INFINITY, above=ZERO)


def erfcx(x: Number, *, n: int = 0) -> Number:
    """exp(x**2) times the nth repeated integral of erfc.

    It is (-1/2)**n times the nth Taylor coefficient of exp(x**2)*erfc(x), DLMF 7.18.3.
    """
    if not is_finite(x):
        return at_infinity(x, INFINITY, ZERO)
    if n == 0 and is_at(x, ZERO):
        return ONE
    return coefficient(lambda t: (t * t).exp() * t.erfc(), x, n) * (-HALF) ** n


def dawsn(x: Number, *, n: int) -> Number:
    """The nth derivative of sqrt(pi)/2*exp(-x**2)*erfi(x)."""
    if not is_finite(x):
        return at_infinity(x, ZERO, ZERO)
    if n % 2 == 0 and is_at(x, ZERO):
        return ZERO
    return coefficient(lambda t: (-t * t).exp() * t.erfi(), x, n) * arb.pi().sqrt() * fmpz.fac_ui(n) / 2


def erfinv(x: Number) -> Number:
    return _inverse(x, -ONE, ZERO, ONE, lambda x: x.erfinv())


def ndtri(p: Number) -> Number:
    return _inverse(p, ZERO, HALF, ONE, lambda p: -arb(2).sqrt() * (2 * p).erfcinv())


def _inverse(x: Number, low: fmpq, middle: fmpq, high: fmpq, compute: Any) -> Number:
    """A function that increases from -inf at `low` to inf at `high` and is 0 at `middle`."""
    if is_nan(x) or x < low or x > high:
        return UNDEFINED
    if is_at(x, low) or is_at(x, high):
        return INFINITY if x == high else NEGATIVE_INFINITY
    return ZERO if is_at(x, middle) else with_bounds(compute(arb(x)))


# --- gamma functions


def gamma(x: Number) -> Number:
    n = known_integer(x)
    if n is not None and n <= 0:
        return UNDEFINED if n else INFINITY
    if n is not None and n * n.bit_length() <= 4 * ctx.prec:
        return fmpq(fmpz.fac_ui(n - 1))
    return _gamma(x)


def _mirrored_gamma(x: Any) -> Any:
    """gamma by the reflection formula DLMF 5.5.3 for x < 0, where a wide ball would have no bounds."""
    return arb.pi() / (x.sin_pi() * (1 - x).gamma()) if x < 0 else x.gamma()


_gamma = analytic(_mirrored_gamma, above=INFINITY)
_to_the_right = analytic(arb.lgamma, above=INFINITY)


rgamma = analytic(arb.rgamma, zero=ZERO, above=ZERO)


def lgamma(x: Number) -> Number:
    n = known_integer(x)
    if n is not None and n <= 0:
        return INFINITY
    if is_at(x, ONE) or is_at(x, TWO):
        return ZERO
    if is_nan(x) or not less(x, ZERO):
        return _to_the_right(x)
    if is_infinite(x):
        return INFINITY
    # By the reflection formula, DLMF 5.5.3.
    return with_bounds((arb.pi() / arb(absolute(sinpi(x)))).log() - arb(1 - x).lgamma())


def digamma(x: Number) -> Number:
    n = known_integer(x)
    if n is not None and n <= 0:
        return UNDEFINED if n else NEGATIVE_INFINITY
    return _digamma(x)


def _mirrored_digamma(x: Any) -> Any:
    """digamma by the reflection formula DLMF 5.5.4 for x < 0, where a wide ball would have no bounds."""
    return (1 - x).digamma() - arb.pi() * x.cot_pi() if x < 0 else x.digamma()


_digamma = analytic(_mirrored_digamma, above=INFINITY)


def polygamma(x: Number, *, n: int) -> Number:
    if not n:
        return digamma(x)
    number = known_integer(x)
    if number is not None and number <= 0:
        return INFINITY if n % 2 else NEGATIVE_INFINITY
    if not is_finite(x):
        return at_infinity(x, UNDEFINED, ZERO)
    if n > _HIGHEST_ORDER:
        raise UndecidedError("the order of a derivative of digamma is too large")
    if x < _REFLECTED:
        # The reflection formula DLMF 5.15.6, because the time that FLINT takes is proportional to abs(x) for negative
        # x.
        cotangent = coefficient(lambda t: t.cot_pi(), x, n) * fmpz.fac_ui(n)
        return (-1) ** n * real(acb(1 - arb(x)).polygamma(n)) - arb.pi() * cotangent
    if type(x) is arb and x.rel_accuracy_bits() < _NARROW:
        limits.charge_steps(_WIDE * min(n, _WIDEST))
    return real(acb(arb(x)).polygamma(n))


def digamma_rise(x: Number, y: Number) -> Number:
    return ZERO if is_at(y, ZERO) and is_finite(digamma(x)) else subtract(digamma(add(x, y)), digamma(x))


def betaln(a: Number, b: Number) -> Number:
    if is_nan(a) or is_nan(b):
        return UNDEFINED
    if (is_at(a, ZERO) and b >= 0) or (is_at(b, ZERO) and a >= 0):
        return INFINITY
    if (is_infinite(a) or is_infinite(b)) and a > 0 and b > 0:
        return NEGATIVE_INFINITY
    return subtract(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))


def beta(a: Number, b: Number) -> Number:
    if not is_finite(a) or not is_finite(b) or is_at(a, ZERO) or is_at(b, ZERO):
        return exp(betaln(a, b))
    return multiply(multiply(gamma(a), gamma(b)), rgamma(add(a, b)))


def comb(n: Number, k: Number) -> Number:
    return _choices(n, k, lambda n, k: fmpz.bin_uiui(n, k), lambda n, k: (k + 1).rgamma())


def perm(n: Number, k: Number) -> Number:
    return _choices(n, k, lambda n, k: fmpz.fac_ui(n) // fmpz.fac_ui(n - k), lambda n, k: 1)


def _choices(n: Number, k: Number, exactly: Any, factor: Any) -> Number:
    if less(k, ZERO) or less(n, k):
        return ZERO
    if is_nan(n) or is_nan(k) or is_infinite(k):
        return UNDEFINED
    if is_at(k, ZERO):
        return ONE
    if is_infinite(n):
        return INFINITY
    many, few = known_integer(n), known_integer(k)
    if many is not None and few is not None and many * many.bit_length() <= 8 * ctx.prec:
        return fmpq(exactly(many, few))
    n, k = arb(n), arb(k)
    return with_bounds((n + 1).gamma() * (n - k + 1).rgamma() * factor(n, k))


# --- entropies


def entr(x: Number) -> Number:
    if is_nan(x):
        return x
    if stands_for_others(x) and x.contains(0) and x.lower() >= 0:
        return _entropies_up_to(x.upper())
    side = compared(x, ZERO)
    return negative(multiply(x, log(x))) if side > 0 else NEGATIVE_INFINITY if side else ZERO


def _entropies_up_to(high: arb) -> arb:
    """An enclosure of -x*log(x) for all x from 0 to `high`.

    The function increases up to x = 1/e, where it is 1/e, and decreases beyond.
    """
    last = -high * high.log()
    top = (-arb(1)).exp()
    return arb(0).union(last) if high < top else arb(0).union(last).union(top)


def rel_entr(x: Number, y: Number) -> Number:
    if is_nan(x) or is_nan(y):
        return UNDEFINED
    if is_at(x, ZERO) and y >= 0:
        return ZERO
    inside = less(ZERO, x), less(ZERO, y)
    return multiply(x, log(divide(x, y))) if all(inside) else INFINITY


# --- exponential and elliptic integrals


def exp1(x: Number) -> Number:
    return expn(x, n=1)


def expn(x: Number, *, n: int) -> Number:
    if is_nan(x) or (n > 0 and less(x, ZERO)):
        return UNDEFINED
    if is_infinite(x):
        return ZERO if x > 0 else UNDEFINED
    if is_at(x, ZERO):
        return fmpq(1, n - 1) if n > 1 else INFINITY
    return with_bounds(arb(x).expint(n))


def expi(x: Number) -> Number:
    return NEGATIVE_INFINITY if is_at(x, ZERO) else _expi(x)


_expi = analytic(arb.ei, below=ZERO, above=INFINITY)


def ellipk(m: Number, *, n: int) -> Number:
    return _elliptic(m, n, lambda k, _m: k, HALF, INFINITY, ZERO)


def ellipe(m: Number, *, n: int) -> Number:
    return _elliptic(m, n, _second_kind, -HALF, NEGATIVE_INFINITY if n else ONE, ZERO if n else INFINITY)


def _second_kind(k: Any, m: Any) -> Any:
    """The integral of the second kind from that of the first and its derivative, DLMF 19.4.1."""
    return 2 * m * (1 - m) * k.derivative() + (1 - m) * k


def _elliptic(m: Number, n: int, made: Any, a: fmpq, at_one: Number, far: Number) -> Number:
    """The nth derivative of an expression `made` of the power series of the integral of the first kind K.

    Around 0, where that expression divides by 0, it is the derivative of pi/2*F(a, 1/2; 1; m), DLMF 19.5.1.
    """
    if is_nan(m) or m > 1:
        return UNDEFINED
    if is_at(m, ONE):
        return at_one
    if is_infinite(m):
        return far
    if arb(m).contains(0):
        return (
            with_bounds(arb(m).hypgeom_2f1(a + n, n + HALF, n + 1) * arb.pi() / 2)
            * _rising(a, n)
            * _rising(HALF, n)
            / fmpz.fac_ui(n)
        )
    with series_length(n + 2):
        t = acb_series([acb(arb(m)), 1], prec=n + 2)
        return with_bounds(made(t.elliptic_k(), t)[n].real) * fmpz.fac_ui(n)


def _rising(a: fmpq, n: int) -> fmpq:
    """The rising factorial a*(a + 1)*…*(a + n - 1)."""
    return math.prod((a + k for k in range(n)), start=ONE)


# --- zeta functions and Lambert's


def riemann_zeta(x: Number) -> Number:
    if is_at(x, ONE):
        return INFINITY
    n = known_integer(x)
    if n is not None and -_BERNOULLI <= n <= 0:
        return -fmpq.bernoulli(1 - n) / (1 - n) if n else -HALF
    return _of_two_terms(x, ONE, 0) if is_finite(x) and _is_far(x, ONE, 0) else _zeta(x)


_zeta = analytic(arb.zeta, above=ONE)


def hurwitz_zeta(x: Number, q: Number, *, n: int) -> Number:
    """(-1)**n times the nth derivative of the Hurwitz zeta function with respect to x."""
    if is_nan(x) or is_nan(q):
        return UNDEFINED
    if is_at(x, ONE):
        return INFINITY
    if n == 0 and less(x, ONE) and not compared(q, ZERO) > 0:
        return UNDEFINED
    poles = known_integer(q)
    if poles is not None and poles <= 0:
        return UNDEFINED if n else INFINITY
    if is_infinite(x) or is_infinite(q):
        return UNDEFINED if is_infinite(x) or q < 0 else ZERO
    if less(q, ZERO):
        order = None if n else whole_order(x)
        if order is None:
            return UNDEFINED
        return divide(multiply(polygamma(q, n=order - 1), fmpq((-1) ** order)), gamma(x))
    if _is_far(x, q, n):
        return _of_two_terms(x, q, n)
    return coefficient(lambda t: t.zeta(arb(q)), x, n) * fmpz.fac_ui(n) * (-1) ** n


def _is_far(x: Number, q: Number, n: int) -> bool:
    """Return whether the terms of the series after the first two are certainly below a rounding error of the second.

    The terms are log(q + k)**n/(q + k)**x. FLINT's own function does not terminate in reasonable time there.
    """
    if not (q > 0 and x > 2 * n + 2):
        return False
    near, next_one = arb(q + 1), arb(q + 2)
    return bool(arb(x) * (next_one / near).log() > ctx.prec + (n + 2) * next_one.log() - n * near.log().log())


def _of_two_terms(x: Number, q: Number, n: int) -> Number:
    """The first two terms of the series, and a bound of the rest.

    As log(y) < y, the rest is at most the sum of (q + k)**(n - x) for k > 1, which is at most its first term plus an
    integral: 2*(q + 2)**(n + 1 - x) for x - n > 2.
    """
    first, second = (arb(q + k).log() ** n * (-arb(x) * arb(q + k).log()).exp() for k in range(2))
    rest = 2 * ((n + 1 - arb(x)) * arb(q + 2).log()).exp()
    return with_bounds(first + second + hull(ZERO, rest))


def lambertw(x: Number, *, k: int) -> Number:
    if is_nan(x) or x < -arb(-1).exp() or (k and x > 0):
        return UNDEFINED
    if is_at(x, ZERO):
        return NEGATIVE_INFINITY if k else ZERO
    return INFINITY if is_infinite(x) else with_bounds(arb(x).lambertw(k))
