"""Integrals whose limits grow or move, as sums of exponentials times asymptotic series.

Between a fixed place and a limit that grows, an integral is that up to infinity and what is left of it, whose series are
those of the integrand, integrated term by term. Where it diverges, the terms that grow are known, and the constant is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import EvaluationError
from gradcli.kinds import asymptotic
from gradcli.kinds.asymptotic import NOISE, Asymptotic, AsymptoticCoefficient, AsymptoticTerm, NoLimitError
from gradcli.kinds.exponential_scales import (
    ExponentialScale,
    ExponentialScales,
    antiderivative,
    of_series,
    plain,
    sign_of_growth,
)
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.primitive import Primitive

# The errors of integrals are up to this many times their tolerance.
_SLACK = 10
# The distance at which the constant of an integral that diverges is sampled: its series is accurate there, and the
# integral a sum of few panels.
_FAR = 2.0**-5


class _Limit(NamedTuple):
    """The place that a limit tends to, and the integral from there to the limit; no place where that is infinite."""

    place: AsymptoticCoefficient | None
    rest: ExponentialScales


def integral_of_series(integral: Primitive, low: Any, high: Any, *reads: Any, **params: Any) -> ExponentialScales:
    """The integral of a body. Raises NoLimitError where it has no such series, or none is found."""
    count = next(o.count for o in (low, high, *reads) if isinstance(o, ExponentialScales))
    given = [ExponentialScales.of(r, count) for r in reads]
    if not any(map(_is_infinite, (low, high))):
        limits = [ExponentialScales.of(x, count) for x in (low, high)]
        return of_series(integral, [*limits, *given], params)
    numbers = [_constant(r) for r in given]
    first, last = (_limit(integral, x, numbers, count, params) for x in (low, high))
    found: ExponentialScales = last.rest - first.rest
    if first.place is None or last.place is None:
        constant = _unknown_constant(integral, low, high, found, numbers, count, params)
    else:
        value = _between(integral, first.place, last.place, numbers, params)
        constant = ExponentialScales.of(Asymptotic([AsymptoticTerm(0.0, 0.0, 0, value)], math.inf, count), count)
    whole: ExponentialScales = found + constant
    return whole


def _is_infinite(limit: Any) -> bool:
    """Return whether a limit is infinite, or grows."""
    if not isinstance(limit, ExponentialScales):
        return not isinstance(limit, Kind) and math.isinf(limit)
    lead = limit.scales[0] if limit.scales else None
    if lead is None or sign_of_growth(lead.growth) < 0:
        return False
    return bool(lead.growth.terms) or (bool(lead.series.terms) and lead.series.terms[0].exponent < 0.0)


def _constant(read: ExponentialScales) -> AsymptoticCoefficient:
    """The number that a series is. Raises NoLimitError for one that varies."""
    series = plain(read)
    if series is None or series.end < math.inf or any(t.exponent or t.logs for t in series.terms):
        raise NoLimitError("an integrand that varies with its limits")
    return series.terms[0].c if series.terms else AsymptoticCoefficient(0.0, 0.0, 0.0)


def _limit(
    integral: Primitive, limit: Any, given: Sequence[AsymptoticCoefficient], count: int, params: Mapping[str, Any]
) -> _Limit:
    nothing = ExponentialScales([], count)
    if not isinstance(limit, ExponentialScales) and _is_infinite(limit):
        return _Limit(AsymptoticCoefficient(limit, float(limit), 0.0), nothing)
    series = plain(ExponentialScales.of(limit, count))
    if series is None:
        raise NoLimitError("a limit that is an exponential")
    reads = [ExponentialScales.of(Asymptotic.constant(c.value, c.sample, count), count) for c in given]
    lead = series.terms[0] if series.terms else None
    if lead is None or lead.exponent >= 0.0:
        if lead is not None and lead.logs and not lead.exponent:
            raise NoLimitError("a limit that is a logarithm")
        place = AsymptoticCoefficient(0.0, 0.0, 0.0) if lead is None or lead.exponent else lead.c
        start = ExponentialScales.of(Asymptotic.constant(place.value, place.sample, count), count)
        end = ExponentialScales.of(series, count)
        is_fixed = series.end == math.inf and not any(t.exponent for t in series.terms)
        rest = nothing if is_fixed else of_series(integral, [start, end, *reads], params)
        return _Limit(place, rest)
    (found,) = params["body"](limit, *reads)
    rest = antiderivative(ExponentialScales.of(found, count) * asymptotic.slope(series))
    if not all(_vanishes(*scale) for scale in rest.scales):
        return _Limit(None, rest)
    infinite = math.copysign(math.inf, lead.c.sample)
    return _Limit(AsymptoticCoefficient(infinite, infinite, 0.0), rest)


def _unknown_constant(
    integral: Primitive,
    low: Any,
    high: Any,
    rest: ExponentialScales,
    given: Sequence[AsymptoticCoefficient],
    count: int,
    params: Mapping[str, Any],
) -> ExponentialScales:
    """What an integral that diverges differs by from the terms `rest` that grow.

    Where these are powers and logarithms, it is a coefficient that is no number, so that only what does not depend on it
    has a limit; its sample is the difference far away.
    """
    lead = next((scale.series.terms[0] for scale in rest.scales if scale.series.terms), None)
    if is_exact() or len(rest.scales) != 1 or rest.scales[0].growth.terms or lead is None:
        unknown = ExponentialScale(Asymptotic([], math.inf, count), Asymptotic([], 0.0, count))
        return ExponentialScales([unknown], count)
    places = [ExponentialScales.of(limit, count).sample_at(_FAR) for limit in (low, high)]
    try:
        with arrays.using_namespace(None):
            whole = float(bind(integral, [*places, *(c.sample for c in given)], params))
    except EvaluationError as error:
        raise NoLimitError(str(error)) from None
    # A sample of 0 would be taken for a constant of 0.
    sample = (whole - rest.sample_at(_FAR)) or math.ulp(whole)
    coefficient = AsymptoticCoefficient(math.nan, sample, abs(sample))
    return ExponentialScales.of(Asymptotic([AsymptoticTerm(0.0, 0.0, 0, coefficient)], math.inf, count), count)


def _vanishes(growth: Asymptotic, series: Asymptotic) -> bool:
    if growth.terms:
        return sign_of_growth(growth) < 0
    return series.end > 0.0 and all(t.exponent > 0.0 for t in series.terms)


def _between(
    integral: Primitive,
    low: AsymptoticCoefficient,
    high: AsymptoticCoefficient,
    given: Sequence[AsymptoticCoefficient],
    params: Mapping[str, Any],
) -> AsymptoticCoefficient:
    """The integral between two places, of which at least one is infinite."""
    operands = [low, high, *given]
    if low.sample == high.sample:
        return AsymptoticCoefficient(0.0, 0.0, 0.0)
    try:
        value = bind(integral, [c.value for c in operands], params)
        if all(c.value is c.sample for c in operands):
            sample = value
        else:
            with arrays.using_namespace(None):
                sample = float(bind(integral, [c.sample for c in operands], params))
    except EvaluationError as error:
        raise NoLimitError(str(error)) from None
    # A difference from it that is below its tolerance counts as 0.
    return AsymptoticCoefficient(value, sample, _SLACK * params["rtol"] / NOISE * abs(sample))
