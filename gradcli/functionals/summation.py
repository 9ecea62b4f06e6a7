"""Sums of finite and infinite series, with an estimate of their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, LimitError
from gradcli.functionals.extrapolation import limit_of_sums
from gradcli.functionals.integration import Integral, integrals
from gradcli.functionals.quadrature import Tolerance
from gradcli.functionals.resolution import Bounds
from gradcli.named_tuples import NamedTuple

# Takes numbers [n] and returns the terms with these numbers, [n].
Terms = Callable[[Any], Any]
# Takes a number and an order, and returns the Taylor coefficients of the terms there up to that order, as a function of
# a real number.
Expansion = Callable[[float, int], Sequence[float]]
# Takes two numbers, and returns whether the terms are smooth functions of their number in between.
Smoothness = Callable[[float, float], bool]

# The terms that are summed at once, and a bound on their number.
_CHUNK, _MOST_TERMS = 65_536, 100_000_000
# The numbers of terms after which an infinite series is extrapolated, and up to which it is summed if it ends there;
# powers of the last number are examined beyond.
_FIRST, _MANY, _LAST, _FARTHER = 64, 8_192, 8, 2.0
# The formula of Euler and Maclaurin begins after as many terms times a power of 2, up to this number of powers, and after
# powers of 2 it is examined whether it could; it is tested with this number of terms.
_MOST_DOUBLINGS, _EXAMINED_POWERS, _TESTED = 10, range(23, 60), 256
# Bounds are taken between numbers up to this power of 2 times the first ones; how much larger they may be than the terms.
_FARTHEST, _LARGER = 64, 64.0
# Parts of a magnitude: differences that are rounding, and the largest one at which a formula holds.
_SAME, _ALIKE = 1e-13, 1e-2
# The number of blocks of 1, 2, 4, … terms.
_BLOCKS = 16
# The Bernoulli numbers B(2), B(4), … divided by 2, 4, …: factors of Taylor coefficients, which are derivatives of order
# 2j - 1 divided by (2j - 1)!.
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

_IRREGULAR = "no sum was found: the terms do not shrink regularly"


class Series(NamedTuple):
    """The terms of a series as a function of their number."""

    terms: Terms
    expansion: Expansion
    is_smooth: Smoothness
    # None where they are not known.
    bounds: Bounds | None

    @property
    def mirrored(self) -> Series:
        """The series whose term k is the term -k of this one."""
        return Series(
            lambda k: self.terms(-k),
            lambda k, order: [(-1.0) ** j * c for j, c in enumerate(self.expansion(-k, order))],
            lambda low, high: self.is_smooth(-high, -low),
            self.bounds and (lambda low, high, row: self.bounds(-high, -low, row)),  # type: ignore[misc]
        )


class Sum(NamedTuple):
    """The sum of a series with its estimated error, and the reason why there is none, if there is one."""

    value: float
    error: float
    fault: str | None = None


def total(series: Series, first: float, last: float) -> Sum:
    """The sum of the terms from number `first` to `last`, which may be infinite.

    Raises EvaluationError for limits that are no whole numbers, and LimitError for too many terms.
    """
    check_limits(first, last)
    if first > last:
        return Sum(0.0, 0.0)
    with arrays.numpy_namespace().errstate(all="ignore"):
        if math.isfinite(first) and math.isfinite(last):
            return _finite(series.terms, first, last)
        if math.isfinite(first):
            return _infinite(series, first)
        if math.isfinite(last):
            return _infinite(series.mirrored, -last)
        up, down = _infinite(series, 0.0), _infinite(series.mirrored, 1.0)
        return Sum(up.value + down.value, up.error + down.error, up.fault or down.fault)


def check_limits(first: float, last: float) -> None:
    """Raise EvaluationError for limits that are no whole numbers and not infinite."""
    for number in (first, last):
        if math.isnan(number) or (math.isfinite(number) and number != round(number)):
            raise EvaluationError(f"a sum goes from one whole number to another, and {number:g} is none")


def _finite(terms: Terms, first: float, last: float) -> Sum:
    count = last - first + 1
    if count > _MOST_TERMS:
        raise LimitError(f"a sum of {count:.3g} terms is too long", hint="an infinite series is summed to its limit")
    np = arrays.numpy_namespace()
    parts, sizes = [], 0.0
    for start in range(0, int(count), _CHUNK):
        limits.charge_steps()
        found = terms(first + np.arange(start, min(start + _CHUNK, count)))
        parts.append(math.fsum(found) if np.isfinite(found).all() else float(np.sum(found)))
        sizes += float(np.abs(found).sum())
    value = math.fsum(parts) if all(map(math.isfinite, parts)) else sum(parts)
    return Sum(value, 2.0**-53 * sizes)


def _infinite(series: Series, first: float) -> Sum:
    """The sum of the terms from number `first` on."""
    terms = series.terms
    np = arrays.numpy_namespace()
    found = terms(first + np.arange(_MANY))
    if not np.isfinite(found).all():
        known = int(np.argmin(np.isfinite(found)))
        size = float(np.abs(found[:known]).max(initial=0.0))
        if known > _LAST and np.abs(found[known - _LAST : known]).max() <= 2.0**-60 * size:
            # Factors overflow where the terms have vanished.
            return Sum(math.fsum(found[:known]), 2.0**-53 * float(np.abs(found[:known]).sum()))
        return Sum(math.nan, math.inf, f"the term {first + known:g} is no number")
    far = terms(first + _FARTHER ** np.arange(_MANY.bit_length(), 50.0))
    largest = float(np.abs(found).max())
    least = 2.0**-60 * largest
    if max(np.abs(found[-_LAST:]).max(), np.nan_to_num(np.abs(far), nan=0.0).max()) <= least and _vanishes(
        series.bounds, _places(first), least
    ):
        return Sum(math.fsum(found), 2.0**-53 * float(np.abs(found).sum()))
    last = found[_FIRST - _LAST : _FIRST]
    ratios = last[1:] / last[:-1]
    if (ratios < 0).all() and (found[1:] * found[:-1] < 0).all():
        return _alternating(found[:_FIRST], ratios)
    return _slow(series, first, found)


def _places(first: float, doublings: int = 0) -> Any:
    """Numbers of terms, each of twice as many as the one before."""
    np = arrays.numpy_namespace()
    return first + _MANY * 2.0 ** np.arange(doublings, _FARTHEST)


def _vanishes(bounds: Bounds | None, places: Any, least: float) -> bool:
    """Whether bounds, where there are some, say that the terms from the first of some places on are at most `least`."""
    return bounds is None or bool((_largest(bounds, places) <= least).all())


def _may_peak(series: Series, places: Any) -> bool:
    """Whether terms may be much larger than those at the places next to them."""
    np = arrays.numpy_namespace()
    if series.bounds is None:
        return False
    values = np.abs(series.terms(places))
    return not bool((_largest(series.bounds, places)[:-1] <= _LARGER * np.maximum(values[1:], values[:-1])).all())


def _largest(bounds: Bounds, places: Any) -> Any:
    """Bounds of the magnitude between neighbours, and from the last one on."""
    np = arrays.numpy_namespace()
    low, high = bounds(places, np.append(places[1:], math.inf), np.zeros(len(places), int))
    return np.maximum(np.abs(low), np.abs(high))


def _alternating(found: Any, ratios: Any) -> Sum:
    if (ratios <= -1.0).all():
        return Sum(math.nan, math.inf, "the sum diverges")
    value, error = limit_of_sums(found.tolist())
    return Sum(value, error)


def _slow(series: Series, first: float, found: Any) -> Sum:
    """The sum by the formula of Euler and Maclaurin for the terms after the first ones, where it applies, else by
    blocks."""
    np = arrays.numpy_namespace()
    hidden = False
    for j in range(_MOST_DOUBLINGS):
        places = _places(first, j)
        begin = float(places[0])
        if not series.is_smooth(begin - _TESTED, math.inf):
            continue
        tail = _tail(series, places, float(np.abs(found).sum()))
        if tail is None:
            hidden = True
            continue
        if tail.fault == _IRREGULAR:
            break
        between = _finite(series.terms, first + _MANY, begin - 1)
        value = math.fsum([*found, between.value, tail.value])
        return Sum(value, between.error + tail.error + 2.0**-52 * float(np.abs(found).sum()), tail.fault)
    else:
        if hidden or any(series.is_smooth(first + 2.0**j, math.inf) for j in _EXAMINED_POWERS):
            what = "have a peak" if hidden else "switch"
            return Sum(math.nan, math.inf, f"no sum was found: the terms {what} beyond number {begin:,.0f}")
    blocks = _by_blocks(series.terms, first)
    return blocks if blocks.error <= 1e-2 * abs(blocks.value) else blocks._replace(fault=_IRREGULAR)


def _tail(series: Series, places: Any, size: float) -> Sum | None:
    """The sum of the terms from the first of some places on by the formula of Euler and Maclaurin, of a series whose
    first terms have a magnitude of `size`; None where the terms have a peak farther on, after which it may hold.

    The formula holds for functions that hardly change from one number to the next, which is tested by the terms before:
    cos(2*pi*k) is 1 for all numbers, and no formula of its derivatives knows that.
    """
    np = arrays.numpy_namespace()
    begin = float(places[0])
    rest = seen = _integral(series, begin, math.inf, None)
    if rest.fault is None and _may_peak(series, places):
        rest = _integral(series, begin, math.inf, series.bounds)
    if rest.fault is not None:
        return Sum(math.nan, math.inf, "the sum diverges" if "diverges" in rest.fault else _IRREGULAR)
    if abs(seen.value - rest.value) > seen.error + rest.error + _SAME * size:
        return None
    tested = _integral(series, begin - _TESTED, begin, None)
    (first, _), (last, truncation) = (_correction(series, k) for k in (begin - _TESTED, begin))
    terms = series.terms(begin - np.arange(1.0, _TESTED + 1))
    apart = abs(math.fsum([*terms, -tested.value, -first, last]))
    if not apart <= _ALIKE * np.abs(terms).sum():
        return Sum(math.nan, math.inf, _IRREGULAR)
    # The difference is that of all later terms in proportion, and rounding where it is small.
    missed = apart * rest.size / tested.size if apart > _SAME * np.abs(terms).sum() else 0.0
    return Sum(rest.value + last, rest.error + truncation + missed + 2.0**-52 * rest.size)


def _integral(series: Series, low: float, high: float, bounds: Bounds | None) -> Integral:
    (found,) = integrals(lambda t, _: series.terms(t), [low], [high], (), Tolerance(1e-13, 1e-15), bounds)
    return found


def _correction(series: Series, begin: float) -> tuple[float, float]:
    """By how much the sum of the terms from number `begin` on exceeds their integral (DLMF 2.10.1), and the magnitude of
    the last part of that."""
    coefficients = series.expansion(begin, 2 * len(_BERNOULLI) - 1)
    parts = [-b * c for b, c in zip(_BERNOULLI, coefficients[1::2])]
    return math.fsum([0.5 * coefficients[0], *parts]), abs(parts[-1])


def _by_blocks(terms: Terms, first: float) -> Sum:
    """The sum by extrapolation of the sums of blocks, each of twice as many terms as the one before."""
    np = arrays.numpy_namespace()
    blocks = [float(terms(np.array([first]))[0])]
    for j in range(_BLOCKS):
        limits.charge_steps()
        blocks.append(math.fsum(terms(first + np.arange(2**j, 2 ** (j + 1)))))
    value, error = limit_of_sums(blocks)
    return Sum(value, error)
