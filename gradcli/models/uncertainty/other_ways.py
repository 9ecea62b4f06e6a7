"""Whether a program goes another way within the uncertainties of its inputs than at their estimates.

Its derivatives are those of the way at the estimates: of a comparison that turns out differently nearby, or of a kink or a
jump there, they know nothing.
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
from gradcli.language.interpreter import evaluate
from gradcli.language.operations import COMPARE
from gradcli.language.syntax.tree import Module
from gradcli.models.uncertainty.input_quantities import Quantities
from gradcli.primitives.bind import bind, constant
from gradcli.primitives.comparisons import equal
from gradcli.primitives.series import locally_constant

# How far from its estimate an input is looked at, in standard uncertainties: about 95 % of what is normal is nearer; a
# uniform distribution ends at the other.
_NORMAL, _ASSIGNED = 2.0, 3.0**0.5
# Of more inputs none is looked at: each takes two runs.
_MOST_INPUTS = 50

_COMPARISONS = frozenset(operation.name for operation in COMPARE.values())

# By the places of comparisons, kinks and jumps what these chose, in their order.
Ways = dict[Span, list[Any]]


def other_ways(module: Module, inputs: Quantities, usual: Ways) -> dict[Span, str]:
    """Where the program goes another way than the `usual` one, and the inputs, one for each place, with whose uncertainty
    it does."""
    places = arrays.numpy_namespace().flatnonzero(inputs.u).tolist()
    found: dict[Span, str] = {}
    if usual and len(places) <= _MOST_INPUTS:
        # What they cost is not to keep the program from a result.
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
        # There may be no value there, which is said of samples.
        with suppress(EvaluationError):
            ways = ways_at(module, inputs, point)[1]
            yield from (span for span in usual if ways.get(span) != usual[span])


def ways_at(module: Module, inputs: Quantities, point: Any) -> tuple[list[Node], Ways]:
    """The operations by which the value depends on the inputs at a point [n], and the way that the program goes there."""
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
    """Which of its operands the result is equal to, as that of `abs` is to what is above 0."""
    operands = [constant(operand) for operand in node.operands]
    result = bind(node.primitive, operands, node.params)
    for operand in operands:
        yield arrays.tolist(equal(result, operand))
