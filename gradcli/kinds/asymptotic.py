"""Asymptotic series as operands: functions near a point of one variable, as sums of c*t**q*log(t)**m.

Here t is the distance from the point. The exponents q need not be integers, and the coefficients c may be of any kind,
so that they carry derivatives.

Whether a coefficient is 0 for all values of the other variables, so that the next term leads, is decided by samples:
each coefficient is also computed for random values of these variables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import is_exact, log_2, log_10, ratio
from gradcli.errors import EvaluationError, UndecidedError
from gradcli.kinds.jets import Jet, without_observer
from gradcli.kinds.levels import PATTERN
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import Kind, assume, bind, concrete, constant
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative, reciprocal, subtract
from gradcli.primitives.entries.comparisons import equal, greater, less
from gradcli.primitives.entries.exponential import exp, expm1, log, log1p, log2, log10
from gradcli.primitives.entries.powers import general_power, power, rsqrt, sqrt, whole_power
from gradcli.primitives.operators import Operators
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}

# A sample counts as 0 if it is below this fraction of the magnitude of its summands. Down to the other fraction it may be
# more than the rounding error of a sum of few terms.
NOISE, ROUNDED = 2.0**-44, 2.0**-50
# The number of decimals to which exponents are compared, as they are rounded.
_DECIMALS = 9


# True if samples are taken at values of the variables that are independent of the actual ones. If False, exponents
# have their actual values, so that a sample may be 0 for these values alone.
_independent: ContextVar[bool] = ContextVar("gradcli_independent_samples", default=True)


# The fraction of the magnitude of its summands below which a sample counts as 0, and the samples of this kind that may be
# more than rounding errors.
_noise: ContextVar[float] = ContextVar("gradcli_noise_of_samples", default=NOISE)
_doubtful: ContextVar[list[float] | None] = ContextVar("gradcli_doubtful_samples", default=None)


class NoLimitError(EvaluationError):
    """There is no asymptotic series, or none is found."""


class AsymptoticCoefficient(NamedTuple):
    """A coefficient of any kind, its sample, and the magnitude of the summands of the sample."""

    value: Any
    sample: float
    size: float


class AsymptoticTerm(NamedTuple):
    """The term c*t**power*log(t)**logs, where `exponent` is the numeric value of the power."""

    power: Any
    exponent: float
    logs: int
    c: AsymptoticCoefficient


class Asymptotic(Operators):
    """An asymptotic series: its terms, leading ones first, and the exponent `end` from which on terms are unknown.

    Terms are kept up to `count` above the first exponent.
    """

    __slots__ = ("count", "end", "terms")
    level = PATTERN
    shape = ()

    def __init__(self, terms: Iterable[AsymptoticTerm], end: float, count: int) -> None:
        known: dict[tuple[float, int, int], AsymptoticTerm] = {}
        for term in terms:
            # Exponents that vary are distinct even if they have the same value now.
            varies = id(term.power) if isinstance(term.power, Kind) else 0
            key = round(term.exponent, _DECIMALS), term.logs, varies
            known[key] = term if key not in known else known[key]._replace(c=_sum(known[key].c, term.c))
        found = sorted((t for t in known.values() if not _is_zero(t.c)), key=lambda t: (t.exponent, -t.logs))
        self.end = min(end, found[0].exponent + count) if found and _is_cut(found, end, count) else end
        self.terms = tuple(t for t in found if t.exponent < self.end - 10.0**-_DECIMALS)
        self.count = count

    @property
    def inner(self) -> Any:
        # No rule may branch on the value.
        raise NoLimitError("a series is no number")

    @staticmethod
    def constant(value: Any, sample: float, count: int) -> Asymptotic:
        return Asymptotic(
            [AsymptoticTerm(0.0, 0.0, 0, AsymptoticCoefficient(value, sample, abs(sample)))], math.inf, count
        )

    @staticmethod
    def variable(point: Any, sample: float, count: int, side: float = 1.0) -> Asymptotic:
        """The variable point + t, or point - t on the left side (-1)."""
        t = AsymptoticTerm(1.0, 1.0, 0, AsymptoticCoefficient(side, side, 1.0))
        return Asymptotic([*Asymptotic.constant(point, sample, count).terms, t], math.inf, count)

    @staticmethod
    def read(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Asymptotic:
        count = next(o.count for o in operands if isinstance(o, Asymptotic))
        series = [series_of(o, count) for o in operands]
        rule = _RULES.get(primitive)
        with without_observer():
            if rule is not None:
                return rule(*series, **params)
            return (
                _at_infinity(primitive, *series)
                if primitive.function in _LIMITS
                else _analytic(primitive, series, params)
            )

    def at(self, t: Any, order: int) -> Any:
        """The value at the distance t, with derivatives up to `order`; those beyond are nan. Raises NoLimitError if
        there is no limit."""
        if self.end <= order:
            raise NoLimitError("too few terms are known")
        if any(t.exponent < 0.0 or (t.exponent == 0.0 and (t.logs or isinstance(t.power, Kind))) for t in self.terms):
            raise NoLimitError("there is a pole, or one for other exponents")
        # Imported here, and below, as most series have no limit.
        from gradcli.primitives.entries.elementwise.logarithmic_powers import unknown_from

        found: Any = 0.0
        beyond = self.end
        for term in self.terms:
            if term.exponent > order:
                beyond = term.exponent
                break
            found = found + _times(term.c.value, _powered(t, term))
        return found if beyond == math.inf else found + unknown_from(t, math.ceil(beyond))

    def sample_at(self, t: float) -> float:
        """The sample of the value at the distance t > 0, or t < 0 if all exponents are integers."""
        return math.fsum(
            c.sample * (t ** int(q) if q % 1.0 == 0.0 else t**q) * (math.log(t) ** m if m else 1.0)
            for _, q, m, c in self.terms
        )


def _is_cut(found: Sequence[AsymptoticTerm], end: float, count: int) -> bool:
    return end < math.inf or found[-1].exponent >= found[0].exponent + count


def series_of(value: Any, count: int) -> Asymptotic:
    """A series, or a number as one. Raises NoLimitError for other values."""
    if isinstance(value, Asymptotic):
        return value
    if type(value) in arrays.PYTHON_NUMBERS:
        return Asymptotic.constant(float(value), float(value), count)
    if is_exact() and not isinstance(value, Kind) and not arrays.shape(value):
        return Asymptotic.constant(value, float(value), count)
    raise NoLimitError("a number of no sample")


def _times(value: Any, factor: Any) -> Any:
    return value if factor is None else factor if type(value) is float and value == 1.0 else value * factor


def _powered(t: Any, term: AsymptoticTerm) -> Any:
    """t**q*log(t)**m; None stands for 1."""
    if term.logs:
        from gradcli.primitives.entries.elementwise.logarithmic_powers import power_times_log, power_times_logs

        if isinstance(term.power, Kind):
            return power_times_log(t, term.power, term.logs)
        return power_times_logs(t, term.exponent, (0.0,) * term.logs + (1.0,))
    plain = not isinstance(term.power, Kind)
    return None if plain and term.exponent == 0.0 else power(t, term.exponent if plain else term.power)


# --- coefficients


class _ResultCache:
    """Caches the results of primitives by their operands, and remembers which value is the negative of which.

    In ball arithmetic, equal results can be recognised as equal only if they are the same object.
    """

    def __init__(self) -> None:
        self._results: dict[Any, tuple[Any, Sequence[Any]]] = {}
        self._negated: dict[int, Any] = {}

    def once(self, primitive: Primitive, values: Sequence[Any], more: Any, compute: Callable[[], Any]) -> Any:
        key = primitive, more, tuple(v if type(v) is float else id(v) for v in values)
        if key not in self._results:
            # The operands are kept alive, so that their ids are not reused.
            self._results[key] = compute(), values
            if primitive is negative:
                self._negated[id(self._results[key][0])] = values[0]
        return self._results[key][0]

    def cancel(self, a: Any, b: Any) -> bool:
        return self._negated.get(id(a), self) is b or self._negated.get(id(b), self) is a


_known: ContextVar[_ResultCache | None] = ContextVar("gradcli_known_coefficients", default=None)


@contextmanager
def samples(*, independent: bool, noise: float = NOISE) -> Iterator[list[float]]:
    """Within the block series can be made; if `independent`, their samples are taken at values of all variables
    independent of the actual ones. Samples below the fraction `noise` of their summands count as 0; those of them that
    may be more than rounding errors are added to the list that is yielded."""
    doubtful: list[float] = []
    tokens = _independent.set(independent), _known.set(_ResultCache() if is_exact() else None)
    others = _noise.set(noise), _doubtful.set(doubtful)
    try:
        yield doubtful
    finally:
        _independent.reset(tokens[0])
        _known.reset(tokens[1])
        _noise.reset(others[0])
        _doubtful.reset(others[1])


def _apply(primitive: Primitive, *operands: AsymptoticCoefficient) -> tuple[Any, float]:
    """Apply a primitive to coefficients: the value and the sample of the result."""
    values, known = [c.value for c in operands], _known.get()
    if known is None:
        value = bind(primitive, values, _NO_PARAMS)
    else:
        value = known.once(primitive, values, None, lambda: bind(primitive, values, _NO_PARAMS))
    if all(c.value is c.sample for c in operands):
        return value, value
    with _in_floats():
        return value, float(bind(primitive, [c.sample for c in operands], _NO_PARAMS))


def _in_floats() -> Any:
    return arrays.using_namespace(None) if is_exact() else nullcontext()


def _sum(a: AsymptoticCoefficient, b: AsymptoticCoefficient) -> AsymptoticCoefficient:
    known = _known.get()
    if known is not None and known.cancel(a.value, b.value):
        return AsymptoticCoefficient(0.0, 0.0, 0.0)
    return AsymptoticCoefficient(*_apply(add, a, b), a.size + b.size)


def _product(a: AsymptoticCoefficient, b: AsymptoticCoefficient) -> AsymptoticCoefficient:
    return AsymptoticCoefficient(*_apply(multiply, a, b), abs(a.sample) * b.size + a.size * abs(b.sample))


def _is_noise(c: AsymptoticCoefficient) -> bool:
    """Return whether a sample is 0 up to rounding."""
    if not math.isfinite(c.sample):
        raise NoLimitError("a coefficient is no number")
    return abs(c.sample) <= _noise.get() * c.size


def _is_zero(c: AsymptoticCoefficient) -> bool:
    """Return whether a coefficient is 0 for all values of the variables; in ball arithmetic this must be proved."""
    if not _is_noise(c) or (not _independent.get() and isinstance(c.value, Kind) and c.value.differential):
        return False
    if not is_exact():
        doubtful = _doubtful.get()
        if doubtful is not None and abs(c.sample) > ROUNDED * c.size:
            doubtful.append(c.sample)
        return True
    try:
        return assume(equal(constant(c.value), 0.0))
    except UndecidedError:
        return False


def _is_positive(c: AsymptoticCoefficient) -> bool:
    return c.sample > 0.0 and assume(greater(constant(c.value), 0.0))


# --- rules


def _negative(a: Asymptotic) -> Asymptotic:
    terms = [t._replace(c=AsymptoticCoefficient(*_apply(negative, t.c), t.c.size)) for t in a.terms]
    return Asymptotic(terms, a.end, a.count)


def _add(a: Asymptotic, b: Asymptotic) -> Asymptotic:
    return Asymptotic([*a.terms, *b.terms], min(a.end, b.end), a.count)


def slope(a: Asymptotic) -> Asymptotic:
    """The derivative by the distance."""
    terms = []
    for exact, exponent, logs, c in a.terms:
        down = _plus(exact, -1.0)
        if exponent or isinstance(exact, Kind):
            terms.append(AsymptoticTerm(down, exponent - 1.0, logs, _product(c, _of_exponent(exact, exponent))))
        if logs:
            terms.append(AsymptoticTerm(down, exponent - 1.0, logs - 1, _product(c, fraction(logs))))
    return Asymptotic(terms, a.end - 1.0, a.count)


def antiderivative(a: Asymptotic) -> Asymptotic:
    """The series whose derivative by the distance is the series, without a constant."""
    terms = []
    for exact, exponent, logs, c in a.terms:
        up, above = _plus(exact, 1.0), exponent + 1.0
        if round(above, _DECIMALS) == 0.0:
            if isinstance(exact, Kind):
                raise NoLimitError("a logarithm for these numbers alone")
            terms.append(AsymptoticTerm(0.0, 0.0, logs + 1, _product(c, fraction(1, logs + 1))))
            continue
        value, sample = _apply(reciprocal, _of_exponent(up, above))
        by = AsymptoticCoefficient(value, sample, abs(sample))
        # The integral of t**q*log(t)**m by parts.
        for m in range(logs, -1, -1):
            c = _product(c, by)
            terms.append(AsymptoticTerm(up, above, m, c))
            c = _product(c, fraction(-m))
    return Asymptotic(terms, a.end + 1.0, a.count)


def _of_exponent(exact: Any, exponent: float) -> AsymptoticCoefficient:
    return AsymptoticCoefficient(exact, exponent, abs(exponent))


def _lead(a: Asymptotic) -> AsymptoticTerm:
    if not a.terms:
        raise NoLimitError("a function that is 0 as far as is known")
    return a.terms[0]


def _first_exponent(a: Asymptotic) -> float:
    """The exponent of the leading term, or that from which on terms are unknown."""
    return a.terms[0].exponent if a.terms else a.end


def _multiply(a: Asymptotic, b: Asymptotic) -> Asymptotic:
    end = min(_first_exponent(a) + b.end, _first_exponent(b) + a.end)
    if not a.terms or not b.terms:
        return Asymptotic([], end, a.count)
    reach = min(end, _lead(a).exponent + _lead(b).exponent + a.count)
    terms = [
        AsymptoticTerm(_plus(s.power, t.power), s.exponent + t.exponent, s.logs + t.logs, _product(s.c, t.c))
        for s in a.terms
        for t in b.terms
        if s.exponent + t.exponent < reach
    ]
    whole = a.terms[-1].exponent + b.terms[-1].exponent < reach
    return Asymptotic(terms, end if whole else reach, a.count)


def _plus(a: Any, b: Any) -> Any:
    return bind(add, (a, b), _NO_PARAMS) if isinstance(a, Kind) or isinstance(b, Kind) else a + b


def _scaled(a: Asymptotic, by: AsymptoticTerm) -> Asymptotic:
    """A series times a term without a logarithm."""
    return _multiply(a, Asymptotic([by], math.inf, a.count))


def _without_lead(a: Asymptotic) -> tuple[AsymptoticTerm, Asymptotic]:
    """The leading term, and the series r such that the whole is that term times (1 + r)."""
    lead = _lead(a)
    if lead.logs:
        raise NoLimitError("a function that is led by a logarithm")
    if _is_noise(lead.c):
        raise NoLimitError("a coefficient is not told from 0")
    rest = Asymptotic(a.terms[1:], a.end, a.count)
    return lead, _scaled(rest, _inverse(lead))


def _composed(coefficients: Callable[[int], Sequence[AsymptoticCoefficient]], r: Asymptotic) -> Asymptotic:
    """The sum of c[k]*r**k, for r that vanishes at the point."""
    if not r.terms:
        # Terms unknown in r are unknown in the sum.
        return Asymptotic([AsymptoticTerm(0.0, 0.0, 0, coefficients(1)[0])], r.end, r.count)
    first = _lead(r).exponent
    needed = min(r.end, r.count)
    known = coefficients(math.ceil(needed / first) + 1)
    found = Asymptotic([], len(known) * first - first * (len(known) - 1), r.count)
    for c in reversed(known):
        found = _add(_multiply(found, r), Asymptotic([AsymptoticTerm(0.0, 0.0, 0, c)], math.inf, r.count))
    return Asymptotic(found.terms, min(found.end, needed), r.count)


def fraction(numerator: int, denominator: int = 1) -> AsymptoticCoefficient:
    """A fraction as a coefficient, in ball arithmetic without rounding."""
    sample = numerator / denominator
    return AsymptoticCoefficient(ratio(numerator, denominator) if is_exact() else sample, sample, abs(sample))


def logarithm_coefficient(k: int) -> AsymptoticCoefficient:
    """The coefficient of r**k in log(1 + r)."""
    return fraction((-1) ** (k + 1), k) if k else fraction(0)


def _reciprocal(a: Asymptotic) -> Asymptotic:
    lead, r = _without_lead(a)
    found = _composed(lambda n: [fraction((-1) ** k) for k in range(n)], r)
    return _scaled(found, _inverse(lead))


def _inverse(lead: AsymptoticTerm) -> AsymptoticTerm:
    c = AsymptoticCoefficient(*_apply(reciprocal, lead.c), lead.c.size / lead.c.sample**2)
    down = bind(negative, (lead.power,), _NO_PARAMS) if isinstance(lead.power, Kind) else -lead.power
    return AsymptoticTerm(down, -lead.exponent, 0, c)


def _whole_power(a: Asymptotic, *, n: float) -> Asymptotic:
    if n < 0.0:
        return _whole_power(_reciprocal(a), n=-n)
    found, square, left = Asymptotic.constant(1.0, 1.0, a.count), a, int(n)
    while left:
        found = _multiply(found, square) if left % 2 else found
        left //= 2
        square = _multiply(square, square) if left else square
    return found


def _general_power(a: Asymptotic, q: Asymptotic) -> Asymptotic:
    if any(t.exponent or t.logs for t in q.terms) or q.end < math.inf:
        return _exp(_multiply(q, _log(a)))
    exponent = q.terms[0].c if q.terms else AsymptoticCoefficient(0.0, 0.0, 0.0)
    lead, r = _without_lead(a)
    if not _is_positive(lead.c):
        raise NoLimitError("a power of what is not positive")
    number = _number(exponent.value)
    if lead.exponent and exponent.sample != number:
        # Other exponents would give other terms.
        raise NoLimitError("a sample of another exponent")
    c = AsymptoticCoefficient(*_apply(general_power, lead.c, exponent), 0.0)
    c = c._replace(size=abs(c.sample * (1.0 + exponent.sample * lead.c.size / lead.c.sample)))
    by = lead.exponent * number
    live = bind(multiply, (exponent.value, lead.power), _NO_PARAMS) if isinstance(exponent.value, Kind) else by

    def binomials(n: int) -> list[AsymptoticCoefficient]:
        found = [fraction(1)]
        for k in range(1, n):
            factor = _sum(exponent, fraction(1 - k))
            found.append(_product(_product(found[-1], factor), fraction(1, k)))
        return found

    # If the exponent is an integer, the binomial series is finite.
    return _scaled(_composed(binomials, r), AsymptoticTerm(live if lead.exponent else 0.0, by, 0, c))


def _number(value: Any) -> float:
    """The numeric value of an exponent; a recorded program is guarded to be used for this value only."""
    number = concrete(value)
    if arrays.shape(number):
        raise NoLimitError("an exponent of several numbers")
    number = float(number)
    if isinstance(value, Kind) and not assume(equal(constant(value), number)):
        raise NoLimitError("an exponent that is not one number")
    return number


def _log(a: Asymptotic) -> Asymptotic:
    lead, r = _without_lead(a)
    if not _is_positive(lead.c):
        raise NoLimitError("the logarithm of what is not positive")
    value, sample = _apply(log, lead.c)
    terms = [
        AsymptoticTerm(
            0.0, 0.0, 0, AsymptoticCoefficient(value, sample, abs(sample) + lead.c.size / abs(lead.c.sample))
        )
    ]
    if lead.exponent:
        live = lead.power if isinstance(lead.power, Kind) else lead.exponent
        terms.append(AsymptoticTerm(0.0, 0.0, 1, AsymptoticCoefficient(live, lead.exponent, abs(lead.exponent))))
    series = _composed(lambda n: [*map(logarithm_coefficient, range(n))], r)
    return _add(series, Asymptotic(terms, math.inf, a.count))


def _exp(a: Asymptotic) -> Asymptotic:
    if a.terms and a.terms[0].exponent < 0.0 and _tends_to_minus_infinity(a.terms[0]):
        # exp of -inf vanishes to all orders.
        return Asymptotic([], math.inf, a.count)
    c, powers, rest = AsymptoticCoefficient(0.0, 0.0, 0.0), AsymptoticCoefficient(0.0, 0.0, 0.0), []
    for term in a.terms:
        if term.exponent < 0.0 or (term.exponent == 0.0 and term.logs > 1):
            raise NoLimitError("the exponential of what is infinite")
        if term.exponent > 0.0:
            rest.append(term)
        elif term.logs:
            powers = term.c
        else:
            c = term.c
    if a.end <= 0.0:
        raise NoLimitError("too few terms are known")
    value, sample = _apply(exp, c)
    lead = AsymptoticCoefficient(value, sample, abs(sample) * (1.0 + c.size))
    by = _number(powers.value)
    series = _composed(lambda n: [fraction(1, math.factorial(k)) for k in range(n)], Asymptotic(rest, a.end, a.count))
    return _scaled(series, AsymptoticTerm(powers.value if isinstance(powers.value, Kind) else by, by, 0, lead))


def _tends_to_minus_infinity(lead: AsymptoticTerm) -> bool:
    """Return whether a term tends to -inf at the point, on both sides if it is defined on both."""
    both = lead.exponent % 2.0 == 0.0 or lead.exponent % 1.0
    return bool(both) and not lead.logs and lead.c.sample < 0.0 and assume(less(constant(lead.c.value), 0.0))


def _analytic(primitive: Primitive, operands: Sequence[Asymptotic], params: Mapping[str, Any]) -> Asymptotic:
    """Apply a function by its Taylor series at the values of its operands at the point. Raises NoLimitError if it has
    none."""
    if not primitive.elementwise or primitive.selects or primitive.vjp is None:
        raise NoLimitError(f"'{primitive.called}' has no such series")
    parts = [_split_constant(o) for o in operands]
    count = operands[0].count
    for world in zip(*(c[:2] for c, _ in parts)):
        smooth = primitive.smooth is None or assume(primitive.smooth(*map(constant, world), **params))
        if not smooth:
            raise NoLimitError(f"'{primitive.called}' has a kink there")
    varying = [i for i, (_, rest) in enumerate(parts) if rest.terms or rest.end < math.inf]
    if len(varying) < 2:
        place = varying[0] if varying else 0

        def coefficients(n: int) -> list[AsymptoticCoefficient]:
            # One coefficient more, for the propagated error of the value at the point.
            operands = [[c, fraction(1)] if i == place else [c] for i, (c, _) in enumerate(parts)]
            found = _taylor(primitive, operands, params, n + 1)
            size = parts[place][0].size
            sizes = [abs(f[1]) + (k + 1) * abs(g[1]) * size for k, (f, g) in enumerate(itertools.pairwise(found))]
            return [AsymptoticCoefficient(*f, size) for f, size in zip(found, sizes)]

        return _composed(coefficients, parts[place][1])
    end = min([count, *(operands[i].end for i in varying)])
    if any(t.logs or t.exponent % 1.0 for o in operands for t in o.terms):
        raise NoLimitError("a function of several numbers, of other powers than whole ones")
    orders = math.ceil(end)
    given = [_by_order(o, orders) for o in operands]
    found = _taylor(primitive, given, params, orders)
    size = max([abs(f[1]) for f in found] + [c.size for o in given for c in o])
    terms = [AsymptoticTerm(float(k), float(k), 0, AsymptoticCoefficient(*f, size)) for k, f in enumerate(found)]
    return Asymptotic(terms, float(orders), count)


def _by_order(a: Asymptotic, orders: int) -> list[AsymptoticCoefficient]:
    found = {int(t.exponent): t.c for t in a.terms}
    zero = AsymptoticCoefficient(0.0, 0.0, 0.0)
    return [found.get(k, zero) for k in range(min(orders, max(found, default=0) + 1))]


def _split_constant(a: Asymptotic) -> tuple[AsymptoticCoefficient, Asymptotic]:
    """The value at the point, and the remaining series, which vanishes there."""
    if a.end <= 0.0 or any(t.exponent < 0.0 or (t.exponent == 0.0 and t.logs) for t in a.terms):
        raise NoLimitError("a function of what is infinite")
    at_point = next((t.c for t in a.terms if t.exponent == 0.0), AsymptoticCoefficient(0.0, 0.0, 0.0))
    return at_point, Asymptotic([t for t in a.terms if t.exponent > 0.0], a.end, a.count)


def _taylor(
    primitive: Primitive, operands: Sequence[Sequence[AsymptoticCoefficient]], params: Mapping[str, Any], count: int
) -> list[tuple[Any, float]]:
    """The Taylor coefficients of a primitive applied to power series, as values and samples."""
    given, known = [[c.value for c in o] for o in operands], _known.get()
    if known is None:
        values = _jet_coefficients(primitive, given, params, count)
    else:
        more = count, tuple(map(len, given)), tuple(params.items())
        flat = [v for o in given for v in o]
        values = known.once(primitive, flat, more, lambda: _jet_coefficients(primitive, given, params, count))
    if all(c.value is c.sample for o in operands for c in o):
        return [(v, v) for v in values]
    with _in_floats():
        samples = _jet_coefficients(primitive, [[c.sample for c in o] for o in operands], params, count)
        return [(v, float(s)) for v, s in zip(values, samples)]


def _jet_coefficients(
    primitive: Primitive, operands: Sequence[Sequence[Any]], params: Mapping[str, Any], count: int
) -> list[Any]:
    found = bind(primitive, [Jet(o[:count], count - 1) for o in operands], params)
    known = list(found.coefficients) if isinstance(found, Jet) else [found]
    filled = [0.0 if c is None else c for c in known]
    return filled + [0.0] * (count - len(filled))


def _at_infinity(primitive: Primitive, a: Asymptotic) -> Asymptotic:
    """Apply a function of `_LIMITS`, where the operand is infinite by its limit."""
    lead = a.terms[0] if a.terms else None
    if lead is None or lead.exponent > 0.0 or (lead.exponent == 0.0 and not lead.logs):
        return _analytic(primitive, [a], {})
    if lead.exponent % 2.0 or lead.logs or is_exact():
        raise NoLimitError(f"'{primitive.called}' of what is infinite on one side")
    high, rest = _LIMITS[primitive.function or ""]
    limit = math.copysign(high, lead.c.sample)
    return _add(Asymptotic.constant(limit, limit, a.count), series_of(rest(primitive, a), a.count))


# Of odd functions, by the name that namespaces have for them: the limit at inf, and the function less its limits. Their
# primitives need not be loaded.
_LIMITS: Mapping[str, tuple[float, Callable[[Primitive, Asymptotic], Any]]] = {
    "atan": (0.5 * math.pi, lambda atan, a: negative(atan(reciprocal(a)))),
    # These differ from their limits by what vanishes to all orders.
    "tanh": (1.0, lambda _tanh, _a: 0.0),
    "erf": (1.0, lambda _erf, _a: 0.0),
}
# Rules that hold for every kind of series, by its rules for other primitives.
COMPOSED: Mapping[Primitive, Callable[..., Any]] = {
    subtract: lambda a, b: a + negative(b),
    divide: lambda a, b: a * reciprocal(b),
    sqrt: lambda a: bind(general_power, (a, 0.5), {}),
    rsqrt: lambda a: bind(general_power, (a, -0.5), {}),
    log2: lambda a: log(a) / log_2(),
    log10: lambda a: log(a) / log_10(),
    log1p: lambda a: log(1.0 + a),
    expm1: lambda a: exp(a) - 1.0,
}
_RULES: Mapping[Primitive, Callable[..., Asymptotic]] = {
    **COMPOSED,
    add: _add,
    negative: _negative,
    multiply: _multiply,
    reciprocal: _reciprocal,
    whole_power: _whole_power,
    general_power: _general_power,
    log: _log,
    exp: _exp,
}
