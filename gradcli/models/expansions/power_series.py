"""`series`: Taylor polynomials of programs, with exact fractions where the coefficients are rational."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from gradcli import limits
from gradcli.compiled.evaluated import check_digits, in_namespace
from gradcli.errors import (
    BackendError,
    BindingError,
    GradcliError,
    LimitError,
    UndecidedError,
    UsageError,
    did_you_mean,
    expect,
)
from gradcli.evaluation.diagnose import Warning
from gradcli.formulas.derivation import example
from gradcli.formulas.symbolic import recorded_formula
from gradcli.formulas.taylor_polynomials import FORMULAS, FUNCTIONS, TaylorTerm, formula, polynomial
from gradcli.language.names import scope
from gradcli.language.parsing import parse_charged
from gradcli.limits import MAX_ELEMENTS, MAX_PRECISION, MAX_STEPS
from gradcli.models import checked_arguments
from gradcli.models.expansions.taylor_coefficients import (
    Expansion,
    SeriesRequest,
    check_comparisons,
    in_balls,
    in_floats,
)
from gradcli.models.results import MAY_BE_NULL
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.arithmetic import add

ORDER = 6
LANGUAGES = (*FORMULAS, *FUNCTIONS)


@dataclass(frozen=True)
class Coefficient:
    """The coefficient of a monomial. `powers` are the exponents in the order of the variables of the centre; `value` is
    a float or a complex number, or a text where digits were asked for; `exact` is the fraction as a text, where one is
    proved."""

    powers: list[int]
    value: Any
    exact: str | None = field(metadata=MAY_BE_NULL)


@dataclass(frozen=True)
class PowerSeries:
    """A Taylor polynomial of total degree `order` around `center`.

    `remainder` bounds the distance from the program, where that was asked for. `radius` is an estimate of the radius of
    convergence from the coefficients by `radius_method`; None where they do not determine one.
    """

    center: dict[str, Any]
    order: int
    coefficients: list[Coefficient]
    text: str
    remainder: float | None = field(metadata=MAY_BE_NULL)
    radius: float | None = field(metadata=MAY_BE_NULL)
    radius_method: str | None

    def __str__(self) -> str:
        return self.text

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.to('latex')}$"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text)

    def to(self, language: str, *, name: str = "taylor", doc: str = "A Taylor polynomial.") -> str:
        """The polynomial as `text`, `latex`, or a function of the given name in `python` or `c`. Raises UsageError for
        another language."""
        if language not in LANGUAGES:
            hint = did_you_mean(language, LANGUAGES, f"there are {', '.join(LANGUAGES)}")
            raise UsageError(f"there is no language {language!r} to write a series in", hint=hint)
        if language == "text":
            return self.text
        points = dict.fromkeys(self.center, example((), 0))
        if not any(isinstance(n, complex) for n in (*self.center.values(), *(c.value for c in self.coefficients))):
            return formula(recorded_formula(self.text, points), language, name=name, doc=doc)
        # Loaded on demand: few series have complex numbers.
        from gradcli.formulas.complex_variables.imaginary_unit import with_unit

        program = with_unit(recorded_formula(self.text, {scope.IMAGINARY_UNIT: example((), 1), **points}))
        complex_names = frozenset(name for name, value in self.center.items() if isinstance(value, complex))
        return formula(program, language, name=name, doc=doc, complex_names=complex_names)


def series(
    program: str,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    order: int = ORDER,
    wrt: Sequence[str] | str | None = None,
    over: Any = None,
    digits: int | None = None,
    max_precision: int = MAX_PRECISION,
    max_steps: int = MAX_STEPS,
    max_elements: int = MAX_ELEMENTS,
    **named: Any,
) -> PowerSeries:
    """The Taylor polynomial of a scalar program to total degree `order` in the names `wrt`, or in all inputs where that
    is None, around their values: `series("sin(x)", x=0, order=7)`.

    Values are numbers or arrays by name; texts are decimals, which are exact. With `over`, an interval such as `(-0.5,
    0.5)` or "-0.5..0.5", or a mapping of intervals by name, `remainder` is a proved bound of the distance from the
    program. With `digits`, each number is a text with that many proved digits. Exact fractions and bounds need
    python-flint.

    Raises EvaluationError where there is no Taylor series, as at a pole, DifferentiationError for a value that is not a
    scalar, BindingError for a name without a value, and BackendError for digits or bounds without python-flint.
    """
    limits.check(max_steps=max_steps, max_elements=max_elements)
    with limits.within(max_steps, max_elements):
        expect(program, str, "a program is a text")
        tree = parse_charged(program)
        given = {**checked_arguments.mapping_by_name(values, "'values'"), **named}
        scope.check_read(given, tree)
        scope.check_names(tree, given)
        names = [*given] if wrt is None else [*checked_arguments.names(wrt, "'wrt'")]
        missing = next((name for name in names if name not in given), None)
        if missing is not None:
            raise BindingError(f"a series is around a point, and '{missing}' has no value", hint=f"give {missing}=0")
        question = SeriesRequest(tree, partial(in_namespace, given), names, order)
        return expand(question, over=over, digits=digits, max_precision=max_precision).series


class SeriesAnswer(NamedTuple):
    """A series, whether each of its numbers has the digits that were asked for, and the warnings of the run."""

    series: PowerSeries
    complete: bool
    warnings: Sequence[Warning]


def expand(
    question: SeriesRequest, *, over: Any = None, digits: int | None = None, max_precision: int = MAX_PRECISION
) -> SeriesAnswer:
    """The answer to a question, within the limits of a run; see `series`."""
    if type(question.order) is not int or question.order < 0:
        raise UsageError("the order of a series is a whole number from 0 on", hint="order 6 ends with x**6")
    check_digits(digits, max_precision)
    has_complex = question.has_complex()
    if has_complex and (digits is not None or over is not None):
        raise UsageError(
            "digits and remainders are proved of series of real numbers, and this one has complex numbers",
            hint="leave --digits and --over out",
        )
    if question.order:
        check_comparisons(question)
    compute = in_floats if has_complex else _in_nearest_floats
    found = compute(question) if digits is None else in_balls(question, digits, max_precision)
    labels, terms = [*found.center], [TaylorTerm(p, n.value, n.fraction) for p, n in found.coefficients.items()]
    center = {label: n.value if n.fraction is None else _shorter(n.fraction) for label, n in found.center.items()}
    radius, inequality = Radius(None, None), list[Warning]()
    if len(labels) == 1 and question.order:
        further = _further(question, found if digits is None else None, compute)
        radius = suggested_radius(further)
        if radius.value is not None:
            inequality = _inequality(question, further, compute)
            radius = Radius(None, None) if inequality else radius
    remainder = None
    if over is not None:
        # python-flint is needed only where a bound is asked for.
        from gradcli.models.expansions.remainders import remainder_over

        remainder = remainder_over(question, over if isinstance(over, Mapping) else {None: over})
    made = PowerSeries(
        {label: n.value for label, n in found.center.items()},
        question.order,
        [Coefficient([*t.powers], t.value, None if t.fraction is None else str(t.fraction)) for t in terms],
        polynomial(terms, center),
        remainder,
        radius.value,
        radius.method,
    )
    warnings = [*found.warnings, *_too_small(question, found), *inequality]
    return SeriesAnswer(made, all(t.is_known for t in terms), warnings)


def _shorter(number: Fraction) -> Fraction | str:
    """A number as a fraction, or as the equal decimal where that is shorter."""
    try:
        decimal = repr(float(number))
    except OverflowError:
        return number
    return decimal if len(decimal) < len(str(number)) and Fraction(decimal) == number else number


def _in_nearest_floats(question: SeriesRequest) -> Expansion:
    """The expansion in ball arithmetic, as floats; in float64 where that fails."""
    try:
        with limits.optional_budget():
            return in_balls(question, None)
    except (BackendError, UndecidedError, LimitError):
        return in_floats(question)


def _further(
    question: SeriesRequest, found: Expansion | None, compute: Callable[[SeriesRequest], Expansion]
) -> Sequence[float | complex]:
    """At least as many coefficients as an estimate of the radius needs, up to the first that underflows; none where
    they cannot be computed. `found` is what `compute` gives for the question."""
    if found is None or question.order < MIN_COEFFICIENTS:
        try:
            found = compute(question._replace(order=max(question.order, MIN_COEFFICIENTS)))
        except GradcliError:
            return ()
    known = takewhile(lambda number: not number.is_too_small, found.coefficients.values())
    return [n.value for n in known]


def _too_small(question: SeriesRequest, found: Expansion) -> list[Warning]:
    """A warning where coefficients are 0 by underflow."""
    powers = [p for p, number in found.coefficients.items() if number.is_too_small]
    if not powers:
        return []
    which = f"{len(powers)} of {len(found.coefficients)} coefficients {'is' if len(powers) == 1 else 'are'}"
    span = question.program.body[-1].span
    return [
        Warning(
            "underflow", "series", "", span, f"{which} too small for a float, and 0 here: --digits 17 gives decimals"
        )
    ]


# --- whether the program is equal to its series

# Distances from the centre, in units of the larger of 1 and its magnitude, where the program is compared with the sum.
_DISTANCES = (0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0)
# The sum has converged where its last `_LAST` terms are at most `_NEGLIGIBLE` of the largest term. Values that differ by
# more than `_ROUNDING` of the largest term differ by more than rounding errors.
_LAST, _NEGLIGIBLE, _ROUNDING = 10, 1e-12, 1e-6


def _inequality(
    question: SeriesRequest, coefficients: Sequence[float | complex], compute: Callable[[SeriesRequest], Expansion]
) -> list[Warning]:
    """A warning where the program differs from the sum of its series at a point where that has converged, as
    exp(-1/x**2) does, and a program that switches between formulas."""
    (center,) = (n.value for n in compute(question._replace(order=0)).center.values())
    for distance in _DISTANCES:
        step = distance * max(1.0, abs(center))
        try:
            moved = compute(_moved(question, step))
        except GradcliError:
            # The program has no value there.
            continue
        ((label, point),), (value,) = moved.center.items(), moved.coefficients.values()
        terms = [c * step**n for n, c in enumerate(coefficients)]
        total, largest = sum(terms), max(abs(value.value), *map(abs, terms))
        has_converged = max(map(abs, terms[-_LAST:])) <= _NEGLIGIBLE * largest
        if has_converged and abs(value.value - total) > _ROUNDING * largest:
            text = (
                f"the program is not equal to its series: at {label} = {point.value:.6g} "
                f"it is {value.value:.6g}, and the series {total:.6g}"
            )
            return [Warning("not_analytic", "series", "", question.program.body[-1].span, text)]
    return []


def _moved(question: SeriesRequest, step: float) -> SeriesRequest:
    """The request for the value at this distance from the centre."""

    def bindings() -> dict[str, Any]:
        given = question.bindings()
        return {**given, **{name: add(given[name], step) for name in question.wrt}}

    return question._replace(bindings=bindings, order=0)


# --- the radius of convergence

# The number of coefficients that an estimate needs, and the least number of nonzero ones after the first third is
# dropped.
MIN_COEFFICIENTS, _MIN_NONZERO = 40, 6
# The extrapolations have settled where their range is at most `_TOLERANCE` of the last one. The limit is 0 where they
# are at most `_VANISHING` of the ratios in the middle and the ratios fall at least as n**-`_DECAY_EXPONENT`.
_TOLERANCE = 0.01
_VANISHING = 0.2
_DECAY_EXPONENT = 0.9
# Upper bound of the significant digits of a radius, which has as many as the extrapolations agree on.
_MOST_DIGITS = 4


class Radius(NamedTuple):
    """A radius and the method that found it; both None where the coefficients do not determine one."""

    value: float | None
    method: str | None


def suggested_radius(coefficients: Sequence[float | complex]) -> Radius:
    """An estimate of the radius of convergence of a series with these first coefficients.

    The ratios of successive coefficients are extrapolated in 1/n to n = ∞ (C. Domb and M. F. Sykes, Proc. R. Soc. A 240
    (1957) 214). They settle where one singularity is nearest, as one on the real axis where the coefficients are real,
    or where a power of x maps several to one. Otherwise the quotients of B. Mercer and A. J. Roberts, SIAM J. Appl.
    Math. 50 (1990) 1547, for a pair of singularities, are extrapolated. The radius is infinite where the ratios tend to
    0, or where the coefficients end.
    """
    places = [n for n, c in enumerate(coefficients) if c]
    if not all(map(cmath.isfinite, coefficients)) or len(coefficients) < MIN_COEFFICIENTS:
        return Radius(None, None)
    if not places or places[-1] < len(coefficients) // 2:
        return Radius(math.inf, "the coefficients end")
    step = math.gcd(*(b - a for a, b in pairwise(places)))
    found = [coefficients[n] for n in range(places[0], len(coefficients), step)]
    # Drop the first third, where the ratios may not yet follow the trend.
    found = found[-(len(found) * 2 // 3) :]
    last = (len(coefficients) - 1 - places[0]) // step + places[0] // step
    if len(found) < _MIN_NONZERO:
        return Radius(None, None)
    for method, values, order in (("Domb-Sykes", _ratios(found), 2), ("Mercer-Roberts", _pairs(found), 1)):
        found_limit = _limit(values, last, order)
        if found_limit is not None:
            limit, digits = found_limit
            return Radius(math.inf if limit == 0.0 else float(f"{abs(limit) ** (-1.0 / step):.{digits}g}"), method)
    return Radius(None, None)


def _ratios(found: Sequence[float | complex]) -> list[float | complex]:
    return [b / a if a else math.nan for a, b in pairwise(found)]


def _pairs(found: Sequence[float | complex]) -> list[float | complex]:
    """The reciprocals of radii of convergence for pairs of singularities, which are conjugate where the coefficients
    are real, each from four successive coefficients."""
    values: list[float | complex] = []
    for a, b, c, d in zip(found, found[1:], found[2:], found[3:]):
        above, below = d * b - c * c, c * a - b * b
        quotient = above / below if below else math.nan
        size = abs(quotient) if isinstance(quotient, complex) else quotient
        values.append(math.sqrt(size) if size > 0.0 else math.nan)
    return values


def _limit(values: Sequence[float | complex], last: int, order: int) -> tuple[float | complex, int] | None:
    """The limit for n → ∞ of values, the last of which belongs to n = `last`, by polynomial extrapolation of this order
    in 1/n, and the number of digits on which the extrapolations agree; None where they do not settle."""
    first = last - len(values) + 1
    if not all(map(cmath.isfinite, values)):
        return None
    found = [*values]
    for k in range(1, order + 1):
        found = [((n + k) * b - n * a) / k for n, (a, b) in enumerate(pairwise(found), first)]
    found = found[len(found) // 2 :]
    if _vanishes(values, first) and max(map(abs, found)) <= _VANISHING * abs(values[len(values) // 2]):
        return 0.0, _MOST_DIGITS
    parts = [x.real for x in found], [x.imag for x in found]
    apart = math.hypot(*(max(part) - min(part) for part in parts))
    if apart > _TOLERANCE * abs(found[-1]):
        return None
    return found[-1], min(_MOST_DIGITS, math.floor(math.log10(abs(found[-1]) / apart))) if apart else _MOST_DIGITS


def _vanishes(values: Sequence[float | complex], first: int) -> bool:
    """Return whether values fall at least about as fast as 1/n."""
    middle = len(values) // 2
    shares = [abs(values[i]) * (first + i) ** _DECAY_EXPONENT for i in (middle, -1 % len(values))]
    return bool(0.0 < shares[1] <= shares[0])
