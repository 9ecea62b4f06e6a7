"""Finds the detached numbers of a recorded gradient: those that depend on its leaves but are constants to further
derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import NotRecordableError
from gradcli.executors import stepwise
from gradcli.program.ir import Program, Variable
from gradcli.program.passes import without_dead_code
from gradcli.program.record import Recorded

# Input names of detached numbers. The space keeps them apart from the names of the language.
_NAME = "detached {}"


def detached_variables(values: Sequence[Any], leaves: Sequence[Tensor]) -> tuple[Variable, ...]:
    """Return the variables that the gradients of `values` by `leaves`, while being recorded, treat as constants.

    Raises NotRecordableError where such a variable is also differentiated through another use.
    """
    constants: dict[Variable, None] = {}
    attached = {variable for leaf in leaves for variable in _variables(leaf.inner)}
    for node in ancestors(*values):
        if not isinstance(node, PrimitiveNode):
            continue
        attached.update(_variables(node.result))
        for edge, kept in zip(node.edges, node.saved or ()):
            if isinstance(kept, Tensor) and kept.requires_grad:
                attached.update(_variables(kept.inner))
            elif edge is None:
                constants |= dict.fromkeys(_variables(kept.inner if isinstance(kept, Tensor) else kept))
    if not attached.isdisjoint(constants):
        raise NotRecordableError("what is detached here is differentiated elsewhere, so it cannot be recorded")
    return tuple(constants)


def _variables(value: Any) -> Sequence[Variable]:
    return [value.variable] if isinstance(value, Recorded) else []


class SplitGradient(NamedTuple):
    """A gradient that takes its detached variables as inputs, and the program that computes them (None: no such
    variables)."""

    gradient: Program
    detached: Program | None

    def given(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of the gradient by name, computed from the inputs of the program."""
        if self.detached is None:
            return dict(inputs)
        found = stepwise.run(self.detached, [inputs[v.name or ""] for v in self.detached.inputs])
        assert found is not None
        return {**inputs, **{_NAME.format(i): number for i, number in enumerate(found)}}


def separated(gradient: Program, detached: Sequence[Variable]) -> SplitGradient:
    """Split a recorded gradient into the gradient proper and the program of its detached variables."""
    made = {equation.output for equation in gradient.equations}
    detached = [variable for variable in detached if variable in made]
    if not detached:
        return SplitGradient(gradient, None)
    named = {v: Variable(v.shape, v.dtype, _NAME.format(i)) for i, v in enumerate(detached)}
    equations = tuple(
        e._replace(inputs=tuple(named.get(atom, atom) if isinstance(atom, Variable) else atom for atom in e.inputs))
        for e in gradient.equations
    )
    outputs = tuple(named.get(atom, atom) if isinstance(atom, Variable) else atom for atom in gradient.outputs)
    rest = gradient._replace(inputs=(*gradient.inputs, *named.values()), equations=equations, outputs=outputs)
    return SplitGradient(
        without_dead_code(rest), without_dead_code(gradient._replace(outputs=tuple(detached), guards=()))
    )
