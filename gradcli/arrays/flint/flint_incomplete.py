"""Incomplete gamma and beta functions of FLINT numbers, under the names that the namespace looks up."""

from __future__ import annotations

from typing import Any

from flint import arb, ctx, fmpq

from gradcli import limits
from gradcli.arrays.flint.balls import UNDEFINED, Number, is_nan
from gradcli.arrays.flint.flint_elementary import pow
from gradcli.arrays.flint.flint_functions import less, subtract
from gradcli.arrays.flint.flint_numbers import ONE, ZERO, compared, hull, is_at, is_infinite, with_bounds

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
