"""Recording a program's value and derivatives as a straight-line program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import gradients
from gradcli.errors import pointing_into
from gradcli.evaluate.interpreter import evaluate
from gradcli.evaluate.limits import MAX_STEPS
from gradcli.program.ir import Program
from gradcli.program.record import record
from gradcli.syntax import tree

# What the cotangent is called among the inputs of a recording; no name of the language.
_COTANGENT = "gradient of the value"


class Trace(NamedTuple):
    """A straight-line program whose first output is the value, and the outputs' values at recording.

    `positions` says which output the gradient by each leaf is; None for one that the value does
    not depend on.
    """

    program: Program
    values: tuple[Any, ...]
    positions: dict[str, int | None]


def value_and_gradients(
    program: tree.Program,
    inputs: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    cotangent: Any = None,
    rewrite: bool = True,
    max_steps: int = MAX_STEPS,
) -> Trace:
    """Record the value of `program` for `inputs`, arrays by name, and its gradient by each of `wrt`.

    The `cotangent` of a value that is no scalar is one more input, behind the others. Raises
    NotRecordableError, with the place, where what is computed depends on the numbers of an input,
    and what `evaluate` and `gradients` raise.
    """
    positions: dict[str, int | None] = {}

    def run(**given: Any) -> list[Any]:
        weights = None if cotangent is None else Tensor(given.pop(_COTANGENT))
        leaves = {name: Tensor(value).requires_grad_(name in wrt) for name, value in given.items()}
        with enable_grad():
            value = evaluate(program, leaves, rewrite=rewrite, max_steps=max_steps).value
            found = gradients(value, [leaves[name] for name in wrt], weights, retain_graph=False)
        outputs = [value]
        for name, derivative in zip(wrt, found):
            positions[name] = None if derivative is None else len(outputs)
            outputs += [] if derivative is None else [derivative]
        return outputs

    with pointing_into(program.source, program.body[-1].span):
        traced = record(run, inputs if cotangent is None else {**inputs, _COTANGENT: cotangent})
    return Trace(traced.program, traced.values, positions)
