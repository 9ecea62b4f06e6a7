"""Calls of functions with a hand-written derivative, `f(a) = … backward(g) = …`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from gradcli.autograd.function import Function
from gradcli.autograd.modes import current_span, enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.program_derivatives import detach
from gradcli.errors import LimitError
from gradcli.language.interpreter.machine import TOO_DEEP_MESSAGE, Evaluator, Scope, ScopedNode, Task
from gradcli.language.interpreter.values import Closure, Value, as_tensor_or_number
from gradcli.language.syntax import tree


def call(machine: Evaluator, closure: Closure, named: Mapping[str, Value]) -> Task:
    """Call a function with a `backward` clause, with arguments by parameter name, and return its value."""
    node = closure.node
    given = {p.name: as_tensor_or_number(named[p.name], f"'{closure.name}'") for p in node.parameters}
    local = machine.local({name: detach(value) for name, value in given.items()})
    result = yield ScopedNode(node.body, Scope(local, closure.scope, closure.name, closure.own))
    current_span.set(node.body.span)
    gradients = functools.partial(_gradients, machine, closure)
    written = {"result": detach(as_tensor_or_number(result, f"'{closure.name}'")), "gradients": gradients}
    function: type[Function] = type(closure.name, (_HandWritten,), written)
    return function.apply(*given.values())


def _gradients(
    machine: Evaluator, closure: Closure, g: Value, inputs: tuple[Value, ...], wanted: Iterable[bool]
) -> list[Value]:
    """Evaluate the expressions of the `backward` clause, given the arguments (`inputs`) and the cotangent `g`."""
    node = closure.node
    assert isinstance(node, tree.Define)
    assert node.backward is not None
    named = dict(zip((p.name for p in node.parameters), inputs)) | {node.backward.cotangent.name: g}
    # A derivative taken within the clause needs a graph, even where the backward pass records none.
    with enable_grad() if machine.targets else nullcontext():
        scope = Scope(machine.local(named), closure.scope)
        try:
            return [
                machine.drive(_once(ScopedNode(e, scope)), e, scope) if want else None
                for e, want in zip(node.backward.gradients, wanted)
            ]
        except RecursionError:
            raise LimitError(TOO_DEEP_MESSAGE) from None


def _once(frame: ScopedNode) -> Task:
    return as_tensor_or_number((yield frame), "a gradient")


class _HandWritten(Function):
    """A call of a function with a `backward` clause, whose result is already computed."""

    result: Value
    gradients: Callable[[Value, tuple[Value, ...], tuple[bool, ...]], Sequence[Value]]
    generate_vmap_rule = True

    @classmethod
    def forward(cls, ctx: Any, *inputs: Value) -> Value:
        ctx.save_for_backward(*inputs)
        return cls.result if isinstance(cls.result, Tensor) else Tensor(cls.result)

    @classmethod
    def backward(cls, ctx: Any, g: Value) -> Any:
        return tuple(cls.gradients(g, ctx.saved_tensors, ctx.needs_input_grad))
