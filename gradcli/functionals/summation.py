"""Sums of finite and infinite series, with an estimate of their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli import arrays, limits
from gradcli.errors import EvaluationError, LimitError
from gradcli.functionals.extrapolation import limit_of_sums
from gradcli.functionals.integration import Integral, integrals
from gradcli.functionals.quadrature import Tolerance

# Takes numbers [n] and returns the terms with these numbers, [n].
Terms = Callable[[Any], Any]
# Takes a number and an order, and returns the Taylor coefficients of the terms there up to that order, as a function of
# a real number.
Expansion = Callable[[float, int], Sequence[float]]

# The terms that are summed at once, and a bound on their number.
_CHUNK, _MOST_TERMS = 65_536, 100_000_000
# The numbers of terms after which an infinite series is extrapolated, and up to which it is summed if it ends there;
# powers of the last number are examined beyond.
_FIRST, _MANY, _LAST, _FARTHER = 64, 8_192, 8, 2.0
# The number of blocks of 1, 2, 4, … terms.
_BLOCKS = 16
# The Bernoulli numbers B(2), B(4), … divided by 2, 4, …: factors of Taylor coefficients, which are derivatives of order
# 2j - 1 divided by (2j - 1)!.
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


class Sum(NamedTuple):
    """The sum of a series with its estimated error, and the reason why there is none, if there is one."""

    value: float
    error: float
    fault: str | None = None


def total(terms: Terms, expansion: Expansion, first: float, last: float) -> Sum:
    """The sum of the terms from number `first` to `last`, which may be infinite.

    Raises EvaluationError for limits that are no whole numbers, and LimitError for too many terms.
    """
    check_limits(first, last)
    if first > last:
        return Sum(0.0, 0.0)
    with arrays.numpy_namespace().errstate(all="ignore"):
        if math.isfinite(first) and math.isfinite(last):
            return _finite(terms, first, last)
        if math.isfinite(first):
            return _infinite(terms, expansion, first)
        if math.isfinite(last):
            return _infinite(lambda k: terms(-k), _mirrored(expansion), -last)
        up, down = _infinite(terms, expansion, 0.0), _infinite(lambda k: terms(-k), _mirrored(expansion), 1.0)
        return Sum(up.value + down.value, up.error + down.error, up.fault or down.fault)


def check_limits(first: float, last: float) -> None:
    """Raise EvaluationError for limits that are no whole numbers and not infinite."""
    for number in (first, last):
        if math.isnan(number) or (math.isfinite(number) and number != round(number)):
            raise EvaluationError(f"a sum goes from one whole number to another, and {number:g} is none")


def _mirrored(expansion: Expansion) -> Expansion:
    return lambda k, order: [(-1.0) ** j * c for j, c in enumerate(expansion(-k, order))]


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


def _infinite(terms: Terms, expansion: Expansion, first: float) -> Sum:
    """The sum of the terms from number `first` on."""
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
    if max(np.abs(found[-_LAST:]).max(), np.nan_to_num(np.abs(far), nan=0.0).max()) <= 2.0**-60 * largest:
        return Sum(math.fsum(found), 2.0**-53 * float(np.abs(found).sum()))
    last = found[_FIRST - _LAST : _FIRST]
    ratios = last[1:] / last[:-1]
    if (ratios < 0).all() and (found[1:] * found[:-1] < 0).all():
        return _alternating(found[:_FIRST], ratios)
    return _slow(terms, expansion, first, found)


def _alternating(found: Any, ratios: Any) -> Sum:
    if (ratios <= -1.0).all():
        return Sum(math.nan, math.inf, "the sum diverges")
    value, error = limit_of_sums(found.tolist())
    return Sum(value, error)


def _slow(terms: Terms, expansion: Expansion, first: float, found: Any) -> Sum:
    """The formula of Euler and Maclaurin (DLMF 2.10.1) for the terms after the first ones, where it applies."""
    np = arrays.numpy_namespace()
    start = first + len(found)
    rest: Integral = integrals(lambda t, _: terms(t), [start], [math.inf], (), Tolerance(1e-13, 1e-15))[0]
    if rest.fault is not None and "diverges" in rest.fault:
        return Sum(math.nan, math.inf, "the sum diverges")
    coefficients = expansion(start, 2 * len(_BERNOULLI) - 1)
    if rest.fault is None and all(map(math.isfinite, coefficients)):
        corrections = [b * c for b, c in zip(_BERNOULLI, coefficients[1::2])]
        value = math.fsum([*found, rest.value, 0.5 * coefficients[0], *(-c for c in corrections)])
        rounding = 2.0**-52 * (float(np.abs(found).sum()) + rest.size)
        return Sum(value, rest.error + abs(corrections[-1]) + rounding)
    blocks = _by_blocks(terms, first)
    if not blocks.error <= 1e-2 * abs(blocks.value):
        return blocks._replace(fault="no sum was found: the terms do not shrink regularly")
    return blocks


def _by_blocks(terms: Terms, first: float) -> Sum:
    """The sum by extrapolation of the sums of blocks, each of twice as many terms as the one before."""
    np = arrays.numpy_namespace()
    blocks = [float(terms(np.array([first]))[0])]
    for j in range(_BLOCKS):
        limits.charge_steps()
        blocks.append(math.fsum(terms(first + np.arange(2**j, 2 ** (j + 1)))))
    value, error = limit_of_sums(blocks)
    return Sum(value, error)
