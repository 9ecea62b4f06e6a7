"""Detects whether a program takes another execution path within the uncertainties of its inputs than at their
estimates.

Derivatives belong to the path at the estimates: they do not show a comparison that turns out differently nearby, or a
kink or jump there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from gradcli import arrays, limits
from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.node import Node
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError, LimitError, Span
from gradcli.language.interpreter.run import evaluate
from gradcli.language.operations import COMPARE
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.entries.comparisons import equal
from gradcli.primitives.jet_rules import locally_constant

# Distance from its estimate at which an input is probed, in standard uncertainties: within the first are about 95 % of
# a normal distribution; the second is the end of a uniform one.
_NORMAL, _ASSIGNED = 2.0, 3.0**0.5
# With more inputs than this none is probed, as each takes two runs.
_MOST_INPUTS = 50

_COMPARISONS = frozenset(operation.name for operation in COMPARE.values())

# The outcomes of comparisons, kinks and jumps in their order, by span.
Ways = dict[Span, list[Any]]


def other_ways(module: Module, inputs: Quantities, usual: Ways) -> dict[Span, str]:
    """The spans at which the program takes another path than the `usual` one, with the label of an input whose
    uncertainty reaches that."""
    places = arrays.numpy_namespace().flatnonzero(inputs.u).tolist()
    found: dict[Span, str] = {}
    if usual and len(places) <= _MOST_INPUTS:
        # Exceeding the limits here must not keep the program from a result.
        with suppress(LimitError), limits.attempt():
            for place in places:
                for span in _differing(module, inputs, place, usual):
                    found.setdefault(span, inputs.packing.labels()[place])
    return found


def _differing(module: Module, inputs: Quantities, place: int, usual: Ways) -> Iterator[Span]:
    reach = (_ASSIGNED if place in inputs.distributions else _NORMAL) * inputs.u[place]
    for sign in (-1.0, 1.0):
        point = inputs.mean.copy()
        point[place] += sign * reach
        # The program may fail there, which other warnings report.
        with suppress(EvaluationError):
            ways = ways_at(module, inputs, point)[1]
            yield from (span for span in usual if ways.get(span) != usual[span])


def ways_at(module: Module, inputs: Quantities, point: Any) -> tuple[list[Node], Ways]:
    """The operations by which the value depends on the inputs at a point [n], and the execution path there."""
    found: Ways = {}

    def see(span: Span, name: str, _operands: Sequence[Any], result: Any) -> None:
        if name in _COMPARISONS:
            found.setdefault(span, []).append(arrays.tolist(constant(result)))

    varied = {name: Tensor(value).requires_grad_() for name, value in inputs.packing.named(point).items()}
    with enable_grad(), arrays.quiet():
        given = {**inputs.exact, **varied, **inputs.named_exactly}
        nodes = ancestors(evaluate(module, given, observe=see).value)
    for node in nodes:
        if isinstance(node, PrimitiveNode) and node.span is not None and _has_kinks(node):
            found.setdefault(node.span, []).extend(_chosen(node))
    return nodes, found


def _has_kinks(node: PrimitiveNode) -> bool:
    primitive = node.primitive
    return primitive.elementwise and primitive.smooth is not None and primitive.jet is not locally_constant


def _chosen(node: PrimitiveNode) -> Iterator[Any]:
    """Which operands the result is equal to, as for `abs` the operand where that is positive."""
    operands = [constant(operand) for operand in node.operands]
    result = bind(node.primitive, operands, node.params)
    for operand in operands:
        yield arrays.tolist(equal(result, operand))
