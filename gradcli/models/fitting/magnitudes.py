"""How large the parameters of a model are likely to be, as its program and the data suggest.

A product is as large as its factors together, terms of a sum are about as large as it is, and what `exp`, `sin` and their
like are applied to is about 1: these are linear equations between logarithms of magnitudes, solved by least squares.
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
# Functions that keep the order of magnitude of what they are applied to.
_KEEPING = frozenset({"negative", "abs", "where", "maximum", "minimum"})
_PRODUCTS = {"multiply": 1.0, "divide": -1.0}
_SUMS = frozenset({"add", "subtract"})
_POWERS = {"sqrt": 0.5, "square": 2.0, "cbrt": 1 / 3, "reciprocal": -1.0}


class Magnitudes(NamedTuple):
    """Of each parameter the decimal logarithm of its size `[p]`, and the range of data that it is added to or subtracted
    from, by its place: it may be a place among them."""

    logarithms: Any
    places: Mapping[int, tuple[float, float]]


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
    known = {name: _logarithm(column) for name, column in problem.columns.items()}
    known |= {name: _logarithm(np.asarray(value)) for name, value in problem.fixed.items()}
    variables = [*program.inputs, *(e.output for e in program.equations)]
    numbers = {v: i for i, v in enumerate(variables)}
    equations = [
        *_rules(program),
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
    logarithms = np.array([by_name.get(name, 0.0) for name in names])
    return Magnitudes(np.clip(logarithms, -30, 30), dict(_places(program, problem)))


def _logarithm(values: Any) -> float:
    """Of the size that is in the middle."""
    np = arrays.numpy_namespace()
    sizes = np.abs(values[values != 0]) if np.ndim(values) else np.abs(np.atleast_1d(values))
    size = float(np.median(sizes)) if sizes.size else 0.0
    return float(np.log10(size)) if size > 0 else 0.0


# The coefficients of logarithms, what their sum is, and how much it counts.
_Rule = tuple[dict[Variable, float], float, float]


def _rules(program: Program) -> Iterator[_Rule]:
    for equation in program.equations:
        yield from _rules_of(equation)


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
    inputs = {v.name or "": v for v in program.inputs}
    columns = {v: problem.columns[name] for name, v in inputs.items() if name in problem.columns}
    parameters = {v: problem.parameters.index(name) for name, v in inputs.items() if name in problem.parameters}
    for equation in program.equations:
        name, operands = equation.primitive.name, equation.inputs
        if name not in _SUMS:
            continue
        for own, other in (operands, operands[::-1]):
            if own in parameters and other in columns:
                ends = sorted(float(f(columns[other])) * (1 if name == "subtract" else -1) for f in (min, max))
                yield parameters[own], (ends[0], ends[1])
