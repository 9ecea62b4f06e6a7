"""Estimates how large the parameters of a model are likely to be, from its program and the data.

A product is as large as its factors together, terms of a sum are about as large as the sum, and arguments of `exp`,
`sin` and the like are about 1: these are linear equations in the logarithms of magnitudes, solved by least squares.
Arguments of `sin` and `cos` may also go through as many periods as the rows can resolve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.models.fitting.problem.problems import Problem
from gradcli.named_tuples import NamedTuple
from gradcli.program.ir import Equation, Program, Variable
from gradcli.program.passes import optimise

# Weights of the equations.
_WEIGHT_EXACT, _WEIGHT_ROUGH, _WEIGHT_WEAK = 3.0, 1.0, 0.1
# A parameter is a frequency where it changes by more than this power of the angle.
_CHANGES = 0.2
# Functions whose value has the order of magnitude of their arguments.
_KEEPING = frozenset({"negative", "abs", "where", "maximum", "minimum"})
_PRODUCTS = {"multiply": 1.0, "divide": -1.0}
_SUMS = frozenset({"add", "subtract"})
_PERIODIC = frozenset({"sin", "cos"})
_POWERS = {"sqrt": 0.5, "square": 2.0, "cbrt": 1 / 3, "reciprocal": -1.0}


class Magnitudes(NamedTuple):
    """The decimal logarithms `[p]` of the likely sizes of the parameters.

    `places` has, by index, those that are added to or subtracted from a column, with the range of that column, as such
    a parameter may be a place among the data. `frequencies` has, by index, frequencies and periods: the size for an
    angle of 1 in the middle of the data, the power of the angle by which they change, and the largest angle.
    """

    logarithms: Any
    places: Mapping[int, tuple[float, float]]
    frequencies: Mapping[int, tuple[float, float, float]] = {}


def magnitudes(problem: Problem, point: Sequence[float]) -> Magnitudes:
    """The likely sizes of the parameters; `point` is one at which the program can be recorded."""
    np = arrays.numpy_namespace()
    try:
        program = optimise(problem.recorded(point).program)
    except GradcliError:
        return Magnitudes(np.zeros(len(problem.parameters)), {})
    logarithms = _solved(
        program, problem, {n: _logarithm(c) for n, c in problem.columns.items()}, [*_rules(program, problem)]
    )
    return Magnitudes(logarithms, dict(_location_parameters(program, problem)), dict(_frequencies(program, problem)))


def _solved(program: Program, problem: Problem, columns: Mapping[str, float], rules: Sequence[_Rule]) -> Any:
    """The logarithms `[p]` of the sizes of the parameters, from those of the columns and the rules."""
    np = arrays.numpy_namespace()
    known = {**columns, **{name: _logarithm(np.asarray(value)) for name, value in problem.fixed.items()}}
    variables = [*program.inputs, *(e.output for e in program.equations)]
    numbers = {v: i for i, v in enumerate(variables)}
    equations = [
        *rules,
        *(
            ({v: 1.0}, known.get(v.name or "", 0.0), _WEIGHT_EXACT if v.name in known else _WEIGHT_WEAK)
            for v in program.inputs
        ),
    ]
    for output in program.outputs[:1]:
        if isinstance(output, Variable):
            equations.append(({output: 1.0}, _logarithm(problem.response), _WEIGHT_EXACT))
    matrix, right = np.zeros((len(equations), len(variables))), np.zeros(len(equations))
    for i, (terms, value, weight) in enumerate(equations):
        for variable, factor in terms.items():
            matrix[i, numbers[variable]] += weight * factor
        right[i] = weight * value
    found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    by_name = {v.name: found[numbers[v]] for v in program.inputs}
    return np.array([by_name.get(name, 0.0) for name in problem.parameters])


def _logarithm(values: Any) -> float:
    """The decimal logarithm of the median size of the values that are not 0; 0 where all are."""
    np = arrays.numpy_namespace()
    sizes = np.abs(values[values != 0]) if np.ndim(values) else np.abs(np.atleast_1d(values))
    size = float(np.median(sizes)) if sizes.size else 0.0
    return float(np.log10(size)) if size > 0 else 0.0


# The coefficients of the logarithms, the value of their linear combination, and the weight of the equation.
_Rule = tuple[dict[Variable, float], float, float]


def _rules(program: Program, problem: Problem) -> Iterator[_Rule]:
    np = arrays.numpy_namespace()
    for equation in program.equations:
        place = _location_parameter(equation, problem)
        if place is None or equation.primitive.name != "subtract":
            yield from _rules_of(equation)
        else:
            # The distance of data from a place among them is unrelated to their distance from 0; a feature there is a
            # fraction of the range of the data.
            own, column = place
            yield {own: 1.0}, _logarithm(problem.columns[column]), _WEIGHT_ROUGH
            yield {equation.output: 1.0}, _logarithm(np.ptp(problem.columns[column]) / 8), _WEIGHT_ROUGH


def _rules_of(equation: Equation) -> Iterator[_Rule]:
    np = arrays.numpy_namespace()
    name, output = equation.primitive.name, equation.output
    operands = equation.inputs
    if name in _PRODUCTS:
        yield _zero_sum_rule([(output, 1.0), (operands[0], -1.0), (operands[1], -_PRODUCTS[name])], _WEIGHT_EXACT)
    elif name in _SUMS or name in _KEEPING:
        for operand in operands:
            yield _zero_sum_rule([(output, 1.0), (operand, -1.0)], _WEIGHT_ROUGH)
    elif name in _POWERS:
        yield _zero_sum_rule([(output, 1.0), (operands[0], -_POWERS[name])], _WEIGHT_EXACT)
    elif name in ("whole_power", "pow"):
        exponent = equation.params.get("exponent", operands[1] if len(operands) > 1 else 1.0)
        if isinstance(exponent, Variable):
            yield {exponent: 1.0}, 0.0, _WEIGHT_ROUGH
        else:
            yield _zero_sum_rule([(output, 1.0), (operands[0], -float(np.real(exponent)))], _WEIGHT_EXACT)
    else:
        # Other functions have arguments and values of about 1.
        for operand in operands:
            if isinstance(operand, Variable):
                yield {operand: 1.0}, 0.0, _WEIGHT_ROUGH
        yield {output: 1.0}, 0.0, _WEIGHT_ROUGH


def _zero_sum_rule(terms: Sequence[tuple[Any, float]], weight: float) -> _Rule:
    """The rule that a linear combination of logarithms, also those of constants, is 0."""
    np = arrays.numpy_namespace()
    found: dict[Variable, float] = {}
    right = 0.0
    for atom, factor in terms:
        if isinstance(atom, Variable):
            found[atom] = found.get(atom, 0.0) + factor
        else:
            right -= factor * _logarithm(np.abs(atom))
    return found, right, weight


def _location_parameters(program: Program, problem: Problem) -> Iterator[tuple[int, tuple[float, float]]]:
    """The indices of parameters that are added to a column or subtracted from it, with the range that they may be
    in."""
    for equation in program.equations:
        place = _location_parameter(equation, problem)
        if place is not None:
            column = problem.columns[place[1]]
            sign = 1 if equation.primitive.name == "subtract" else -1
            ends = sorted(float(f(column)) * sign for f in (min, max))
            yield problem.parameters.index(place[0].name), (ends[0], ends[1])


def _location_parameter(equation: Equation, problem: Problem) -> tuple[Variable, str] | None:
    """The parameter and the name of the column whose sum or difference this equation computes; None where it does
    not."""
    if equation.primitive.name in _SUMS:
        for own, other in (equation.inputs, equation.inputs[::-1]):
            if not isinstance(own, Variable) or not isinstance(other, Variable):
                continue
            if own.name in problem.parameters and other.name in problem.columns:
                return own, other.name or ""
    return None


def _frequencies(program: Program, problem: Problem) -> Iterator[tuple[int, tuple[float, float, float]]]:
    """The parameters on which the number of periods of a sine or cosine among the data depends."""
    np = arrays.numpy_namespace()
    makers = {e.output: e for e in program.equations}
    between: set[Variable] = set()
    terms = [
        term
        for equation in program.equations
        if equation.primitive.name in _PERIODIC
        for term in _terms(equation.inputs[0], makers, between)
    ]
    varying = _varying(program, problem)
    if not varying.intersection(terms):
        return
    # The angle changes by at most π from one row to the next.
    largest = max(float(np.pi * problem.count / 2), 10.0)
    rest = [
        rule
        for equation in program.equations
        if equation.primitive.name not in _PERIODIC and equation.output not in between
        for rule in _rules_of(equation)
    ]
    spreads = {name: _logarithm(np.ptp(column) / 2) for name, column in problem.columns.items()}
    slow, fast = (
        _solved(
            program,
            problem,
            spreads,
            [*rest, *(({t: 1.0}, float(np.log10(angle)) if t in varying else 0.0, _WEIGHT_EXACT) for t in terms)],
        )
        for angle in (1.0, largest)
    )
    powers = (fast - slow) / np.log10(largest)
    for i in np.flatnonzero(np.abs(powers) > _CHANGES).tolist():
        yield i, (float(10 ** np.clip(slow[i], -300, 300)), float(powers[i]), largest)


def _terms(atom: object, makers: Mapping[Variable, Equation], between: set[Variable]) -> list[Variable]:
    """The terms of a sum; the sums that contain them, at all levels, are added to `between`."""
    found: list[Variable] = []
    left = [atom]
    while left:
        one = left.pop()
        if not isinstance(one, Variable):
            continue
        maker = makers.get(one)
        if maker is not None and (maker.primitive.name in _SUMS or maker.primitive.name == "negative"):
            between.add(one)
            left += maker.inputs
        else:
            found.append(one)
    return found


def _varying(program: Program, problem: Problem) -> set[Variable]:
    """The variables that depend on a column."""
    found = {v for v in program.inputs if v.name in problem.columns}
    for equation in program.equations:
        if found.intersection(atom for atom in equation.inputs if isinstance(atom, Variable)):
            found.add(equation.output)
    return found
