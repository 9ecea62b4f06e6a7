"""Limits of a function at a point or at infinity, by its asymptotic series there, whose coefficients have derivatives."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError
from gradcli.functionals.body import Body
from gradcli.functionals.switches import between, number_of
from gradcli.functionals.tracing import traced
from gradcli.kinds.asymptotic import Asymptotic, AsymptoticTerm, NoLimitError, samples
from gradcli.primitives.bind import Kind, constant
from gradcli.primitives.entries.complex_parts import check_real

# The numbers of terms beyond the leading one that are tried, in this order.
_LENGTHS = (8, 20, 48)
# The distances at which a series is compared with the function, and the relative tolerance.
_DISTANCES = (2.0**-3, 2.0**-5, 2.0**-7)
_TOLERANCE = 1e-5
# Limits from both sides that differ by no more than this, relative to their sizes, are one.
_SAME = 1e-9


def limit(function: Callable[..., Any], point: Any, side: str | None = None) -> Any:
    """The limit of a function of a number, from the right if `side` is "+", from the left if it is "-", else from both.

    It has derivatives by what the function reads, and is inf or -inf at a pole. Raises EvaluationError where there is no
    limit, where the limits from both sides differ, and for functions whose value is no number.
    """
    found = traced(function, [()])
    if found.body.results != 1 or found.shapes[0]:
        raise EvaluationError("a limit is that of a function whose value is a number")
    found.body.require_real("a limit")
    check_real("limit", point, *found.reads)
    numbers = [number_of(x) for x in (point, *found.reads)]
    if None in numbers:
        raise EvaluationError("a limit is computed for numbers, one at a time")
    place, *given = (float(n) for n in numbers if n is not None)
    if math.isinf(place):
        return _at(found.body, constant(point), 1.0 if place > 0 else -1.0, found.reads, given)
    if side is not None:
        return _at(found.body, point, {"+": 1.0, "-": -1.0}[side], found.reads, given)
    right, left = (_at(found.body, point, s, found.reads, given) for s in (1.0, -1.0))
    a, b = constant(right), constant(left)
    if a != b and not abs(a - b) <= _SAME * min(abs(a) + abs(b), sys.float_info.max):
        raise EvaluationError(
            f"the limits from both sides differ: {float(b):.6g} from the left, {float(a):.6g} from the right",
            hint="give '+' or '-' as the side",
        )
    return right


def _at(body: Body, point: Any, side: float, reads: Sequence[Any], numbers: Sequence[float]) -> Any:
    """The limit from one side: the right one (1) or the left one (-1), or at inf or -inf."""
    place = number_of(point)
    assert place is not None
    smooth = between(body, _moved(place, side, _DISTANCES[0]), _moved(place, side, _DISTANCES[-1]), numbers)
    with samples(independent=False):
        for count in _LENGTHS:
            try:
                series = _series(smooth, point, place, side, count, reads, numbers)
                _require_agreement(smooth, series, place, side, numbers)
                return _leading(series)
            except (NoLimitError, ArithmeticError, ValueError):
                continue
    raise EvaluationError(f"no limit was found at {place:.6g}")


def _moved(place: float, side: float, distance: float) -> float:
    """The place that belongs to the value `distance` of the variable of the series."""
    step = side * distance**2
    return 1.0 / step if math.isinf(place) else place + step


def _series(
    body: Body, point: Any, place: float, side: float, count: int, reads: Sequence[Any], numbers: Sequence[float]
) -> Asymptotic:
    """The series in t, where the place is the point plus or minus t**2, or near infinity 1/t**2.

    All exponents are even, so that what holds for one sign of t holds for both.
    """
    step = side * Asymptotic.variable(0.0, 0.0, count) ** 2
    variable = 1.0 / step if math.isinf(place) else Asymptotic.constant(point, place, count) + step
    given = [Asymptotic.constant(value, sample, count) for value, sample in zip(reads, numbers)]
    (found,) = body(variable, *given)
    return found if isinstance(found, Asymptotic) else Asymptotic.constant(found, float(constant(found)), count)


def _require_agreement(body: Body, series: Asymptotic, place: float, side: float, numbers: Sequence[float]) -> None:
    """Raise NoLimitError where a series is not that of the function."""
    with arrays.using_namespace(None), arrays.quiet():
        for distance in _DISTANCES:
            (direct,) = body(_moved(place, side, distance), *numbers)
            sample = series.sample_at(distance)
            if direct == sample or abs(float(direct) - sample) <= _TOLERANCE * (abs(sample) + 1e-300):
                return
    raise NoLimitError("the series is not that of the function")


def _leading(series: Asymptotic) -> Any:
    """The limit of a series: its leading coefficient, 0, or an infinity."""
    lead = next((term for term in series.terms if not _vanishes_here(term)), None)
    if lead is None:
        if series.end > 0.0:
            return 0.0
        raise NoLimitError("too few terms are known")
    if lead.exponent < 0.0 or (lead.exponent == 0.0 and lead.logs):
        sign = math.copysign(1.0, lead.c.sample) * (-1.0) ** lead.logs
        return sign * math.inf
    return lead.c.value if lead.exponent == 0.0 else 0.0


def _vanishes_here(term: AsymptoticTerm) -> bool:
    """Whether a term goes to infinity but for its coefficient, which is 0 for the numbers that the function reads. Raises
    EvaluationError where that is differentiated."""
    if term.c.sample != 0.0 or not (term.exponent < 0.0 or (term.exponent == 0.0 and term.logs)):
        return False
    value = term.c.value
    while isinstance(value, Tensor) and not value.requires_grad:
        value = value.inner
    if isinstance(value, Kind) and value.differential:
        raise EvaluationError(
            "the limit has no derivative here: it is infinite where a coefficient is not 0 as it is here",
            hint="--no-grad has its value",
        )
    return True
