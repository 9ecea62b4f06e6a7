"""Computes the derivatives of one step by its operands: as formulas, as numbers, or as the rule for tensors."""

from __future__ import annotations

import cmath
import heapq
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gradcli import arrays
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.complex_derivatives import complex_derivatives
from gradcli.calculus.derivatives import gradients
from gradcli.errors import GradcliError
from gradcli.evaluation.explanation.labels import Labels
from gradcli.evaluation.explanation.step_texts import StepTexts, written
from gradcli.evaluation.explanation.units import Unit, Units
from gradcli.formulas.symbolic import derivatives_as_formulas
from gradcli.language.interpreter.run import evaluate
from gradcli.language.interpreter.values import as_numpy
from gradcli.language.syntax import tree
from gradcli.named_tuples import NamedTuple
from gradcli.primitives import table
from gradcli.primitives.operation import Operation

# Relative difference between a formula's number and the run's, beyond which the formula is not shown: stable forms and
# simplification move it by a few roundings.
_TOLERANCE = 1e-6


class LocalDerivative(NamedTuple):
    """The derivative of a step by one of its operands.

    `formula` is None where there is none, then `rule` may say how the gradient `g` of the step is passed on; `value` is
    None unless it is a number or a tensor that is multiplied elementwise.
    """

    by: str
    symbol: str
    formula: str | None
    rule: str | None
    value: Any


class ExplainedRun(Protocol):
    """The run that a step belongs to."""

    units: Units
    labels: Labels
    request: Any

    def local_numbers(self, node: Node) -> Mapping[Any, Any]:
        """The derivatives of a step by its operands, as `pulled_numbers` has them."""

    def values(self, texts: StepTexts) -> Mapping[str, Any]:
        """The values of the operands of a step, by identifier."""


def local_derivatives(node: Node, unit: Unit, run: ExplainedRun, texts: StepTexts) -> list[LocalDerivative]:
    """The derivatives of the result of a step by the steps and leaves that it reads."""
    numbers = run.local_numbers(node)
    formulas = _formulas(unit, run, texts, numbers)
    rules = {} if len(formulas) == len(numbers) else _rules(unit, texts, run.labels.label(node))
    return [
        LocalDerivative(
            run.labels.label(target),
            run.labels.symbol(target),
            formulas.get(target),
            None if target in formulas else rules.get(target),
            None if value is None else as_numpy(value),
        )
        for target, value in numbers.items()
    ]


def pulled_numbers(node: Node, units: Units) -> dict[Any, Any]:
    """The derivatives of a step by its operands; None for those that are not elementwise factors."""
    unit = units.of[node]
    shape = node.shape_of(0)
    elementwise = all(isinstance(n, PrimitiveNode) and n.primitive.elementwise for n in unit.nodes)
    ones = arrays.zeros(shape, arrays.default_dtype()) + 1.0 if shape else 1.0
    pending: dict[Any, Any] = {node: ones}
    queue, found = [-node.sequence], dict[Any, Any]()
    nodes = {n.sequence: n for n in unit.nodes}
    with arrays.quiet():
        while queue:
            current = nodes[-heapq.heappop(queue)]
            wanted = [edge is not None for edge in current.edges]
            pulled = current.pull([pending.pop(current)], wanted, lift=None, guarded=True, mask=None)
            for edge, part in zip(current.edges, pulled):
                if edge is None or part is None:
                    continue
                target = edge[0]
                into = pending if units.of.get(target) is unit else found
                if into is pending and target not in pending:
                    heapq.heappush(queue, -target.sequence)
                into[target] = part if target not in into else into[target] + part
    return {t: v if not shape or (elementwise and arrays.shape(v) == shape) else None for t, v in found.items()}


def _formulas(unit: Unit, run: ExplainedRun, texts: StepTexts, numbers: Mapping[Any, Any]) -> dict[Any, str]:
    """The formulas of a step whose operations are elementwise; only those whose numbers are those of the run."""
    if texts.expression is None or not all(
        isinstance(n, PrimitiveNode) and n.primitive.elementwise for n in unit.nodes
    ):
        return {}
    identifiers = tuple(i for i, source in texts.operands.items() if source in numbers)
    try:
        values = run.values(texts)
        # Formulas for complex numbers are compared with the expression.
        complex_values = {i: v for i, v in values.items() if i in identifiers and arrays.is_complex(v)}
        found = derivatives_as_formulas(texts.expression, complex_values, identifiers)
        at_point = _gradients_of(texts.expression, values, texts.read)
    except (GradcliError, NotImplementedError):
        return {}
    formulas = {}
    for identifier, program in found.derivatives.items():
        target = texts.operands[identifier]
        if _agree(numbers[target], at_point.get(identifier)):
            try:
                formulas[target] = written(program, run.request.language, texts.names())
            except (GradcliError, NotImplementedError):
                continue
    return formulas


def _agree(number: Any, other: Any) -> bool:
    """Return whether a number of the run equals that of the expression; True for anything but numbers."""
    if number is None or other is None or arrays.shape(number) or arrays.shape(other):
        return True
    number, other = complex(as_numpy(number)), complex(as_numpy(other))
    return not cmath.isfinite(number) or cmath.isclose(number, other, rel_tol=_TOLERANCE, abs_tol=1e-300)


def _rules(unit: Unit, texts: StepTexts, label: str) -> dict[Any, str]:
    """The gradient that a step sends to each operand, as the formula in the table with the labels of the operands."""
    operation = _operation(unit)
    if operation is None or unit.folded:
        return {}
    node = unit.event.node
    operands: Sequence[Any] = getattr(node, "arguments", ())
    if isinstance(node, tree.Call):
        operands = tree.positional(node)
    elif isinstance(node, tree.Binary):
        operands = (node.left, node.right)
    elif isinstance(node, (tree.Attribute, tree.Index)):
        operands = (node.value,)
    # In the table, y is the result.
    names = {"y": label} | {p.name: texts.shown(operand) for p, operand in zip(operation.parameters, operands)}
    parts = _split(operation.derivative)
    if len(parts) != len(operation.parameters) or not all(re.search(r"\bg\b|^0$", part) for part in parts):
        parts = [operation.derivative] * len(operands)
    found: dict[Any, str] = {}
    for operand, part in zip(operands, parts):
        target = texts.target(operand)
        if target is not None:
            found.setdefault(target, _renamed(part, names))
    return found


def _operation(unit: Unit) -> Operation | None:
    """The function of the language that a step applies."""
    node = unit.event.node
    if isinstance(node, tree.Call) and (found := table.find(node.name)) is not None:
        return found
    if len(unit.nodes) == 1 and isinstance(unit.nodes[0], PrimitiveNode):
        return unit.nodes[0].primitive
    return None


def _split(derivative: str) -> list[str]:
    """The parts of a formula for each operand."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(derivative):
        depth += (character in "([{") - (character in ")]}")
        if not depth and derivative.startswith(", ", at):
            parts.append(derivative[start:at])
            start = at + 2
    return [*parts, derivative[start:]]


def _renamed(rule: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[^\W\d]\w*", lambda word: names.get(word[0], word[0]), rule)


def _gradients_of(expression: tree.Module, operands: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
    """The derivatives of an expression at the values of its operands; of tensors, those of the sum of its elements."""
    leaves = {name: Tensor(value).requires_grad_() for name, value in operands.items()}
    value = evaluate(expression, {**constants, **leaves}, rewrite=False).value
    if arrays.shape(value):
        return {}
    if arrays.is_complex(value):
        return complex_derivatives(value, leaves, gradients)
    return dict(zip(leaves, gradients(value, [*leaves.values()])))
