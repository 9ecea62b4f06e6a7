"""Incomplete gamma and beta functions of FLINT numbers and their inverses, under the names that the namespace looks up.

The inverses are monotonic in each operand, so that the values over balls lie between those at two corners. There the
root is refined by Newton's method, starting from SciPy's value, and proved by a change of sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flint import arb, ctx, fmpq

from gradcli import limits
from gradcli.arrays.flint.balls import INFINITY, UNDEFINED, Number, UndecidedError, is_nan, precise, precision, to_float
from gradcli.arrays.flint.flint_elementary import pow
from gradcli.arrays.flint.flint_functions import less, negative, subtract
from gradcli.arrays.flint.flint_numbers import HALF, ONE, ZERO, compared, hull, is_at, is_infinite, with_bounds

# For larger parameters, Arb's lower incomplete gamma function is slow and gives wide balls.
_LARGE = 100
# Where x is within _NEAR standard deviations of a large parameter, or the series below would need more than _MOST_TERMS
# terms, the lower function is computed as 1 minus the upper one.
_NEAR, _MOST_TERMS = 16, 100_000
# For parameters above _HUGE with abs(a - x) < a/_CLOSE, the upper function is charged bits**2/_SQUARE eighths of a
# step.
_HUGE, _CLOSE, _SQUARE = 50_000, 16, 2.5


def gamma_density(a: Number, x: Number) -> Number:
    """The density of the gamma distribution, x**(a - 1)*exp(-x)/gamma(a)."""
    if is_nan(a) or is_nan(x) or less(a, ZERO) or less(x, ZERO) or (is_infinite(a) and is_infinite(x)):
        return UNDEFINED
    if is_infinite(x) or is_infinite(a):
        return ZERO
    if is_at(x, ZERO):
        return pow(x, subtract(a, ONE))
    return with_bounds(((arb(a) - 1) * arb(x).log() - x).exp() * arb(a).rgamma())


def beta_density(a: Number, b: Number, x: Number) -> Number:
    """The density of the beta distribution, x**(a - 1)*(1 - x)**(b - 1)/beta(a, b)."""
    if is_nan(a) or is_nan(b) or is_nan(x) or (is_infinite(a) and is_infinite(b)):
        return UNDEFINED
    if not (compared(a, ZERO) > 0 and compared(b, ZERO) > 0) or less(x, ZERO) or less(ONE, x):
        return UNDEFINED
    if is_at(x, ZERO) or is_at(x, ONE):
        near, far = (a, b) if is_at(x, ZERO) else (b, a)
        return far if is_at(near, ONE) else pow(ZERO, subtract(near, ONE))
    if is_infinite(a) or is_infinite(b):
        return ZERO
    first, second = arb(a), arb(b)
    scale = (first + second).gamma() * first.rgamma() * second.rgamma()
    return with_bounds(scale * ((first - 1) * arb(x).log() + (second - 1) * (1 - arb(x)).log()).exp())


def gammainc(a: Number, x: Number) -> Number:
    return _incomplete(a, x, ZERO, ONE, _lower)


def gammaincc(a: Number, x: Number) -> Number:
    return _incomplete(a, x, ONE, ZERO, _upper)


def _incomplete(a: Number, x: Number, at_zero: fmpq, at_infinity: fmpq, compute: Any) -> Number:
    if is_nan(a) or is_nan(x) or less(a, ZERO) or less(x, ZERO):
        return UNDEFINED
    if is_infinite(a) or is_at(a, ZERO):
        low = is_infinite(a) and not is_infinite(x)
        high = is_at(a, ZERO) and compared(x, ZERO) > 0
        return at_zero if low else at_infinity if high else UNDEFINED
    if is_at(x, ZERO) or is_infinite(x):
        return at_infinity if is_infinite(x) else at_zero
    return with_bounds(compute(arb(a), arb(x)))


def _upper(a: Any, x: Any) -> Any:
    if a > _HUGE and abs(a - x) * _CLOSE < a:
        limits.charge_steps(int(ctx.prec**2 / _SQUARE))
    return x.gamma_upper(a, regularized=1)


def _lower(a: Any, x: Any) -> Any:
    if not a > _LARGE:
        return x.gamma_lower(a, regularized=1)
    if not a - x > _NEAR * a.sqrt() or not (a - x) * _MOST_TERMS > a * ctx.prec:
        return 1 - _upper(a, x)
    # x**a*exp(-x)/gamma(a + 1) times a series whose terms decrease faster than a geometric series, DLMF 8.7.1.
    term = total = arb(1)
    k, smallest = 0, arb(2) ** -ctx.prec
    while not term < smallest:
        k += 1
        term = term * (x / (a + k))
        total = total + term
    ratio = x / (a + (k + 1))
    return (a * x.log() - x).exp() * (a + 1).rgamma() * (total + hull(ZERO, term * ratio / (1 - ratio)))


def betainc(a: Number, b: Number, x: Number) -> Number:
    if is_nan(a) or is_nan(b) or is_nan(x) or less(a, ZERO) or less(b, ZERO) or less(x, ZERO) or less(ONE, x):
        return UNDEFINED
    if is_at(a, ZERO) or is_at(b, ZERO) or is_infinite(a) or is_infinite(b):
        return _degenerate(is_at(a, ZERO) or is_infinite(b), is_at(b, ZERO) or is_infinite(a), x)
    if is_at(x, ZERO) or is_at(x, ONE):
        return ZERO if x == 0 else ONE
    return with_bounds(arb(x).beta_lower(arb(a), arb(b), regularized=True))


def _degenerate(low: bool, high: bool, x: Number) -> Number:
    """The CDF at x of a distribution concentrated at 0 (`low`) or at 1 (`high`)."""
    if low and high:
        return UNDEFINED
    return fmpq(x > 0) if low else fmpq(x == 1)


# The maximum number of Newton steps, and the extra bits in which they are computed.
_STEPS, _GUARD = 60, 20


def betaincc(a: Number, b: Number, x: Number) -> Number:
    return betainc(b, a, subtract(ONE, x))


def gammaincinv(a: Number, p: Number) -> Number:
    return _inverse("gammaincinv", gammainc, _gamma_slope, (a,), p, (1,), 1)


def gammainccinv(a: Number, p: Number) -> Number:
    return _inverse("gammainccinv", gammaincc, _gamma_slope, (a,), p, (1,), -1)


def betaincinv(a: Number, b: Number, p: Number) -> Number:
    return _inverse("betaincinv", betainc, _beta_slope, (a, b), p, (1, -1), 1)


def betainccinv(a: Number, b: Number, p: Number) -> Number:
    return _inverse("betainccinv", betaincc, _beta_slope, (a, b), p, (1, -1), -1)


def stdtrit(df: Number, p: Number) -> Number:
    """The quantile of Student's distribution, from that of the beta distribution.

    t**2 = df*(1/x - 1), where betainc(df/2, 1/2, x) = 2*min(p, 1 - p).
    """
    if is_nan(df) or is_nan(p) or is_infinite(df) or not df > 0 or less(p, ZERO) or less(ONE, p):
        return UNDEFINED
    if is_at(p, HALF):
        return ZERO
    tail = p if less(p, HALF) else subtract(ONE, p)
    x = arb(betaincinv(df / 2, HALF, 2 * tail))
    size = (arb(df) * (1 / x - 1)).sqrt() if not is_at(tail, ZERO) else INFINITY
    return negative(size) if p < HALF else size


def _gamma_slope(a: Any, x: Any) -> Any:
    return ((a - 1) * x.log() - x).exp() * a.rgamma()


def _beta_slope(a: Any, b: Any, x: Any) -> Any:
    return ((a - 1) * x.log() + (b - 1) * (-x).log1p()).exp() * a.rgamma() * b.rgamma() * (a + b).gamma()


def _inverse(
    name: str,
    function: Callable[..., Number],
    slope: Callable[..., Any],
    parameters: Sequence[Number],
    p: Number,
    rises: Sequence[int],
    sign: int,
) -> Number:
    """The x with function(*parameters, x) = p.

    `sign` is 1 if the function increases with x and -1 if it decreases; `rises` says the same of x as a function of
    each parameter.
    """
    if any(is_nan(o) for o in (*parameters, p)) or less(p, ZERO) or less(ONE, p):
        return UNDEFINED
    if any(is_infinite(a) or not a > 0 for a in parameters):
        return UNDEFINED
    if is_at(p, ZERO) or is_at(p, ONE):
        last = INFINITY if len(parameters) == 1 else ONE
        return ZERO if (p == 0) is (sign > 0) else last
    operands, ways = [*map(arb, (*parameters, p))], (*rises, sign)
    ends = []
    for end in (-1, 1):
        *given, wanted = (o.lower() if way == -end else o.upper() for o, way in zip(operands, ways))
        ends.append(_root(name, function, slope, given, wanted, sign))
        if all(o.is_exact() for o in operands):
            return ends[0]
    return hull(*ends)


def _root(
    name: str, function: Callable[..., Number], slope: Callable[..., Any], given: Sequence[Any], p: Any, sign: int
) -> Number:
    """The root for exact operands, as a ball. Raises UndecidedError if it is not found."""
    import scipy.special

    start = float(getattr(scipy.special, name)(*map(to_float, given), to_float(p)))
    if not 0.0 < start < math.inf:
        raise UndecidedError("an inverse is not found")
    bits = precision()
    with precise(bits + _GUARD):
        x = arb(start)
        for _ in range(_STEPS):
            step = (sign * (arb(function(*given, x)) - p) / slope(*given, x)).mid()
            if not step.is_finite():
                break
            following = (x - step).mid()
            x = following if following > 0 and (len(given) == 1 or following < 1) else x / 2
            if abs(step) < abs(x) * arb(2) ** -bits:
                break
        around = abs(x) * arb(2) ** -(bits - 4)
        below, above = (sign * (arb(function(*given, x + way * around)) - p) for way in (-1, 1))
        if not (below < 0 and above > 0):
            raise UndecidedError("an inverse is not found")
        return x + arb(0, around.abs_upper())
