"""Every way to a value and its derivatives gives the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import numpy as np

import gradcli
from gradcli import limits
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.accuracy import digits_left
from gradcli.calculus.higher_orders import derivatives_with_shadow, leaf_with_shadow
from gradcli.errors import GradcliError, LimitError
from gradcli.evaluation import session
from gradcli.kinds.jets import Jet
from gradcli.kinds.perturbed_roundings import Perturbation
from gradcli.language.interpreter.run import evaluate
from gradcli.language.names import scope
from gradcli.language.syntax import parse, tree
from tests.fuzz import checks, proofs, readings
from tests.fuzz.case import Case, Finding
from tests.fuzz.comparison import Comparison, Way, is_far_out
from tests.fuzz.readings import VALUE, Numbers, Point, limited


def disagreement(case: Case) -> Finding | None:
    """Two readings of the case that differ by more than rounding, if there are any."""
    try:
        program = parse(case.program)
        reads = scope.free_names(program)
        point = Point(program, {n: v for n, v in case.arrays().items() if n in reads})
        if not point.leaves:
            return None
        with limited():
            first = readings.by_reverse_mode(point)
    except GradcliError as error:
        return checks.wrong_error(error)
    rng = Random(case.draw)
    compiled = gradcli.compile(case.program)
    comparison = Comparison(readings.by_reverse_mode, first, point)
    for way in _first_order(compiled, rng, point.leaves):
        if way.by_rows and "backward" in case.program:
            # Such a clause need not be linear, nor good for every cotangent.
            continue
        found = comparison.finding(way)
        if found is not None:
            return found
    return _elsewhere(compiled, point, rng) or _second_order(compiled, point, rng) or _printed(case, point, first, rng)


def _first_order(compiled: Any, rng: Random, leaves: Mapping[str, Any]) -> Iterator[Way]:
    for time in ("first", "second", "third"):
        way = f"the {time} run of a compiled program"
        # One that is not recorded may know that an exponent is the constant 0, and its power the constant 1.
        yield Way(way, partial(readings.by_compiled, compiled), knows_zeros=time == "first")
    yield Way("arrays for numbers", readings.by_arrays)
    jacobians = partial(readings.by_jacobians, compiled)
    yield Way("Jacobians", jacobians, knows_zeros=True, widens=True, own_rounding=True, by_rows=True)
    yield Way("recorded Jacobians", jacobians, knows_zeros=True, own_rounding=True, by_rows=True)
    series = partial(readings.by_series, order=rng.choice((2, 2, 3)))
    yield Way("series", series, knows_zeros=True, widens=True)
    if len(leaves) > 1:
        series = partial(readings.by_series, order=rng.choice((2, 2, 3, 5)), names=[rng.choice([*leaves])])
        yield Way("a series by one name", series, knows_zeros=True, widens=True)


def _elsewhere(compiled: Any, point: Point, rng: Random) -> Finding | None:
    """A recording must notice where it is good for other numbers no more."""
    factor, step = rng.choice((-1.0, 0.0, 0.5, 3.0)), rng.choice((0.0, 0.3, -2.0))
    with np.errstate(all="ignore"):
        other = point.at({n: v * factor + step for n, v in point.leaves.items()})
    name = "a compiled program, run with other numbers,"
    try:
        with limited():
            first = readings.by_reverse_mode(other)
    except LimitError:
        return None
    except GradcliError as error:
        with suppress(GradcliError), limited():
            readings.by_compiled(compiled, other, np.shape(readings.by_reverse_mode(point)[VALUE]))
            return Finding(f"{name}: no error", error.report())
        return checks.wrong_error(error)
    return Comparison(readings.by_reverse_mode, first, other).finding(
        Way(name, partial(readings.by_compiled, compiled))
    )


def _second_order(compiled: Any, point: Point, rng: Random) -> Finding | None:
    if sum(np.size(v) for v in point.leaves.values()) > _MOST_SECOND:
        return None
    if is_far_out(point):
        return proofs.disagreement(point)
    try:
        with limited():
            first = readings.twice_by_reverse_mode(point)
    except GradcliError as error:
        return checks.wrong_error(error)
    ways = [Way("series of order 3", partial(readings.by_series, order=3), knows_zeros=True, widens=True)]
    if not np.shape(first[VALUE]):
        hessian = partial(readings.by_hessian, compiled)
        ways += [Way("the first Hessian", hessian, widens=True), Way("the second Hessian", hessian)]
        series = partial(readings.by_derivatives, compiled, order=rng.choice((2, 3)))
        ways.append(Way("derivatives of a compiled program", series))
    # Where a derivative is not finite, what 0 times infinity is in it and in those of it depends on the way.
    odd = {
        key
        for key, numbers in first.items()
        if key != VALUE and not np.isfinite(0.0 if numbers is None else numbers).all()
    }
    first = {key: numbers for key, numbers in first.items() if odd.isdisjoint((key, *key.split(",")))}
    comparison = Comparison(readings.twice_by_reverse_mode, first, point)
    for way in ways:
        finding = comparison.finding(way)
        if finding and not (proofs.is_absorbed(way, first, point) or _is_told(finding, first, point)):
            return finding
    return None


def _is_told(finding: Finding, first: Numbers, point: Point) -> bool:
    """Whether a run of a user has a warning that the derivative has lost most of its digits or is no number, or the numbers
    of `first`: the search for the rays of a kink has more steps there."""
    key = finding.detail.partition(":")[0]
    try:
        with limited():
            value, found, deviations = derivatives_with_shadow(point.total, point.leaves, 3)
            if np.isfinite(readings.as_numbers(found[key])).all():
                return key in digits_left(found, deviations, value, point.leaves)
        # Derivatives of order 3 are those of a number.
        program = _summed(point.program) if np.shape(first[VALUE]) else point.program
        request = session.EvaluationRequest(program, point.leaves, tuple(point.leaves), order=3)
        with limits.within(_USERS_STEPS):
            result = session.run(request)
        if any(w.code == "nonfinite" for w in result.warnings):
            return True
        return np.allclose((result.derivatives or {})[key], first[key], rtol=_TOLD, atol=_TOLD)
    except GradcliError:
        return False


def _summed(program: tree.Module) -> tree.Module:
    """The program of the sum of a value that is a tensor, as it is typed."""
    last, source = program.body[-1].span, program.source
    return parse(f"{source[: last.start]}sum({source[last.start : last.end]}){source[last.end :]}")


_MOST_SECOND = 9
# Steps of a run in which kinks of few numbers are decided, and the relative difference of derivatives that are equal.
_USERS_STEPS, _TOLD = 200 * checks.MAX_STEPS, 1e-7
_NUDGE = 1e-5


def _printed(case: Case, point: Point, first: Numbers, rng: Random) -> Finding | None:
    """Formulas that are printed mean the gradient, where that is finite and the program smooth."""
    if any(n is None or not np.isfinite(n).all() for n in first.values()) or np.shape(first[VALUE]):
        return None
    if is_far_out(point):
        # Formulas have no stable forms.
        return None
    request = session.EvaluationRequest(point.program, point.leaves, tuple(point.leaves))
    with limited():
        if any(w.code == "nonsmooth" for w in session.run(request).warnings):
            return None
    language = rng.choice(("text", "python"))
    texts = readings.formulas(case.program, language, point)
    by_formulas = partial(readings.by_formulas, texts, language)
    way = Way(f"formulas as {language}", by_formulas, widens=True, own_rounding=True)
    found = Comparison(readings.by_reverse_mode, first, point).finding(way)
    if found is None or _cancels(case.program, point):
        return None
    # Formulas hold but at single points, such as 0 of `where(x == 0, 1, x)`.
    beside = point.at({n: v * (1 + _NUDGE) + _NUDGE for n, v in point.leaves.items()})
    try:
        with limited():
            first = readings.by_reverse_mode(beside)
    except GradcliError:
        return found
    return Comparison(readings.by_reverse_mode, first, beside).finding(way)


def _cancels(program: str, point: Point) -> bool:
    """Whether a formula has lost more digits at the point than ways may differ by, as `1 - tanh(x)**2` has far from 0."""
    for text in readings.formulas(program, "text", point).values():
        try:
            roundings = Perturbation()
            leaves = {n: leaf_with_shadow(v, roundings) for n, v in point.leaves.items()}
            value = evaluate(parse(text), leaves, rewrite=False).value
        except GradcliError:
            continue
        series = value.inner if isinstance(value, Tensor) else None
        if isinstance(series, Jet) and series.shadow is not None:
            number, other = np.asarray(series.inner), np.asarray(series.shadow.inner)
            with np.errstate(all="ignore"):
                if np.any(np.abs(number - other) > 1e-9 * np.abs(number)):
                    return True
    return False
