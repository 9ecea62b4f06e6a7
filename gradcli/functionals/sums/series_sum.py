"""The primitive of sums of series, and how finite and infinite ones are summed, with an estimate of their errors.

`series_sum(first, last, *reads, body=Body, rtol=…, atol=…)` sums the first result of the body for all whole numbers of
its bound variable from `first` to `last`, which may be infinite; the operands are broadcast.

The derivatives of a sum are sums of the derivatives of its terms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import is_exact
from gradcli.errors import EvaluationError, LimitError
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body, coefficient_operands, of_each
from gradcli.functionals.integrals.extrapolation import limit_of_sums, oscillating_limits
from gradcli.functionals.integrals.integration import Integral, integrals
from gradcli.functionals.integrals.quadrature import Bounds, Tolerance
from gradcli.functionals.interval_bounds import Range, has_ranges, ranges
from gradcli.functionals.switches import is_smooth, keeps_branches
from gradcli.kinds.jets import Jet
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import bind
from gradcli.primitives.families import elementwise
from gradcli.primitives.jet_rules import from_derivative
from gradcli.primitives.primitive import Primitive

# The cost of a sum, in array elements, beside that of the operations of its body.
_TIME = 400
# The relative error from which on a sum has few digits, and the multiple of its error from which on it is distinct from 0.
_FEWEST, _ZERO = 1e-10, 4.0
# The cost in steps of a term in balls.
_TERM = 4


def _computed(_xp: Any, *operands: Any, body: Body, rtol: float, atol: float) -> Any:
    if is_exact():
        return _proved(operands, body)
    with arrays.using_namespace(None):
        return of_each(operands, lambda rows: _of_rows(rows, body, rtol, atol))


def _proved(operands: Sequence[Any], body: Body) -> Any:
    """A sum in balls. Raises BackendError where the rest of an infinite one is not bounded."""
    first, last, *reads = operands
    low, high = (float(limit) for limit in (first, last))
    check_limits(low, high)
    if any(arrays.to_numpy(limit).dtype != "float64" for limit in (first, last)):
        raise EvaluationError("a sum goes from one whole number to another, which its limits are not known to be")
    if math.isinf(low) or math.isinf(high):
        return _infinite(low, high, reads, body)
    limits.require_steps(_TERM * (high - low))
    total: Any = arrays.default_namespace().asarray(0.0, "float64")
    for k in range(int(low), int(high) + 1):
        limits.charge_steps(_TERM * limits.UNITS_PER_STEP)
        total = total + body(float(k), *reads)[0]
    return total


def _infinite(low: float, high: float, reads: Sequence[Any], body: Body) -> Any:
    # Imported here as few programs are computed in balls.
    from gradcli.functionals.sums.ball_sums import infinite_sum

    if low > high or low == math.inf:
        return arrays.default_namespace().asarray(0.0, "float64")
    if math.isfinite(low):
        return infinite_sum(int(low), 1, reads, body)
    if math.isfinite(high):
        return infinite_sum(int(high), -1, reads, body)
    return infinite_sum(0, 1, reads, body) + infinite_sum(-1, -1, reads, body)


def _of_rows(rows: Any, body: Body, rtol: float, atol: float) -> list[float]:
    """The sums for rows of limits and reads, [rows, operands]."""
    np = arrays.numpy_namespace()
    first, last, *reads = rows.T

    def given(row: Any) -> list[Any]:
        return [r[row] if len(first) > 1 else float(r[0]) for r in reads]

    def terms(k: Any, row: Any) -> Any:
        return np.broadcast_to(body(k, *given(row))[0], k.shape)

    def expansion(k: Any, order: int, row: Any) -> Any:
        (found,) = body(Jet([k, np.ones_like(k)], order), *given(row))
        coefficients = map(found.coefficient, range(order + 1)) if isinstance(found, Jet) else [found]
        known = [np.broadcast_to(0.0 if c is None else c, k.shape) for c in coefficients]
        return np.stack(known + [np.zeros_like(k)] * (order + 1 - len(known)))

    def is_smooth_between(low: float, high: float, row: int) -> bool:
        return is_smooth(body, low, high, [float(r[row]) for r in reads])

    def keeps_branches_between(low: float, high: float, row: int) -> bool:
        return keeps_branches(body, low, high, [float(r[row]) for r in reads])

    def bounds(low: Any, high: Any, row: Any) -> tuple[Any, Any]:
        least, most = ranges(body.program, [Range(low, high), *(Range(r, r) for r in given(row))])[0]
        return np.broadcast_to(least, low.shape), np.broadcast_to(most, low.shape)

    known = bounds if has_ranges(body.program) else None
    sums = totals(SeriesTerms(terms, expansion, is_smooth_between, keeps_branches_between, known), first, last)
    return [_checked(found, body, rtol, atol) for found in sums]


def _checked(found: SeriesTotal, body: Body, rtol: float, atol: float) -> float:
    if found.fault is not None:
        return shortfalls.undefined(found.fault, is_derivative=body.is_derivative)
    size = abs(found.value)
    # A sum that is 0 up to its error has no digits to lose.
    is_small = found.error <= atol and (found.error <= _FEWEST * size or size <= _ZERO * found.error)
    if not (found.error <= rtol * size or is_small):
        shortfalls.report("nsum", found.error, is_derivative=body.is_derivative)
    return found.value


def _pulled_back(i: int, g: Any, _y: Any, *operands: Any, body: Body, **tolerances: float) -> Any:
    if i < 2:
        # A sum jumps where a limit passes a whole number, and is constant between.
        return 0.0 * g
    return g * bind(series_sum, operands, {"body": body.partial(i - 1), **tolerances})


def _coefficients(
    primitive: Primitive, y: Jet, first: Jet, last: Jet, *reads: Jet, body: Body, **tolerances: float
) -> Iterator[Any]:
    """The coefficients of the terms, summed."""
    if any(r.is_growing for r in reads):
        yield from from_derivative(primitive, y, first, last, *reads, body=body, **tolerances)
        return
    for order in itertools.count(1):
        operands = first.inner, last.inner, *coefficient_operands(reads, order)
        yield bind(series_sum, operands, {"body": body.coefficient(order), **tolerances})


series_sum = elementwise(
    "series_sum", "first, last, reads, body, rtol, atol", "the sum of a body over whole numbers",
    internal="nsum",
    forward=_computed,
    vjp=_pulled_back,
    variadic=True,
    jet=_coefficients,
    time=_TIME,
    fails=True,
    derivative="the sum of the derivatives of the terms",
)  # fmt: skip


# Takes numbers of terms and the number of the series that each belongs to, two arrays [n]; returns the terms, [n].
Terms = Callable[[Any, Any], Any]
# Takes numbers [n], an order, and the numbers of the series, [n]; returns the Taylor coefficients up to that order,
# [order + 1, n], of the terms as functions of a real number.
Expansion = Callable[[Any, int, Any], Any]
# Takes two numbers and the number of a series; returns whether its terms are smooth functions of their number in between.
Smoothness = Callable[[float, float, int], bool]

# The terms that are summed at once, and a bound on their number.
_CHUNK, _MOST_TERMS = 65_536, 100_000_000
# The number of series that are summed at once, which bounds the memory.
_SERIES_AT_ONCE = 256
# The number of terms after which an infinite series is extrapolated, and those after which it may have ended, of which
# the last terms are examined, and from which terms are examined up to this one.
_FIRST, _COUNTS, _LAST, _FARTHEST_TERM = 64, (128, 1_024, 8_192), 8, 2.0**49
_MANY = _COUNTS[-1]
# The one of these counts after which the formula of Euler and Maclaurin is tried, and the estimated error, relative to the
# sum, up to which the sum is taken; other series are examined after the last count.
_EARLY, _EXACT = _COUNTS[1], 1e-13
# The number of terms between those that are summed and the last of these counts that are examined where no bounds are
# known.
_SPARSE = 64
# The number of changes of sign from which on a series oscillates.
_FEWEST_CHANGES = 4
# Numbers of terms between which they shrink to this part and less where they vanish, as even k**-0.0002 does.
_FAR_APART, _VANISHING = (2.0**20, 2.0**28), 0.999
# Numbers of terms at which those that alternate and grow may shrink at last, as log(k)/k**0.01 does from 2**144 on, and
# how many of the last ones have to shrink.
_FARTHEST_APART, _SHRINKING = tuple(2.0**j for j in range(100, 1001, 100)), 3
# A series whose later terms have no numbers is extrapolated if the estimated error is at most this part of the sum.
_ACCURATE = 1e-9
# The formula of Euler and Maclaurin begins after as many terms times a power of 2, up to this number of powers, and after
# powers of 2 it is examined whether it could; it is tested with this number of terms.
_MOST_DOUBLINGS, _EXAMINED_POWERS, _TESTED = 10, range(23, 60), 256
# Bounds are taken between numbers up to this power of 2 times the first ones; how much larger they may be than the terms.
_FARTHEST, _LARGER = 64, 64.0
# Parts of a magnitude: differences that are rounding, and the largest one at which a formula holds.
_SAME, _ALIKE = 1e-13, 1e-2
# The second difference of terms, as a part of the largest one, up to which the formula of Euler and Maclaurin holds across a
# peak: it misses exp(-2*pi*w) of one of the width w, whose second difference is about 2/w**2.
_BENDS = 0.05
# The number of blocks of 1, 2, 4, … terms.
_BLOCKS = 16
# The Bernoulli numbers B(2), B(4), … divided by 2, 4, …: factors of Taylor coefficients, which are derivatives of order
# 2j - 1 divided by (2j - 1)!.
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)

_DIVERGES = "the sum diverges"
_SWITCHES = "no sum was found: the terms switch"
_IRREGULAR = "no sum was found: the terms do not shrink regularly"


class SeriesTerms(NamedTuple):
    """The terms of several series as functions of their number."""

    terms: Terms
    expansion: Expansion
    is_smooth: Smoothness
    # Returns whether its terms are of one branch in between.
    keeps_branches: Smoothness
    # None where they are not known.
    bounds: Bounds | None

    def rows(self, rows: Any, numbers: Any) -> Any:
        """The terms with some numbers of each of some series, [rows, numbers]."""
        np = arrays.numpy_namespace()
        found = self.terms(np.tile(numbers, len(rows)), np.repeat(rows, len(numbers)))
        return found.reshape(len(rows), len(numbers))

    @property
    def mirrored(self) -> SeriesTerms:
        """The series whose terms k are the terms -k of these."""

        def expansion(k: Any, order: int, row: Any) -> Any:
            signs = (-1.0) ** arrays.numpy_namespace().arange(order + 1)
            return signs[:, None] * self.expansion(-k, order, row)

        return SeriesTerms(
            lambda k, row: self.terms(-k, row),
            expansion,
            lambda low, high, row: self.is_smooth(-high, -low, row),
            lambda low, high, row: self.keeps_branches(-high, -low, row),
            self.bounds and (lambda low, high, row: self.bounds(-high, -low, row)),  # type: ignore[misc]
        )


class SeriesTotal(NamedTuple):
    """The sum of a series with its estimated error, and the reason why there is none, if there is one."""

    value: float
    error: float
    fault: str | None = None


def totals(series: SeriesTerms, first: Any, last: Any) -> list[SeriesTotal]:
    """The sums of the terms of each series from its number of `first` to that of `last`, which may be infinite, two arrays
    [series].

    Raises EvaluationError for limits that are no whole numbers, and LimitError for too many terms.
    """
    np = arrays.numpy_namespace()
    limits_of_rows, group = np.unique(np.stack([first, last]), axis=1, return_inverse=True)
    found = [SeriesTotal(0.0, 0.0)] * len(first)
    with np.errstate(all="ignore"):
        for number, (low, high) in enumerate(limits_of_rows.T.tolist()):
            check_limits(low, high)
            rows = np.flatnonzero(group.ravel() == number) if low <= high else np.zeros(0, int)
            for part in np.split(rows, range(_SERIES_AT_ONCE, len(rows), _SERIES_AT_ONCE)):
                for row, total in zip(part.tolist(), _between(series, part, low, high)):
                    found[row] = total
    return found


def _between(series: SeriesTerms, rows: Any, first: float, last: float) -> list[SeriesTotal]:
    """The sums of the series with the numbers `rows` from one term to another."""
    if not len(rows):
        return []
    if math.isfinite(first) and math.isfinite(last):
        return _finite(series, rows, first, last)
    if math.isfinite(first):
        return _infinite_sums(series, rows, first)
    if math.isfinite(last):
        return _infinite_sums(series.mirrored, rows, -last)
    both = zip(_infinite_sums(series, rows, 0.0), _infinite_sums(series.mirrored, rows, 1.0))
    return [SeriesTotal(up.value + down.value, up.error + down.error, up.fault or down.fault) for up, down in both]


def check_limits(first: float, last: float) -> None:
    """Raise EvaluationError for limits that are no whole numbers and not infinite."""
    for number in (first, last):
        if math.isnan(number) or (math.isfinite(number) and number != round(number)):
            raise EvaluationError(f"a sum goes from one whole number to another, and {number:g} is none")


def _finite(series: SeriesTerms, rows: Any, first: float, last: float) -> list[SeriesTotal]:
    count = last - first + 1
    if count > _MOST_TERMS:
        raise LimitError(f"a sum of {count:.3g} terms is too long", hint="an infinite series is summed to its limit")
    np = arrays.numpy_namespace()
    at_once = max(1, _CHUNK // len(rows))
    parts, sizes = [], np.zeros(len(rows))
    for start in range(0, int(count), at_once):
        limits.charge_steps()
        found = series.rows(rows, first + np.arange(start, min(start + at_once, count)))
        parts.append([_rounded_once(terms) for terms in found])
        sizes += np.abs(found).sum(axis=1)
    values = map(_rounded_once, np.array(parts).reshape(-1, len(rows)).T)
    return [SeriesTotal(value, 2.0**-53 * size) for value, size in zip(values, sizes.tolist())]


def _rounded_once(terms: Any) -> float:
    """The sum of an array, without rounding errors of its parts."""
    return math.fsum(terms) if arrays.numpy_namespace().isfinite(terms).all() else float(terms.sum())


def _plain(terms: Any) -> SeriesTotal:
    """The sum of terms, all others being negligible."""
    return SeriesTotal(math.fsum(terms), 2.0**-53 * float(abs(terms).sum()))


def _infinite_sums(series: SeriesTerms, rows: Any, first: float) -> list[SeriesTotal]:
    """The sums of the terms from number `first` on."""
    np = arrays.numpy_namespace()
    found: dict[int, SeriesTotal] = {}
    left, terms = rows, np.zeros((len(rows), 0))
    with shortfalls.undefined_as_nan() as reasons:
        for count in _COUNTS:
            more = series.rows(left, first + np.arange(terms.shape[1], count))
            terms = np.concatenate([terms, more], axis=1)
            ended = _ended(series, left, first, terms)
            wild = ~np.isfinite(terms).all(axis=1) & ~ended
            found.update(zip(left[ended].tolist(), map(_plain, terms[ended])))
            found.update((row, _broken_off(t, first, reasons)) for row, t in zip(left[wild].tolist(), terms[wild]))
            left, terms = left[~ended & ~wild], terms[~ended & ~wild]
            if count >= _EARLY:
                summed = _oscillating(series, left, first, terms)
                use = np.isfinite(summed)
                sizes = np.abs(terms).max(axis=1, initial=0.0)
                found.update(
                    (row, SeriesTotal(*s)) for row, *s in zip(left[use].tolist(), summed[use], 2.0**-50 * sizes[use])
                )
                left, terms = left[~use], terms[~use]
            if count == _EARLY:
                # Those that oscillate are found by more terms, if not by the formula.
                tried = np.flatnonzero(~_changes_sign(terms))
                summed = _by_formula(series, left[tried], first, terms[tried], 0)
                accurate = np.zeros(len(left), bool)
                for row, s in zip(tried.tolist(), summed):
                    if s is not None and s.fault is None and s.error <= _EXACT * abs(s.value):
                        accurate[row], found[int(left[row])] = True, s
                left, terms = left[~accurate], terms[~accurate]
            if not len(left):
                return [found[row] for row in rows.tolist()]
        lasting = _lasting(series, left, first)
        alternates = (terms[:, -2 * _FIRST :] * terms[:, -2 * _FIRST - 1 : -1] < 0).all(axis=1)
        shrinking = np.flatnonzero(lasting & alternates)
        lasting[shrinking] = ~_shrinks_at_last(series, left[shrinking], first)
    found.update((row, SeriesTotal(math.nan, math.inf, _DIVERGES)) for row in left[lasting].tolist())
    left, terms, alternates = left[~lasting], terms[~lasting], alternates[~lasting]
    found.update(zip(left[alternates].tolist(), map(_alternating, terms[alternates])))
    found.update(zip(left[~alternates].tolist(), _slow(series, left[~alternates], first, terms[~alternates])))
    return [found[row] for row in rows.tolist()]


def _ended(series: SeriesTerms, rows: Any, first: float, terms: Any) -> Any:
    """True for each series whose terms after the known ones, [rows, terms], are negligible by bounds or samples."""
    np = arrays.numpy_namespace()
    count = terms.shape[1]
    largest = np.abs(terms).max(axis=1, initial=0.0)
    least = 2.0**-60 * largest
    ended = np.isfinite(terms).all(axis=1) & (np.abs(terms[:, -_LAST:]).max(axis=1) <= least)
    if series.bounds is None and count < _MANY:
        # All terms may be 0 up to the first ones that are not.
        ended &= largest > 0
    if series.bounds is None:
        # Single terms of another branch, as of k == 200, are at none of the places that are examined.
        for i in np.flatnonzero(ended).tolist():
            ended[i] = series.keeps_branches(first + count, _FARTHEST_TERM, int(rows[i]))
    if not ended.any():
        return ended
    far = first + 2.0 ** np.arange(math.log2(count), math.log2(_FARTHEST_TERM) + 1)
    if series.bounds is None:
        far = np.concatenate([first + np.linspace(count, _MANY, _SPARSE + 1)[1:].round(), far])
    with shortfalls.collecting():
        beyond = np.nan_to_num(np.abs(series.rows(rows[ended], far)), nan=0.0)
    ended[ended] = beyond.max(axis=1) <= least[ended]
    if series.bounds is not None and ended.any():
        bounds = _largest(series.bounds, rows[ended], _places(first, count))
        ended[ended] = (bounds <= least[ended, None]).all(axis=1)
    return ended


def _lasting(series: SeriesTerms, rows: Any, first: float, part: float = _VANISHING) -> Any:
    """Of which series the terms do not shrink to a `part` far away: they diverge, even if extrapolation gives them a sum, as
    it does to those that alternate between two numbers."""
    np = arrays.numpy_namespace()
    if not len(rows):
        return np.zeros(0, bool)
    with shortfalls.collecting():
        near, far = (np.abs(series.rows(rows, first + place + np.arange(_FIRST))).max(axis=1) for place in _FAR_APART)
    return np.isfinite(far) & (near > 0) & (far >= part * near)


def _shrinks_at_last(series: SeriesTerms, rows: Any, first: float) -> Any:
    """Of which series the terms shrink steadily as far away as numbers go."""
    np = arrays.numpy_namespace()
    if not len(rows):
        return np.zeros(0, bool)
    with shortfalls.collecting():
        sizes = np.abs(series.rows(rows, first + np.array(_FARTHEST_APART)))[:, -_SHRINKING - 1 :]
    return np.isfinite(sizes).all(axis=1) & (sizes[:, 1:] < _VANISHING * sizes[:, :-1]).all(axis=1)


def _changes_sign(terms: Any) -> Any:
    """Which series oscillate, by their known terms, [rows, terms]."""
    return (terms[:, 1:] * terms[:, :-1] < 0).sum(axis=1) >= _FEWEST_CHANGES


def _oscillating(series: SeriesTerms, rows: Any, first: float, terms: Any) -> Any:
    """The sums of the series that change their signs again and again, like cos(k*x)/k**2, and vanish; nan for others."""
    np = arrays.numpy_namespace()
    found = np.full(len(rows), np.nan)
    oscillate = np.flatnonzero(_changes_sign(terms))
    oscillate = oscillate[~_lasting(series, rows[oscillate], first, 0.5)]
    if len(oscillate):
        found[oscillate] = oscillating_limits(terms[oscillate])
    return found


def _broken_off(terms: Any, first: float, reasons: Sequence[str]) -> SeriesTotal:
    """The sum of a series of which some term is no number: by the terms before, where they have vanished, as where factors
    overflow, or can be extrapolated."""
    np = arrays.numpy_namespace()
    known = int(np.argmin(np.isfinite(terms)))
    size = float(np.abs(terms[:known]).max(initial=0.0))
    # Terms that are all 0 are a factor that underflows, as exp(-1e5)*1e5**k/factorial(k) does at first.
    if known > _LAST and size > 0.0 and np.abs(terms[known - _LAST : known]).max() <= 2.0**-60 * size:
        return _plain(terms[:known])
    if known >= _FIRST:
        value, error = limit_of_sums(terms[:known].tolist())
        if error <= _ACCURATE * abs(value):
            return SeriesTotal(value, error)
    reason = f": {reasons[0]}" if reasons else ""
    return SeriesTotal(math.nan, math.inf, f"the term {first + known:g} is no number{reason}")


def _places(first: float, count: float) -> Any:
    """Numbers of terms from a `count` on, each of twice as many as the one before."""
    np = arrays.numpy_namespace()
    return first + count * 2.0 ** np.arange(_FARTHEST)


def _may_peak(series: SeriesTerms, rows: Any, places: Any) -> Any:
    """Return whether terms of each series may be much larger than those at the places next to them."""
    np = arrays.numpy_namespace()
    if series.bounds is None:
        return np.zeros(len(rows), bool)
    values = np.abs(series.rows(rows, places))
    bounds = _largest(series.bounds, rows, places)[:, :-1]
    return ~(bounds <= _LARGER * np.maximum(values[:, 1:], values[:, :-1])).all(axis=1)


def _has_narrow_peak(series: SeriesTerms, row: int, places: Any) -> bool:
    """Return whether terms change much from one number to the next where their bounds are largest: their sum is not their
    integral there, as that of 1/(1 + (k - 1e5)**2) is not."""
    np = arrays.numpy_namespace()
    assert series.bounds is not None
    low, high = float(places[0]), float(places[-1])
    while high - low > 1.0:
        ends = np.linspace(low, high, _SPARSE + 1)
        if high - low > _SPARSE * low:
            ends = np.geomspace(low, high, _SPARSE + 1)
        least, most = series.bounds(ends[:-1], ends[1:], np.full(_SPARSE, row))
        top = int(np.argmax(np.maximum(np.abs(least), np.abs(most))))
        if (float(ends[top]), float(ends[top + 1])) == (low, high):
            break
        low, high = float(ends[top]), float(ends[top + 1])
    beside = series.rows(np.array([row]), np.round(low) + np.arange(-2.0, 4.0))[0]
    bends = np.abs(np.diff(beside, 2)).max()
    return bool(bends > _BENDS * np.abs(beside).max())


def _largest(bounds: Bounds, rows: Any, places: Any) -> Any:
    """Bounds of the magnitudes between neighbours, and from the last one on, [rows, places]."""
    np = arrays.numpy_namespace()
    low, high = np.tile(places, len(rows)), np.tile(np.append(places[1:], math.inf), len(rows))
    least, most = bounds(low, high, np.repeat(rows, len(places)))
    return np.maximum(np.abs(least), np.abs(most)).reshape(len(rows), len(places))


def _alternating(terms: Any) -> SeriesTotal:
    """The sum of a series of which the last known terms alternate: those are extrapolated, as far on they change slowly."""
    np = arrays.numpy_namespace()
    value, error = limit_of_sums([math.fsum(terms[:-_FIRST]), *terms[-_FIRST:].tolist()])
    return SeriesTotal(value, error + 2.0**-53 * float(np.sqrt(np.sum(terms**2))))


def _slow(series: SeriesTerms, rows: Any, first: float, found: Any) -> list[SeriesTotal]:
    """The sums by the formula of Euler and Maclaurin for the terms after the first ones, `found`, [rows, terms], where it
    applies, else by blocks."""
    sums: dict[int, SeriesTotal] = {}
    left, hidden = [*range(len(rows))], set()
    for j in range(_MOST_DOUBLINGS):
        for i, total in zip(left, _by_formula(series, rows[left], first, found[left], j)):
            if total is None:
                hidden.add(i)
            elif total.fault != _SWITCHES:
                sums[i] = _irregular(series, rows[i], first) if total.fault == _IRREGULAR else total
        left = [i for i in left if i not in sums]
        if not left:
            break
    begin = first + found.shape[1] * 2.0 ** (_MOST_DOUBLINGS - 1)
    for i in left:
        if i in hidden or any(series.is_smooth(first + 2.0**j, math.inf, int(rows[i])) for j in _EXAMINED_POWERS):
            what = "have a peak" if i in hidden else "switch"
            sums[i] = SeriesTotal(math.nan, math.inf, f"no sum was found: the terms {what} beyond number {begin:,.0f}")
        else:
            sums[i] = _irregular(series, rows[i], first)
    return [sums[i] for i in range(len(rows))]


def _by_formula(series: SeriesTerms, rows: Any, first: float, found: Any, doublings: int) -> list[SeriesTotal | None]:
    """The sums with the formula of Euler and Maclaurin after the first terms `found`, [rows, terms], times a power of 2; None
    where the terms have a peak farther on."""
    np = arrays.numpy_namespace()
    sizes = np.abs(found).sum(axis=1)
    places = _places(first, found.shape[1] * 2.0**doublings)
    begin = float(places[0])
    smooth = [i for i, row in enumerate(rows.tolist()) if series.is_smooth(begin - _TESTED, math.inf, row)]
    sums: list[SeriesTotal | None] = [SeriesTotal(math.nan, math.inf, _SWITCHES)] * len(rows)
    for i, tail in zip(smooth, _tails(series, rows[smooth], places, sizes[smooth])):
        if tail is None or tail.fault == _IRREGULAR:
            sums[i] = tail
            continue
        (between,) = _finite(series, rows[i : i + 1], first + found.shape[1], begin - 1)
        value = math.fsum([*found[i], between.value, tail.value])
        error = between.error + tail.error + 2.0**-52 * float(sizes[i])
        sums[i] = SeriesTotal(value, error, tail.fault)
    return sums


def _irregular(series: SeriesTerms, row: int, first: float) -> SeriesTotal:
    """The sum by blocks of a series to which no formula applies."""
    blocks = _by_blocks(series, row, first)
    is_found = blocks.value != 0.0 and blocks.error <= 1e-2 * abs(blocks.value)
    return blocks if is_found else blocks._replace(fault=_IRREGULAR)


def _tails(series: SeriesTerms, rows: Any, places: Any, sizes: Any) -> list[SeriesTotal | None]:
    """The sums of the terms from the first of some places on by the formula of Euler and Maclaurin, of series whose first
    terms have the magnitudes `sizes`; None where the terms have a peak farther on, after which it may hold.

    The formula holds for functions that hardly change from one number to the next, which is tested by the terms before:
    cos(2*pi*k) is 1 for all numbers, and no formula of its derivatives knows that.
    """
    np = arrays.numpy_namespace()
    if not len(rows):
        return []
    begin, scale = float(places[0]), float(places[1] - places[0])
    seen = _integrals(series, rows, begin, math.inf, scale=scale)
    rest = [*seen]
    peaks = [i for i, may in enumerate(_may_peak(series, rows, places)) if may and seen[i].fault is None]
    if peaks:
        for i, found in zip(peaks, _integrals(series, rows[peaks], begin, math.inf, series.bounds, scale)):
            rest[i] = found
    results: list[SeriesTotal | None] = [
        SeriesTotal(math.nan, math.inf, _DIVERGES if "diverges" in (r.fault or "") else _IRREGULAR) for r in rest
    ]
    known = [i for i, r in enumerate(rest) if r.fault is None]
    if not known:
        return results
    tested = _integrals(series, rows[known], begin - _TESTED, begin)
    before, after = (_corrections(series, rows[known], k) for k in (begin - _TESTED, begin))
    terms = series.rows(rows[known], begin - np.arange(1.0, _TESTED + 1))
    for n, i in enumerate(known):
        apart = abs(seen[i].value - rest[i].value)
        is_hidden = apart > seen[i].error + rest[i].error + _SAME * float(sizes[i])
        if is_hidden or (i in peaks and _has_narrow_peak(series, int(rows[i]), places)):
            results[i] = None
        else:
            results[i] = _tail(rest[i], tested[n], terms[n], before[n], after[n])
    return results


def _tail(rest: Integral, tested: Integral, terms: Any, before: _Correction, after: _Correction) -> SeriesTotal:
    """The integral over a tail with its correction, by how well this holds for the terms before."""
    size = float(abs(terms).sum())
    apart = abs(math.fsum([*terms, -tested.value, -before.value, after.value]))
    if not apart <= _ALIKE * size:
        return SeriesTotal(math.nan, math.inf, _IRREGULAR)
    # The difference is that of all later terms in proportion, and rounding where it is small.
    missed = apart * rest.size / tested.size if apart > _SAME * size else 0.0
    return SeriesTotal(rest.value + after.value, rest.error + after.truncation + missed + 2.0**-52 * rest.size)


def _integrals(
    series: SeriesTerms, rows: Any, low: float, high: float, bounds: Bounds | None = None, scale: float = 1.0
) -> list[Integral]:
    """The integrals of the terms between two numbers, by a variable that is the distance from the first of them over a
    `scale`."""
    np = arrays.numpy_namespace()

    def function(u: Any, number: Any) -> Any:
        return scale * series.terms(low + scale * u, rows[number])

    def of_distances(least: Any, most: Any, number: Any) -> tuple[Any, Any]:
        assert bounds is not None
        below, above = bounds(low + scale * least, low + scale * most, rows[number])
        return scale * below, scale * above

    ends = np.zeros(len(rows)), np.full(len(rows), (high - low) / scale)
    return integrals(function, *ends, (), Tolerance(1e-13, 1e-15), bounds and of_distances)


class _Correction(NamedTuple):
    """By how much a sum of terms exceeds their integral (DLMF 2.10.1), and the magnitude of the last part of that."""

    value: float
    truncation: float


def _corrections(series: SeriesTerms, rows: Any, begin: float) -> list[_Correction]:
    """For each series, of the terms from number `begin` on."""
    np = arrays.numpy_namespace()
    coefficients = series.expansion(np.full(len(rows), begin), 2 * len(_BERNOULLI) - 1, rows)
    parts = -np.array(_BERNOULLI)[:, None] * coefficients[1::2]
    return [
        _Correction(math.fsum([0.5 * term, *column]), abs(float(column[-1])))
        for term, column in zip(coefficients[0], parts.T)
    ]


def _by_blocks(series: SeriesTerms, row: int, first: float) -> SeriesTotal:
    """The sum by extrapolation of the sums of blocks, each of twice as many terms as the one before."""
    np = arrays.numpy_namespace()
    rows = np.array([row])
    blocks = [float(series.rows(rows, np.array([first]))[0, 0])]
    for j in range(_BLOCKS):
        limits.charge_steps()
        blocks.append(math.fsum(series.rows(rows, first + np.arange(2**j, 2 ** (j + 1)))[0]))
    value, error = limit_of_sums(blocks)
    return SeriesTotal(value, error)
