"""Sums of exponentials times asymptotic series as operands: functions near a point at which parts of them grow or
vanish faster than every power.

A function is the sum of exp(g)*s over a few scales, where g and s are asymptotic series, and g has infinite terms
alone. Scales are ordered by their growth, as in D. Gruntz, On Computing Limits in a Symbolic Manipulation System, 1996:
one scale is negligible beside another, to all orders, if the difference of their exponents tends to -inf.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from gradcli.arrays.mathematical_constants import log_2
from gradcli.kinds import asymptotic
from gradcli.kinds.asymptotic import (
    COMPOSED,
    Asymptotic,
    AsymptoticCoefficient,
    AsymptoticTerm,
    NoLimitError,
    fraction,
    logarithm_coefficient,
    series_of,
)
from gradcli.kinds.jets import without_observer
from gradcli.kinds.levels import PATTERN
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import assume, bind, constant
from gradcli.primitives.entries.arithmetic import add, multiply, negative, reciprocal
from gradcli.primitives.entries.comparisons import greater, less
from gradcli.primitives.entries.elementwise.trigonometric import cosh, logcosh, sinh, tanh
from gradcli.primitives.entries.exponential import (
    exp,
    exp2,
    log,
    logaddexp,
    logsigmoid,
    sigmoid,
    softplus,
)
from gradcli.primitives.entries.powers import general_power, whole_power
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive

# The number of powers of a scale that is negligible beside 1 in the expansion of a function of 1 plus it.
_POWERS = 4
# Bounds on the number of scales of a function, and on a whole power that is computed by products.
_MOST_SCALES, _MOST_FACTORS = 16, 64
# An exponent below all others, from which on terms of a series are unknown: finite, so that it can be added to.
_LOWEST = -1e300


class ExponentialScale(NamedTuple):
    """The function exp(growth)*series."""

    growth: Asymptotic
    series: Asymptotic


class ExponentialScales(Operators):
    """A sum of scales, of which the first one grows fastest.

    Where the terms of a series are known up to some exponent alone, so are those of the sum: no scale follows it. A
    series of which no term is known, `Asymptotic([], _LOWEST, count)`, stands for anything of its scale.
    """

    __slots__ = ("count", "scales")
    level = PATTERN
    shape = ()

    def __init__(self, scales: Iterable[ExponentialScale], count: int) -> None:
        found: list[ExponentialScale] = []
        for scale in scales:
            for k, other in enumerate(found):
                order = _compared(scale.growth, other.growth)
                if order == 0:
                    found[k] = ExponentialScale(scale.growth, scale.series + other.series)
                    break
                if order > 0:
                    found.insert(k, scale)
                    break
            else:
                found.append(scale)
        known = [s for s in found if s.series.terms or s.series.end < math.inf]
        cut = next((k for k, s in enumerate(known) if s.series.end < math.inf), len(known))
        self.scales = tuple(known[: cut + 1])
        self.count = count
        if len(self.scales) > _MOST_SCALES:
            raise NoLimitError("too many exponentials")

    @property
    def inner(self) -> Any:
        # No rule may branch on the value.
        raise NoLimitError("a sum of exponentials is no number")

    @staticmethod
    def of(value: Any, count: int) -> ExponentialScales:
        """A number, a series, or such a sum itself."""
        if isinstance(value, ExponentialScales):
            return value
        return ExponentialScales([ExponentialScale(_one_scale(count), series_of(value, count))], count)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> ExponentialScales:
        count = next(o.count for o in operands if isinstance(o, ExponentialScales))
        with without_observer():
            if primitive.asymptotic is not None:
                found: ExponentialScales = primitive.asymptotic(primitive, *operands, **params)
                return found
            given = [ExponentialScales.of(o, count) for o in operands]
            rule = _RULES.get(primitive)
            return rule(*given, **params) if rule is not None else of_series(primitive, given, params)

    @property
    def leading(self) -> ExponentialScale:
        """The scale that grows fastest."""
        if not self.scales:
            raise NoLimitError("a function that is 0 as far as is known")
        return self.scales[0]

    def sample_at(self, t: float) -> float:
        """The sample of the value at the distance t > 0."""
        return math.fsum(math.exp(s.growth.sample_at(t)) * s.series.sample_at(t) for s in self.scales)


def sign_of_growth(growth: Asymptotic) -> int:
    """1 for the exponent of a scale that tends to inf, -1 for one that tends to -inf, 0 for 0."""
    if not growth.terms:
        return 0
    lead = growth.terms[0]
    up, down = (assume(compare(constant(lead.c.value), 0.0)) for compare in (greater, less))
    if up is down or up is not (lead.c.sample > 0.0):
        raise NoLimitError("exponentials that grow alike for these numbers alone")
    # The logarithm of a small distance is negative.
    return 1 if up is (lead.logs % 2 == 0) else -1


def _compared(a: Asymptotic, b: Asymptotic) -> int:
    """1 if the first of two exponents grows faster, -1 if the other does, 0 if they are equal."""
    return sign_of_growth(a - b) if a.terms or b.terms else 0


def _one_scale(count: int) -> Asymptotic:
    return Asymptotic([], math.inf, count)


def _unknown(growth: Asymptotic) -> ExponentialScale:
    return ExponentialScale(growth, Asymptotic([], _LOWEST, growth.count))


def plain(a: ExponentialScales) -> Asymptotic | None:
    """A sum without exponentials as a series; None for any other."""
    if not a.scales:
        return _one_scale(a.count)
    return a.scales[0].series if len(a.scales) == 1 and not a.scales[0].growth.terms else None


def _is_infinite(term: AsymptoticTerm) -> bool:
    """Return whether the exponential of a term is no series."""
    return term.exponent < 0.0 or (term.exponent == 0.0 and term.logs > 1)


def of_series(
    primitive: Primitive, operands: Sequence[ExponentialScales], params: Mapping[str, Any]
) -> ExponentialScales:
    """A function of series, or of one that differs from a series by what is negligible, in the same scale."""
    count = operands[0].count
    first, *others = operands
    if not others and first.scales and not first.scales[0].growth.terms:
        found = bind(primitive, (first.scales[0].series,), params)
        return ExponentialScales(
            [*ExponentialScales.of(found, count).scales, *(_unknown(s.growth) for s in first.scales[1:])], count
        )
    series = [plain(o) for o in operands]
    if None in series:
        raise NoLimitError(f"'{primitive.called}' of an exponential")
    return ExponentialScales.of(bind(primitive, series, params), count)


def antiderivative(a: ExponentialScales) -> ExponentialScales:
    """A function whose derivative by the distance is the function: the one that tends to 0 at the point, or that has no
    constant, which is unknown beside scales that grow.

    For exp(g)*s it is exp(g)*u, where u' + g'*u = s.
    """
    found = []
    for growth, series in a.scales:
        if not growth.terms:
            found.append(ExponentialScale(growth, asymptotic.antiderivative(series)))
        elif not series.terms and series.end <= _LOWEST:
            found.append(_unknown(growth))
        else:
            found.append(ExponentialScale(growth, _factor_of_antiderivative(growth, series)))
    return ExponentialScales(found, a.count)


def _factor_of_antiderivative(growth: Asymptotic, series: Asymptotic) -> Asymptotic:
    """The series u for which u' + g'*u is a series, by the iteration of u = (series - u')/g'."""
    if growth.terms[0].logs:
        raise NoLimitError("an exponential of logarithms")
    slope, count = asymptotic.slope(growth), growth.count
    found = Asymptotic([], (series.terms[0].exponent if series.terms else series.end) - slope.terms[0].exponent, count)
    known = None
    while found.end != known:
        # Each iteration knows more terms, up to those that are kept.
        known, found = found.end, (series - asymptotic.slope(found)) / slope
    return found


def _add(a: ExponentialScales, b: ExponentialScales) -> ExponentialScales:
    return ExponentialScales([*a.scales, *b.scales], a.count)


def _negative(a: ExponentialScales) -> ExponentialScales:
    return ExponentialScales([ExponentialScale(g, -s) for g, s in a.scales], a.count)


def _multiply(a: ExponentialScales, b: ExponentialScales) -> ExponentialScales:
    products = itertools.product(a.scales, b.scales)
    return ExponentialScales([ExponentialScale(x.growth + y.growth, x.series * y.series) for x, y in products], a.count)


def _without_lead(a: ExponentialScales) -> tuple[ExponentialScale, ExponentialScales]:
    """The leading scale, and what is negligible beside 1, r, such that the whole is that scale times 1 + r."""
    lead = a.leading
    if not lead.series.terms:
        raise NoLimitError("too few terms are known")
    by = ExponentialScales([ExponentialScale(-lead.growth, reciprocal(lead.series))], a.count)
    return lead, _multiply(ExponentialScales(a.scales[1:], a.count), by)


def _composed(coefficient: Callable[[int], AsymptoticCoefficient], r: ExponentialScales) -> ExponentialScales:
    """The sum of coefficient(k)*r**k, for r that is negligible beside 1."""
    count = r.count

    def constant_of(k: int) -> ExponentialScales:
        c = coefficient(k)
        return ExponentialScales.of(Asymptotic.constant(c.value, c.sample, count), count)

    found, power = constant_of(0), ExponentialScales.of(1.0, count)
    if not r.scales:
        return found
    for k in range(1, _POWERS):
        power = _multiply(power, r)
        found = _add(found, _multiply(power, constant_of(k)))
    beyond = _unknown(float(_POWERS) * r.leading.growth)
    return ExponentialScales([*found.scales, beyond], count)


def _reciprocal(a: ExponentialScales) -> ExponentialScales:
    lead, r = _without_lead(a)
    by = ExponentialScales([ExponentialScale(-lead.growth, reciprocal(lead.series))], a.count)
    return _multiply(by, _composed(lambda k: fraction((-1) ** k), r))


def _log(a: ExponentialScales) -> ExponentialScales:
    lead, r = _without_lead(a)
    first = ExponentialScales.of(lead.growth + log(lead.series), a.count)
    return _add(first, _composed(logarithm_coefficient, r))


def _exp(a: ExponentialScales) -> ExponentialScales:
    count, scales = a.count, a.scales
    if scales and sign_of_growth(scales[0].growth) > 0:
        raise NoLimitError("the exponential of an exponential")
    first = scales[0].series if scales and not scales[0].growth.terms else _one_scale(count)
    small = ExponentialScales(scales[1:] if scales and not scales[0].growth.terms else scales, count)
    growth = Asymptotic([t for t in first.terms if _is_infinite(t)], math.inf, count)
    rest = Asymptotic([t for t in first.terms if not _is_infinite(t)], first.end, count)
    by = ExponentialScales([ExponentialScale(growth, exp(rest))], count)
    return _multiply(by, _composed(lambda k: fraction(1, math.factorial(k)), small))


def _general_power(a: ExponentialScales, q: ExponentialScales) -> ExponentialScales:
    """Where the exponent is a number and the base one scale, the exponent of that times the number."""
    exponent = plain(q)
    if exponent is not None and len(a.scales) == 1 and all(t.exponent == 0.0 and not t.logs for t in exponent.terms):
        growth, series = a.scales[0]
        return ExponentialScales(
            [ExponentialScale(exponent * growth, bind(general_power, (series, exponent), {}))], a.count
        )
    return _exp(_multiply(q, _log(a)))


def _whole_power(a: ExponentialScales, *, n: float) -> ExponentialScales:
    if abs(n) > _MOST_FACTORS:
        return _general_power(a, ExponentialScales.of(n, a.count))
    found = reduce(_multiply, [a] * int(abs(n)), ExponentialScales.of(1.0, a.count))
    return found if n >= 0.0 else _reciprocal(found)


def _sinh(a: ExponentialScales) -> Any:
    return (exp(a) - exp(-a)) * 0.5


def _cosh(a: ExponentialScales) -> Any:
    return (exp(a) + exp(-a)) * 0.5


_RULES: Mapping[Primitive, Callable[..., Any]] = {
    **COMPOSED,
    add: _add,
    negative: _negative,
    multiply: _multiply,
    reciprocal: _reciprocal,
    whole_power: _whole_power,
    general_power: _general_power,
    log: _log,
    exp: _exp,
    exp2: lambda a: exp(a * log_2()),
    sinh: _sinh,
    cosh: _cosh,
    tanh: lambda a: _sinh(a) / _cosh(a),
    logcosh: lambda a: log(_cosh(a)),
    sigmoid: lambda a: 1.0 / (1.0 + exp(-a)),
    logsigmoid: lambda a: -log(1.0 + exp(-a)),
    softplus: lambda a: log(1.0 + exp(a)),
    logaddexp: lambda a, b: log(exp(a) + exp(b)),
}
