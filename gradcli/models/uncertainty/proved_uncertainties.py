"""The law of propagation of uncertainty in ball arithmetic, whose digits are proved."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from flint import arb, fmpq

from gradcli import arrays
from gradcli.arrays.flint.balls import UNDEFINED, Balls, Number, exact, is_exact, is_nan, shortest_decimal, to_float
from gradcli.evaluation import session
from gradcli.language.syntax.tree import Module
from gradcli.models.complex_inputs import parts_of, with_parts
from gradcli.models.uncertainty.assigned_distributions import FAMILIES
from gradcli.models.uncertainty.input_quantities import (
    Quantities,
    Quantity,
    coverage_factor,
    input_of_value,
    polar_results_at_zero,
    whole_dof,
)
from gradcli.proofs import digits as proved_digits

# Newton steps, each of which doubles the digits: from the 16 of a float to more than are ever requested.
_STEPS = 10


def in_digits(
    module: Module,
    values: Mapping[str, Any],
    inputs: Quantities,
    found: Any,
    labels: Sequence[str] | None,
    digits: int,
    max_precision: int,
) -> tuple[Any, bool]:
    """The propagation `found` in floats with each number as a text of `digits` proved digits, and whether all numbers
    have that many; to be called within `gradcli.proofs.digits.computing`.

    The decimals in `values` are exact, as are correlations, degrees of freedom and the level as they are written.
    `labels` are those of several results, None for a single one. Results of second order and of Monte Carlo are left
    out.

    Raises what `gradcli.proofs.digits.run` raises.
    """

    names = [*inputs.packing.shapes]
    of_complex = labels is not None and len(found.covariance) < len(labels)

    def request() -> session.EvaluationRequest:
        given = {name: input_of_value(value, name) for name, value in values.items()}
        bindings = {n: _balls(_estimate(each) if isinstance(each, Quantity) else each) for n, each in given.items()}
        return session.EvaluationRequest(module, with_parts(bindings, inputs.complex_names), names, jacobian=True)

    def compute(asked: session.RequestFactory) -> session.Result:
        result = proved_digits.at_precision(asked)
        quantities = [*_quantities(values)]
        result.grad = {
            key: Balls(number)
            for key, number in _numbers(result, quantities, inputs, found.level, of_complex=of_complex)
        }
        result.jacobian = None
        return result

    texts, complete = proved_digits.run(request, digits, max_precision, compute)
    return _with_texts(found, labels, texts.grad or {}), complete


def _with_texts(found: Any, labels: Sequence[str] | None, texts: Mapping[str, Any]) -> Any:
    """The propagation `found` with its numbers replaced by `texts`, whose keys are those of `_numbers`."""

    def of(row: int, what: str) -> Any:
        return texts[f"{row} {what}"]

    def each(member: Callable[[int], Any]) -> Any:
        return member(0) if labels is None else {label: member(row) for row, label in enumerate(labels)}

    def budget(row: int) -> list[Any]:
        keys = ("value", "u", "dof", "sensitivity", "contribution", "share")
        entries = found.budget if labels is None else found.budget[labels[row]]
        return [
            dataclasses.replace(entry, **{key: of(row, f"{key} {i}") for key in keys})
            for i, entry in enumerate(entries)
        ]

    # Only the two parts of a complex value have covariances.
    places = range(0 if labels is None else len(found.covariance))
    return dataclasses.replace(
        found,
        **{name: each(partial(of, what=name)) for name in ("value", "u", "relative", "dof", "k")},
        budget=each(budget),
        interval=each(lambda row: (of(row, "low"), of(row, "high"))),
        second_order=None,
        covariance=None if labels is None else [[of(i, f"covariance {j}") for j in places] for i in places],
    )


def _numbers(
    result: session.Result, quantities: Sequence[Quantity], inputs: Quantities, level: float, *, of_complex: bool
) -> Iterator[tuple[str, Number]]:
    """Every number of the results at the current precision, with its key. With `of_complex` they are those of
    `program_of_parts`."""
    mean = [number for each in quantities for number in _elements(_estimate(each))]
    u = [number for each in quantities for number in _elements(_uncertainty(each))]
    dof = [math.inf if math.isinf(number) else shortest_decimal(number) for number in inputs.dof.tolist()]
    results = list(_elements(result.value))
    # A derivative may exist by its formula where the value does not, as for log(-1).
    sensitivities = [
        [value] * len(row) if is_nan(value) else row for value, row in zip(results, _rows(result, inputs, len(results)))
    ]
    if of_complex:
        for at in polar_results_at_zero(results):
            sensitivities[at] = [UNDEFINED] * len(sensitivities[at])
    scaled = [[_contribution(c, u_i, value) for c, u_i in zip(row, u)] for value, row in zip(results, sensitivities)]
    covariances = [[_with_correlations(row, place, inputs) for place in range(len(u))] for row in scaled]
    for at, (value, row, own, mixed) in enumerate(zip(results, sensitivities, scaled, covariances)):
        variance = _sum(a * b for a, b in zip(own, mixed))
        deviation = _root(variance)
        nothing = is_exact(variance) and variance == 0
        yield f"{at} value", value
        yield f"{at} u", deviation
        yield f"{at} relative", _quotient(deviation, abs(value))
        for i, number in enumerate(row):
            yield f"{at} value {i}", mean[i]
            yield f"{at} u {i}", u[i]
            yield f"{at} dof {i}", arb("inf") if dof[i] == math.inf else dof[i]
            yield f"{at} sensitivity {i}", number
            yield f"{at} contribution {i}", abs(own[i])
            yield f"{at} share {i}", fmpq(0) if nothing else own[i] * mixed[i] / variance
        inverse = fmpq(0) if nothing else _sum(_terms(own, mixed, variance, dof, inputs))
        freedom = arb("inf") if is_exact(inverse) and inverse == 0 else 1 / inverse
        freedom = variance if is_nan(variance) else freedom
        k = _factor(level, freedom)
        yield f"{at} dof", freedom
        yield f"{at} k", k
        yield f"{at} low", value - k * deviation
        yield f"{at} high", value + k * deviation
        for other, own_other in enumerate(scaled):
            yield f"{at} covariance {other}", _sum(a * b for a, b in zip(mixed, own_other))


def _quantities(values: Mapping[str, Any]) -> Iterator[Quantity]:
    """The uncertain inputs, complex ones as their parts."""
    for name, value in values.items():
        each = input_of_value(value, name)
        if isinstance(each, Quantity):
            for part, u in zip(parts_of(each.value), parts_of(each.u)):
                yield each._replace(value=part, u=u)


def _contribution(sensitivity: Number, u: Number, value: Number) -> Number:
    """A sensitivity times an uncertainty; 0 for an input that is known exactly, whatever the sensitivity is."""
    return fmpq(0) if is_exact(u) and u == 0 and not is_nan(value) else sensitivity * u


def _estimate(each: Quantity) -> Any:
    if each.distribution is None:
        return each.value
    return Balls(FAMILIES[each.distribution.name].mean(*map(shortest_decimal, each.distribution.parameters)))


def _uncertainty(each: Quantity) -> Any:
    if each.distribution is None:
        return each.u
    return Balls(_root(FAMILIES[each.distribution.name].variance(*map(shortest_decimal, each.distribution.parameters))))


def _balls(value: Any) -> Any:
    """A number or an array as balls, complex ones where it is complex."""
    if isinstance(value, Balls) or arrays.is_complex(value):
        return arrays.default_namespace().asarray(value)
    return arrays.default_namespace().asarray(value, "float64")


def _elements(value: Any) -> Iterator[Number]:
    numbers = _balls(value).numbers
    yield from numbers.ravel() if getattr(numbers, "shape", ()) else (numbers,)


def _rows(result: session.Result, inputs: Quantities, count: int) -> list[list[Number]]:
    """The sensitivities of each result by all inputs."""
    rows: list[list[Number]] = [[] for _ in range(count)]
    for shape, jacobian in zip(inputs.packing.shapes.values(), (result.jacobian or {}).values()):
        size = math.prod(shape)
        numbers = [fmpq(0)] * (size * count) if jacobian is None else [*_elements(jacobian)]
        for at, row in enumerate(rows):
            row += numbers[at * size : (at + 1) * size]
    return rows


def _with_correlations(scaled: Sequence[Number], place: int, inputs: Quantities) -> Number:
    """The sum, over all inputs, of the scaled sensitivity times the correlation with the input at index `place`."""
    others = inputs.correlations.get(place, {})
    return _sum([scaled[place], *(scaled[other] * shortest_decimal(r) for other, r in others.items())])


def _terms(
    own: Sequence[Number], mixed: Sequence[Number], variance: Number, dof: Sequence[Number], inputs: Quantities
) -> Iterator[Number]:
    """The terms of the Welch-Satterthwaite formula."""
    blocks = [block.places.tolist() for block in inputs.blocks]
    alone = set(range(len(own))).difference(*blocks)
    for places in (*blocks, *([place] for place in sorted(alone))):
        least = min((dof[place] for place in places), key=lambda n: n if n == math.inf else to_float(n))
        if least != math.inf:
            weight = _sum(own[place] * mixed[place] for place in places) / variance
            yield weight * weight / least


def _factor(level: float, freedom: Number) -> Number:
    """The coverage factor of a level, as `coverage_factor` computes it."""
    if is_nan(freedom):
        return freedom
    if type(freedom) is not fmpq and not freedom.is_finite():
        return arb(2).sqrt() * arb(shortest_decimal(level)).erfinv()
    dof = whole_dof(to_float(freedom))
    return _student(arb(coverage_factor(level, dof)), arb(exact(dof)), shortest_decimal(level))


def _student(near: Any, dof: Any, level: Number) -> Any:
    """The k near `near` for which Student's distribution has the probability `level` within ±k.

    Newton's steps double the digits; a last one, of a ball around their result, proves that the ball contains k
    (interval Newton method). The ball is infinite where it does not.
    """
    k = near
    for _ in range(_STEPS):
        k = arb((k - _excess(k, dof, level) / _density(k, dof)).mid())
    around = arb(k, 2 * abs(_excess(k, dof, level) / _density(k, dof)).upper())
    proved = k - _excess(k, dof, level) / _density(around, dof)
    return proved if around.contains_interior(proved) else arb(0, "inf")


def _excess(k: Any, dof: Any, level: Number) -> Any:
    """The probability of Student's distribution within ±k, less the level."""
    square = k * k
    return (square / (dof + square)).beta_lower(arb(1) / 2, dof / 2, True) - arb(level)


def _density(k: Any, dof: Any) -> Any:
    """The derivative of that probability by k: twice the density."""
    beta = (arb(1) / 2).gamma() * (dof / 2).gamma() / ((dof + 1) / 2).gamma()
    return 2 * (1 + k * k / dof) ** (-(dof + 1) / 2) / (dof.sqrt() * beta)


def _sum(numbers: Any) -> Number:
    total = fmpq(0)
    for number in numbers:
        total = total + number
    return total


def _root(number: Number) -> Number:
    """The square root of a variance, which is a ball from 0 on where that of the variance contains 0."""
    if is_nan(number) or (is_exact(number) and number == 0):
        return number
    ball = arb(number)
    return arb(0).union(ball.abs_upper().sqrt()) if ball.contains(0) else ball.sqrt()


def _quotient(deviation: Number, value: Number) -> Number:
    if is_exact(deviation) and deviation == 0:
        return deviation
    if is_exact(value) and value == 0:
        return arb("inf")
    return deviation / value
