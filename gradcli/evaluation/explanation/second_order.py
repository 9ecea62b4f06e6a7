"""Explains second derivatives: what each step adds, by the chain rule of order two along the steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from gradcli import arrays
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import DifferentiationError, GradcliError
from gradcli.evaluation.explanation import local_derivatives
from gradcli.evaluation.explanation.step_texts import StepTexts, written
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.language.interpreter.run import evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.named_tuples import NamedTuple


class StepCurvature(NamedTuple):
    """A second derivative of a step by two of its operands, as a formula and as a number."""

    by: tuple[str, str]
    symbols: tuple[str, str]
    formula: str
    value: float


class DerivativeFactor(NamedTuple):
    """A derivative: a `local` one of a step by its operands, or one by inputs."""

    local: bool
    of: str
    by: tuple[str, ...]


class SecondTerm(NamedTuple):
    """A product that a second derivative of a step is the sum of: the factors with their numbers, and their product."""

    factors: Sequence[tuple[DerivativeFactor, float]]
    value: float


class SecondStep(NamedTuple):
    """The derivatives of a step by the inputs: the first by each of the two, and the second."""

    symbol: str
    first: tuple[float, float]
    value: float
    curvatures: Sequence[StepCurvature]
    terms: Sequence[SecondTerm]


class SecondDerivative(NamedTuple):
    """A second derivative of the value by the inputs `by`, as in `x,q`, and the steps that it takes."""

    by: str
    symbols: tuple[str, str]
    value: Any
    steps: Sequence[SecondStep]


class SecondOrderRun(local_derivatives.ExplainedRun, Protocol):
    """The run whose second derivatives are explained."""

    value: Any

    @property
    def shown(self) -> Sequence[Node]:
        """The operations that are steps, in order."""

    @property
    def leaves(self) -> Mapping[str, Tensor]:
        """The inputs."""

    def texts(self, node: Node) -> StepTexts:
        """The value that a step computed."""


def second_derivatives(run: SecondOrderRun, wrt: Sequence[str]) -> list[SecondDerivative]:
    """The second derivatives of the value by each two of the inputs.

    Raises DifferentiationError where a step is not a formula of numbers.
    """
    steps = [_locals(run, node) for node in run.shown]
    pairs = itertools.combinations_with_replacement(wrt, 2)
    return [_along(run, steps, pair) for pair in pairs]


class _Locals(NamedTuple):
    """A step with its first and second derivatives by its operands, as numbers and formulas."""

    node: Node
    first: Mapping[Any, float]
    second: Mapping[tuple[Any, Any], float]
    formulas: Mapping[tuple[Any, Any], str]


def _locals(run: SecondOrderRun, node: Node) -> _Locals:
    texts = run.texts(node)
    first = run.local_numbers(node)
    numbers = not node.shape_of(0) and all(v is not None and not arrays.shape(v) for v in first.values())
    if texts.expression is None or not numbers:
        raise DifferentiationError(
            "--order 2 explains formulas of numbers, and this step is none",
            hint="gradcli eval --order 2 computes the derivatives",
            span=run.units.of[node].event.node.span,
            source=run.request.program.source,
        )
    names = [*texts.operands]
    leaves = {name: Tensor(value).requires_grad_() for name, value in run.values(texts).items()}
    value = evaluate(texts.expression, {**texts.read, **leaves}, rewrite=False).value
    slopes = dict(zip(names, gradients(value, [*leaves.values()], create_graph=True)))
    second = {}
    for (a, slope), b in itertools.product(slopes.items(), names):
        (found,) = gradients(slope, [leaves[b]])
        second[texts.operands[a], texts.operands[b]] = 0.0 if found is None else float(as_numpy(found))
    return _Locals(node, {t: float(as_numpy(v)) for t, v in first.items()}, second, _formulas(run, texts, names))


def _formulas(run: SecondOrderRun, texts: StepTexts, names: Sequence[str]) -> dict[tuple[Any, Any], str]:
    assert texts.expression is not None
    try:
        found = derivatives_as_formulas(texts.expression, {}, names, 2).derivatives
        return {
            (texts.operands[a], texts.operands[b]): written(program, run.request.language, texts.names())
            for key, program in found.items()
            for a, b in [key.split(",")]
        }
    except (GradcliError, NotImplementedError):
        return {}


def _along(run: SecondOrderRun, steps: Sequence[_Locals], pair: tuple[str, str]) -> SecondDerivative:
    """The chain rule of order two, from the inputs to the value."""
    slopes: dict[str, dict[Any, float]] = {name: {run.leaves[name]: 1.0} for name in pair}
    second: dict[Any, float] = {}
    shown = []
    symbols = (run.labels.symbol(run.leaves[pair[0]]), run.labels.symbol(run.leaves[pair[1]]))
    for step in steps:
        for name in dict.fromkeys(pair):
            slopes[name][step.node] = sum(f * slopes[name].get(t, 0.0) for t, f in step.first.items())
        terms = [*_terms(run, step, pair, symbols, slopes, second)]
        second[step.node] = sum(term.value for term in terms)
        curvatures = [
            StepCurvature(
                (run.labels.label(a), run.labels.label(b)),
                (run.labels.symbol(a), run.labels.symbol(b)),
                formula,
                step.second[a, b],
            )
            for (a, b), formula in step.formulas.items()
            if _counts(slopes, pair, a, b)
        ]
        first = (slopes[pair[0]][step.node], slopes[pair[1]][step.node])
        shown.append(SecondStep(run.labels.symbol(step.node), first, second[step.node], curvatures, terms))
    last = run.value.grad_fn or run.value
    return SecondDerivative(",".join(pair), symbols, second.get(last, 0.0), shown)


def _counts(slopes: Mapping[str, Mapping[Any, float]], pair: tuple[str, str], a: Any, b: Any) -> bool:
    """Return whether a second derivative by two operands enters that by the inputs."""
    one, other = slopes[pair[0]], slopes[pair[1]]
    return (a in one and b in other) or (b in one and a in other)


def _terms(
    run: SecondOrderRun,
    step: _Locals,
    pair: tuple[str, str],
    symbols: tuple[str, str],
    slopes: Mapping[str, Mapping[Any, float]],
    second: Mapping[Any, float],
) -> Iterator[SecondTerm]:
    own = run.labels.symbol(step.node)
    one, other = slopes[pair[0]], slopes[pair[1]]
    for (a, b), curvature in step.second.items():
        if curvature and one.get(a) and other.get(b):
            factors: list[tuple[DerivativeFactor, float]] = [
                (DerivativeFactor(True, own, (run.labels.symbol(a), run.labels.symbol(b))), curvature)
            ]
            for operand, along, by, slope in ((a, pair[0], symbols[0], one[a]), (b, pair[1], symbols[1], other[b])):
                if operand is not run.leaves[along]:
                    factors.append((DerivativeFactor(False, run.labels.symbol(operand), (by,)), slope))
            yield SecondTerm(factors, curvature * one[a] * other[b])
    for operand, slope in step.first.items():
        if slope and second.get(operand):
            yield SecondTerm(
                [
                    (DerivativeFactor(True, own, (run.labels.symbol(operand),)), slope),
                    (DerivativeFactor(False, run.labels.symbol(operand), symbols), second[operand]),
                ],
                slope * second[operand],
            )
