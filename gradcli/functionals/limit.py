"""Limits of a function at a point or at infinity, by its asymptotic series there, whose coefficients have derivatives."""

from __future__ import annotations

import cmath
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from gradcli import arrays
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError
from gradcli.functionals import shortfalls
from gradcli.functionals.body import Body
from gradcli.functionals.functional_calls import joined_parts, noted, traced_in_parts
from gradcli.functionals.integrals.integral import integral
from gradcli.functionals.real_parts import in_real_parts
from gradcli.functionals.switches import between, number_of, switches
from gradcli.functionals.tracing import TracedFunction
from gradcli.kinds.asymptotic import ROUNDED, Asymptotic, AsymptoticTerm, NoLimitError, samples
from gradcli.kinds.exponential_scales import ExponentialScales, sign_of_growth
from gradcli.primitives.bind import Kind, assume, bind, constant
from gradcli.primitives.entries.comparisons import greater
from gradcli.primitives.entries.complex_parts import check_real
from gradcli.primitives.entries.elementwise.complex_numbers import imag, real
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive
from gradcli.program.ir import Variable

# The numbers of terms beyond the leading one that are tried, in this order.
_LENGTHS = (8, 20, 48)
# The distances at which a series is compared with the function, and the relative tolerance.
_DISTANCES = (2.0**-3, 2.0**-5, 2.0**-7)
# Those for functions with exponentials, which soon overflow.
_DISTANCES_OF_EXPONENTIALS = tuple(2.0 ** (-0.5 * k) for k in range(15))
_TOLERANCE = 1e-5
# The distances between which a function is taken without its switches, and the number of places at which it is examined
# for those; closer, rounding errors switch.
_NEAR, _EXAMINED = (2.0**-8, 2.0**-12), 997
# Samples differ from the actual numbers by up to this, absolute and relative, in shares that are multiples of the golden
# ratio modulo 1.
_PERTURBATION = 0.25
# Limits from both sides that differ by no more than this, relative to their sizes, are one.
_SAME = 1e-9


def limit(
    function: Callable[..., Any],
    point: Any,
    side: str | None = None,
    *,
    computed_point: Callable[[Any], Any] | None = None,
) -> Any:
    """The limit of a function of a number, from the right if `side` is "+", from the left if it is "-", else from both.

    `computed_point` computes the point in the trace of its argument, so that the function is known for what the point is
    computed from: as a function of x and a alone, (x**2 - 4*a**2)/(x - 2*a) has a pole at x = 2*a + h.
    The variable is real, unless the point is complex, which is approached from all sides; the value may be complex. The
    limit has derivatives by what the function reads, and is inf or -inf at a pole. Raises EvaluationError where there is
    no limit, where the limits from different sides differ, and for functions whose value is no number.
    """
    if arrays.is_complex(point):
        return _at_complex_point(function, point, side)
    if computed_point is not None and isinstance(point, Kind) and math.isfinite(_number(point)):
        try:
            return limit(lambda h: function(computed_point(h) + h), 0.0, side)
        except EvaluationError:
            # Where the function has no value at the point for these numbers alone, it is known as one of the point.
            with suppress(EvaluationError):
                return limit(function, point, side)
            raise
    _, found = traced_in_parts(function, computes_all=True)
    if math.isinf(_number(point)):
        return _of_parts(found, point, 1.0 if _number(point) > 0 else -1.0)
    if side is not None:
        return _of_parts(found, point, {"+": 1.0, "-": -1.0}[side])
    right, left = (_of_parts(found, point, s) for s in (1.0, -1.0))
    a, b = constant(right), constant(left)
    if _differ(a, b):
        raise EvaluationError(
            f"the limits from both sides differ: {_shown(b)} from the left, {_shown(a)} from the right",
            hint="give '+' or '-' as the side",
        )
    return right


# Four directions along the axes, and one that is no fraction of a turn: functions of the angle may be equal along axes.
_DIRECTIONS = (1.0, -1.0, 1j, -1j, cmath.exp(1j))


def _at_complex_point(function: Callable[..., Any], point: Any, side: str | None) -> Any:
    if side is not None:
        raise EvaluationError("a limit at a complex point is one from all sides", hint="leave out the side")

    def along(direction: complex) -> Any:
        def on_ray(distance: Any) -> Any:
            start = distance.trace.inside(point) if isinstance(point, Kind) else point
            return function(start + direction * distance)

        return _of_parts(traced_in_parts(on_ray, computes_all=True)[1], 0.0, 1.0)

    found = [along(direction) for direction in _DIRECTIONS]
    first, *others = map(constant, found)
    other = next((x for x in others if _differ(first, x)), None)
    if other is not None:
        raise EvaluationError(
            f"the limits along different directions differ: {_shown(first)} and {_shown(other)}",
            hint="give a real point, which is approached along the real axis",
        )
    return found[0]


def _differ(a: Any, b: Any) -> bool:
    return bool(a != b and not abs(a - b) <= _SAME * min(abs(a) + abs(b), sys.float_info.max))


def _shown(number: Any) -> str:
    """A number or a ball as text of six digits."""
    if not arrays.is_complex(number):
        return f"{float(number):.6g}"
    return f"{complex(*(float(constant(part(number))) for part in (real, imag))):.6g}"


def _of_parts(found: TracedFunction, point: Any, side: float) -> Any:
    """The limit from one side of a traced function, by the real and imaginary part of its value if it has two."""
    if any(found.shapes):
        raise EvaluationError("a limit is that of a function whose value is a number")
    check_real("limit", point, *found.reads)
    at, *reads = map(_number_unless_differentiated, (point, *found.reads))
    numbers = [_number(x) for x in reads]
    parts = [_by_formulas(found.body.result(k), at, side, reads, numbers) for k in range(found.body.results)]
    # At a point, one path alone counts.
    return noted(joined_parts(parts, found.shapes), found._replace(holomorphic=found.holomorphic_on_paths))


def _number(value: Any) -> float:
    found = number_of(value)
    if found is None:
        raise EvaluationError("a limit is computed for numbers, one at a time")
    return found


def _number_unless_differentiated(value: Any) -> Any:
    """A value as a number if it is not differentiated by."""
    while isinstance(value, Tensor) and not value.requires_grad:
        value = value.inner
    return value


def _by_formulas(body: Body, point: Any, side: float, reads: Sequence[Any], numbers: Sequence[float]) -> Any:
    """The limit of a real result from one side, which complex numbers may lead to."""
    plain = in_real_parts(body, "a limit of complex numbers is found by series")
    if plain is body:
        return _at(body, point, side, reads, numbers)
    try:
        return _at(plain, point, side, reads, numbers)
    except EvaluationError:
        return _at(in_real_parts(body, "", near_zero=True), point, side, reads, numbers)


def _at(body: Body, point: Any, side: float, reads: Sequence[Any], numbers: Sequence[float]) -> Any:
    """The limit from one side: the right one (1) or the left one (-1), or at inf or -inf."""
    place = number_of(point)
    assert place is not None
    if math.isinf(place) and _is_integral_to(body, numbers):
        try:
            (found,) = body(place, *reads)
            return found
        except EvaluationError:
            # An integral that diverges may be part of what has a limit.
            pass
    far, near = (_moved(place, side, distance) for distance in _NEAR)
    smooth = between(body, far, near, numbers)
    _require_equality(body, smooth, place, side, numbers)
    drawn = _drawn([point, *reads], [place, *numbers])
    if drawn == [place, *numbers]:
        return _by_series(smooth, point, side, reads, place, drawn, independent=False)
    try:
        return _by_series(smooth, point, side, reads, place, drawn, independent=True)
    except NoLimitError:
        pass
    try:
        # Exponents take their actual values alone.
        return _by_series(smooth, point, side, reads, place, [place, *numbers], independent=False)
    except NoLimitError:
        # Raises NoLimitError where the value is not found either.
        _by_series(smooth, place, side, numbers, place, [place, *numbers], independent=False)
    if math.isfinite(place) and not any(isinstance(r, Kind) and r.differential for r in reads):
        return bind(limit_from_both_sides, (point, *numbers), {"body": body})
    raise _without_derivative()


def _without_derivative() -> EvaluationError:
    return EvaluationError("no derivative of the limit was found", hint="--no-grad has its value")


def _from_both_sides(_xp: Any, point: Any, *reads: Any, body: Body) -> Any:
    right, left = (_at(body, point, side, reads, [*map(float, reads)]) for side in (1.0, -1.0))
    if not math.isfinite(right) or _differ(right, left):
        raise _without_derivative()
    return right


def _derivative_by_point(i: int, g: Any, _y: Any, point: Any, *reads: Any, body: Body) -> Any:
    """If a function that is continuous at a point has a slope beside it that tends to a number, this is its slope there."""
    if i:
        raise _without_derivative()
    return g * bind(limit_from_both_sides, (point, *reads), {"body": body.partial(0)})


limit_from_both_sides = elementwise(
    "limit_from_both_sides", "point, reads, body", "the limit of a body at a point where it may have no value",
    internal="limit",
    forward=_from_both_sides,
    vjp=_derivative_by_point,
    variadic=True,
    fails=True,
    derivative="the limit of the derivative of the body",
)  # fmt: skip


def _is_integral_to(body: Body, numbers: Sequence[float]) -> bool:
    """Return whether the variable is one limit of integrals alone, of which the result is a continuous function, so that
    its value for an infinite variable is its limit."""
    program = body.program
    variable = program.inputs[0]
    reading = [e for e in program.equations if variable in e.inputs]
    others = [e.inputs[1] if e.inputs[0] is variable else e.inputs[0] for e in reading if e.primitive is integral]
    # From one infinite place to itself an integral is 0, though it may be infinite from any other place.
    finite = all(map(math.isfinite, [*numbers, *(o for o in others if not isinstance(o, Variable))]))
    once = all(sum(i is variable for i in e.inputs) == 1 for e in reading)
    limits = len(others) == len(reading) and once and all(variable in e.inputs[:2] for e in reading)
    return bool(reading) and finite and limits and all(_is_continuous(e.primitive) for e in program.equations)


def _is_continuous(primitive: Primitive) -> bool:
    return not (primitive.selects or primitive.piecewise or primitive.jumps or primitive.truths or primitive.smooth)


def _require_equality(body: Body, smooth: Body, place: float, side: float, numbers: Sequence[float]) -> None:
    """Raise EvaluationError where a function switches near a place, other than the one without its switches."""
    if not switches(body):
        return
    np = arrays.numpy_namespace()
    places = _moved(place, side, np.geomspace(*_NEAR, _EXAMINED))
    with arrays.using_namespace(None), arrays.quiet():
        (a,), (b,) = (f(places, *numbers) for f in (body, smooth))
    if not np.array_equal(*np.broadcast_arrays(a, b), equal_nan=True):
        raise EvaluationError(f"no limit was found at {place:.6g}, near which the function switches again and again")


def _by_series(
    body: Body,
    point: Any,
    side: float,
    reads: Sequence[Any],
    place: float,
    drawn: Sequence[float],
    *,
    independent: bool,
) -> Any:
    """The limit by series whose samples are taken for the numbers `drawn` for the point and the reads."""
    with samples(independent=independent) as doubtful:
        found = _leading_of_series(body, point, side, reads, place, drawn)
    if doubtful:
        other: Any = None
        with suppress(EvaluationError), samples(independent=independent, noise=ROUNDED):
            other = _leading_of_series(body, point, side, reads, place, drawn)
        if other is None or _differ(constant(found), constant(other)):
            shortfalls.report_cancellation("limit", max(doubtful, key=abs), None if other is None else _shown(other))
    return found


def _leading_of_series(
    body: Body, point: Any, side: float, reads: Sequence[Any], place: float, drawn: Sequence[float]
) -> Any:
    at, *others = drawn
    kinds: Sequence[tuple[Callable[..., Any], Sequence[float], Callable[[Any], Any]]] = (
        (_series, _DISTANCES, _leading),
        (_scales, _DISTANCES_OF_EXPONENTIALS, _leading_of_scales),
    )
    for (expand, distances, leading), count in itertools.product(kinds, _LENGTHS):
        try:
            series = expand(body, point, at, side, count, reads, others)
            _require_agreement(body, series, distances, at, side, others)
            return leading(series)
        except (NoLimitError, ArithmeticError, ValueError):
            continue
    raise NoLimitError(f"no limit was found at {place:.6g}")


def _drawn(values: Sequence[Any], numbers: Sequence[float]) -> list[float]:
    """Samples near the numbers of some values, other ones for each value that is differentiated by; a coefficient that is 0
    for samples is 0 for all numbers, and has derivatives of 0."""
    found = []
    order = {id(value): k for k, value in reversed([*enumerate(values, 1)])}
    for value, number in zip(values, numbers):
        varies = isinstance(value, Kind) and value.differential and math.isfinite(number)
        off = _PERTURBATION * (order[id(value)] * GOLDEN_RATIO % 1.0) if varies else 0.0
        found.append(number * (1.0 + off) + off)
    return found


def _moved(place: float, side: float, distance: Any) -> Any:
    """The place that belongs to the value `distance` of the variable of the series, a number or an array."""
    step = side * distance**2
    return 1.0 / step if math.isinf(place) else place + step


def _series(
    body: Body, point: Any, place: float, side: float, count: int, reads: Sequence[Any], numbers: Sequence[float]
) -> Asymptotic:
    """The series in t, where the place is the point plus or minus t**2, or near infinity 1/t**2.

    All exponents are even, so that what holds for one sign of t holds for both.
    """
    variable, *given = _inputs(point, place, side, count, reads, numbers)
    (found,) = body(variable, *given)
    return found if isinstance(found, Asymptotic) else Asymptotic.constant(found, float(constant(found)), count)


def _scales(
    body: Body, point: Any, place: float, side: float, count: int, reads: Sequence[Any], numbers: Sequence[float]
) -> ExponentialScales:
    """The function as a sum of exponentials times such series."""
    given = _inputs(point, place, side, count, reads, numbers)
    (found,) = body(*(ExponentialScales.of(series, count) for series in given))
    return ExponentialScales.of(found, count)


def _inputs(
    point: Any, place: float, side: float, count: int, reads: Sequence[Any], numbers: Sequence[float]
) -> list[Asymptotic]:
    """The series of the bound variable and of the reads."""
    step = side * Asymptotic.variable(0.0, 0.0, count) ** 2
    variable = 1.0 / step if math.isinf(place) else Asymptotic.constant(point, place, count) + step
    return [variable, *(Asymptotic.constant(value, sample, count) for value, sample in zip(reads, numbers))]


def _require_agreement(
    body: Body,
    series: Asymptotic | ExponentialScales,
    distances: Sequence[float],
    place: float,
    side: float,
    numbers: Sequence[float],
) -> None:
    """Raise NoLimitError where a series is not that of the function."""
    with arrays.using_namespace(None), arrays.quiet():
        for distance in distances:
            try:
                (direct,) = body(_moved(place, side, distance), *numbers)
            except EvaluationError:
                # An integral up to a large number may overflow.
                continue
            sample = series.sample_at(distance)
            if direct == sample or abs(float(direct) - sample) <= _TOLERANCE * (abs(sample) + 1e-300):
                return
    raise NoLimitError("the series is not that of the function")


def _leading_of_scales(scales: ExponentialScales) -> Any:
    """The limit of a sum of exponentials times series."""
    for growth, series in scales.scales:
        sign = sign_of_growth(growth)
        if sign <= 0:
            return 0.0 if sign < 0 else _leading(series)
        lead = next((term for term in series.terms if not _is_zero_here(term)), None)
        if lead is not None:
            return _infinity(lead)
        if series.end < math.inf:
            raise NoLimitError("too few terms are known")
    return 0.0


def _leading(series: Asymptotic) -> Any:
    """The limit of a series: its leading coefficient, 0, or an infinity."""
    lead = next((term for term in series.terms if not _vanishes_here(term)), None)
    if lead is None:
        if series.end > 0.0:
            return 0.0
        raise NoLimitError("too few terms are known")
    if lead.exponent < 0.0 or (lead.exponent == 0.0 and lead.logs):
        return _infinity(lead)
    _require_number(lead)
    return lead.c.value if lead.exponent == 0.0 else 0.0


def _require_number(term: AsymptoticTerm) -> None:
    if not math.isfinite(float(constant(term.c.value))):
        raise NoLimitError("a coefficient is no number")


def _infinity(term: AsymptoticTerm) -> float:
    """What a term that grows tends to. Raises UndecidedError for a ball that may be of either sign."""
    _require_number(term)
    return (math.inf if assume(greater(constant(term.c.value), 0.0)) else -math.inf) * (-1.0) ** term.logs


def _vanishes_here(term: AsymptoticTerm) -> bool:
    """Return whether a term goes to infinity but for its coefficient, as `_is_zero_here` says."""
    return (term.exponent < 0.0 or (term.exponent == 0.0 and term.logs > 0)) and _is_zero_here(term)


def _is_zero_here(term: AsymptoticTerm) -> bool:
    """Return whether the coefficient of a term that is infinite is 0 for the numbers that the function reads. Raises
    EvaluationError where that is differentiated."""
    if float(constant(term.c.value)) != 0.0:
        return False
    if isinstance(term.c.value, Kind) and term.c.value.differential:
        raise EvaluationError(
            "no derivative of the limit was found: a term that is infinite has a coefficient that is 0 for these numbers",
            hint="--no-grad has its value",
        )
    return True
