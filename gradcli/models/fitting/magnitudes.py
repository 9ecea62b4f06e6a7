"""How large the parameters of a model are likely to be, as its program and the data suggest.

A product is as large as its factors together, terms of a sum are about as large as it is, and what `exp`, `sin` and their
like are applied to is about 1: these are linear equations between logarithms of magnitudes, solved by least squares. What
`sin` and `cos` are applied to may also go through as many periods as the rows can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.errors import GradcliError
from gradcli.models.fitting.problems import Problem
from gradcli.program.ir import Equation, Program, Variable
from gradcli.program.passes import optimise
from gradcli.run.trace import row_derivatives

# How much each kind of equation counts.
_EXACT, _ABOUT, _HARDLY = 3.0, 1.0, 0.1
# A frequency changes by more than this power of the angle.
_CHANGES = 0.2
# Functions that keep the order of magnitude of what they are applied to.
_KEEPING = frozenset({"negative", "abs", "where", "maximum", "minimum"})
_PRODUCTS = {"multiply": 1.0, "divide": -1.0}
_SUMS = frozenset({"add", "subtract"})
_PERIODIC = frozenset({"sin", "cos"})
_POWERS = {"sqrt": 0.5, "square": 2.0, "cbrt": 1 / 3, "reciprocal": -1.0}


class Magnitudes(NamedTuple):
    """Of each parameter the decimal logarithm of its size `[p]`, and by its place the range of data that it is added to or
    subtracted from, for it may be a place among them, and, where it is a frequency or a period, its size for an angle of 1
    in the middle of the data, the power of the angle by which it changes, and the largest angle."""

    logarithms: Any
    places: Mapping[int, tuple[float, float]]
    frequencies: Mapping[int, tuple[float, float, float]] = {}


def magnitudes(problem: Problem, point: Sequence[float]) -> Magnitudes:
    """Those of the parameters; `point` is one at which the program can be recorded."""
    np = arrays.numpy_namespace()
    names = problem.parameters
    row = {name: column[0] for name, column in problem.columns.items()}
    inputs = {**row, **problem.fixed, **dict(zip(names, map(float, point)))}
    try:
        with arrays.using_namespace(None):
            program = optimise(row_derivatives(problem.model, inputs, {}, (), 0, apart=False).program)
    except GradcliError:
        return Magnitudes(np.zeros(len(names)), {})
    logarithms = _solved(
        program, problem, {n: _logarithm(c) for n, c in problem.columns.items()}, [*_rules(program, problem)]
    )
    return Magnitudes(logarithms, dict(_places(program, problem)), dict(_frequencies(program, problem)))


def _solved(program: Program, problem: Problem, columns: Mapping[str, float], rules: Sequence[_Rule]) -> Any:
    """The logarithms of the parameters `[p]`, where those of the columns are known."""
    np = arrays.numpy_namespace()
    known = {**columns, **{name: _logarithm(np.asarray(value)) for name, value in problem.fixed.items()}}
    variables = [*program.inputs, *(e.output for e in program.equations)]
    numbers = {v: i for i, v in enumerate(variables)}
    equations = [
        *rules,
        *(({v: 1.0}, known.get(v.name or "", 0.0), _EXACT if v.name in known else _HARDLY) for v in program.inputs),
    ]
    for output in program.outputs[:1]:
        if isinstance(output, Variable):
            equations.append(({output: 1.0}, _logarithm(problem.response), _EXACT))
    matrix, right = np.zeros((len(equations), len(variables))), np.zeros(len(equations))
    for i, (terms, value, weight) in enumerate(equations):
        for variable, factor in terms.items():
            matrix[i, numbers[variable]] += weight * factor
        right[i] = weight * value
    found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    by_name = {v.name: found[numbers[v]] for v in program.inputs}
    return np.array([by_name.get(name, 0.0) for name in problem.parameters])


def _logarithm(values: Any) -> float:
    """Of the size that is in the middle."""
    np = arrays.numpy_namespace()
    sizes = np.abs(values[values != 0]) if np.ndim(values) else np.abs(np.atleast_1d(values))
    size = float(np.median(sizes)) if sizes.size else 0.0
    return float(np.log10(size)) if size > 0 else 0.0


# The coefficients of logarithms, what their sum is, and how much it counts.
_Rule = tuple[dict[Variable, float], float, float]


def _rules(program: Program, problem: Problem) -> Iterator[_Rule]:
    np = arrays.numpy_namespace()
    for equation in program.equations:
        place = _place(equation, problem)
        if place is None or equation.primitive.name != "subtract":
            yield from _rules_of(equation)
        else:
            # How far data are from a place among them has nothing to do with how far they are from 0. What happens there
            # is a part of what the data show.
            own, column = place
            yield {own: 1.0}, _logarithm(problem.columns[column]), _ABOUT
            yield {equation.output: 1.0}, _logarithm(np.ptp(problem.columns[column]) / 8), _ABOUT


def _rules_of(equation: Equation) -> Iterator[_Rule]:
    name, output = equation.primitive.name, equation.output
    operands = equation.inputs
    if name in _PRODUCTS:
        yield _sum([(output, 1.0), (operands[0], -1.0), (operands[1], -_PRODUCTS[name])], _EXACT)
    elif name in _SUMS or name in _KEEPING:
        for operand in operands:
            yield _sum([(output, 1.0), (operand, -1.0)], _ABOUT)
    elif name in _POWERS:
        yield _sum([(output, 1.0), (operands[0], -_POWERS[name])], _EXACT)
    elif name in ("whole_power", "pow"):
        exponent = equation.params.get("exponent", operands[1] if len(operands) > 1 else 1.0)
        if isinstance(exponent, Variable):
            yield {exponent: 1.0}, 0.0, _ABOUT
        else:
            yield _sum([(output, 1.0), (operands[0], -float(exponent))], _EXACT)
    else:
        # What is applied to numbers of about 1, and gives such.
        for operand in operands:
            if isinstance(operand, Variable):
                yield {operand: 1.0}, 0.0, _ABOUT
        yield {output: 1.0}, 0.0, _ABOUT


def _sum(terms: Sequence[tuple[Any, float]], weight: float) -> _Rule:
    """The rule that a sum of logarithms is 0, of those of constants too."""
    np = arrays.numpy_namespace()
    found: dict[Variable, float] = {}
    right = 0.0
    for atom, factor in terms:
        if isinstance(atom, Variable):
            found[atom] = found.get(atom, 0.0) + factor
        else:
            right -= factor * _logarithm(np.asarray(atom, "float64"))
    return found, right, weight


def _places(program: Program, problem: Problem) -> Iterator[tuple[int, tuple[float, float]]]:
    """Parameters that are added to a column or subtracted from it, by their places, with the range that they may be in."""
    for equation in program.equations:
        place = _place(equation, problem)
        if place is not None:
            column = problem.columns[place[1]]
            sign = 1 if equation.primitive.name == "subtract" else -1
            ends = sorted(float(f(column)) * sign for f in (min, max))
            yield problem.parameters.index(place[0].name), (ends[0], ends[1])


def _place(equation: Equation, problem: Problem) -> tuple[Variable, str] | None:
    """The parameter and the name of the column of which this is the sum or the difference, if it is one."""
    if equation.primitive.name in _SUMS:
        for own, other in (equation.inputs, equation.inputs[::-1]):
            if not isinstance(own, Variable) or not isinstance(other, Variable):
                continue
            if own.name in problem.parameters and other.name in problem.columns:
                return own, other.name or ""
    return None


def _frequencies(program: Program, problem: Problem) -> Iterator[tuple[int, tuple[float, float, float]]]:
    """Parameters on which it depends how many periods of a sine or cosine there are among the data."""
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
    # An angle changes by π from a row to the next at most.
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
            [*rest, *(({t: 1.0}, float(np.log10(angle)) if t in varying else 0.0, _EXACT) for t in terms)],
        )
        for angle in (1.0, largest)
    )
    powers = (fast - slow) / np.log10(largest)
    for i in np.flatnonzero(np.abs(powers) > _CHANGES).tolist():
        yield i, (float(10 ** np.clip(slow[i], -300, 300)), float(powers[i]), largest)


def _terms(atom: object, makers: Mapping[Variable, Equation], between: set[Variable]) -> list[Variable]:
    """The terms of a sum, and the sums that they are part of, added to `between`."""
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
    """What depends on a column."""
    found = {v for v in program.inputs if v.name in problem.columns}
    for equation in program.equations:
        if found.intersection(atom for atom in equation.inputs if isinstance(atom, Variable)):
            found.add(equation.output)
    return found
