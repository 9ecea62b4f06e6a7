"""Calls Python functions on fresh leaf tensors, so that only their own operations are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.dual import Dual, with_tangent
from gradcli.autograd.engine import grad as gradients_of
from gradcli.autograd.modes import enable_grad, grad_enabled
from gradcli.autograd.node import next_sequence
from gradcli.autograd.targets import reaches_earlier
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions import pytrees
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import CallError, expect
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.bind import primal_and_tangents
from gradcli.primitives.entries.arithmetic import zeros_like

Callback = Callable[..., Any]


class FunctionCall(NamedTuple):
    """The result of a function call, and the tensors that it can be differentiated by."""

    value: Any
    inputs: Sequence[Tensor]
    aux: Any
    # Whether the value also depends on outer tensors, so that its derivatives must be differentiable.
    recorded: bool

    def released(self, value: Any) -> Any:
        """A result without its graph, where the graph was needed only for derivatives of the call."""
        return value if self.recorded else pytrees.mapped(_detached, value)


def called(function: Callback, arguments: Sequence[Any], has_aux: bool) -> FunctionCall:
    """Call `function` on tensors that replace its arguments, so that only its own operations are differentiated."""
    outside, began = grad_enabled.get(), next_sequence()
    with enable_grad():
        inputs = [_fresh_leaf(as_tensor(x), outside) for x in pytrees.leaves(arguments)]
        returned = function(*pytrees.unflatten(arguments, inputs))
    value, aux = with_aux(returned) if has_aux else (returned, None)
    recorded = outside and reaches_earlier(tensors_in(value), began)
    return FunctionCall(value, inputs, aux, recorded)


def _fresh_leaf(x: Tensor, recorded: bool) -> Tensor:
    """A tensor with the numbers of `x`; it depends on `x` where the outer computation is recorded."""
    if recorded and x.requires_grad:
        return x.clone()
    return _with_tangent_of(x, Tensor(x.inner).requires_grad_())


def pulled(
    call: FunctionCall, values: Sequence[Tensor], seeds: Sequence[Tensor] | None, **options: bool
) -> list[Tensor]:
    """Like `gradients`, with zeros where the values do not depend on an input."""
    found = gradients(call, values, seeds, **options)
    return [zeros_like(Tensor(x.inner)) if g is None else g for g, x in zip(found, call.inputs)]


def gradients(
    call: FunctionCall,
    values: Sequence[Tensor],
    seeds: Sequence[Tensor] | None,
    *,
    create_graph: bool,
    retain_graph: bool = True,
) -> Sequence[Tensor | None]:
    """Return the gradients of `values` by the inputs of a call; None where they do not depend on an input."""
    depending = [i for i, value in enumerate(values) if value.requires_grad]
    if not depending or not call.inputs:
        return [None] * len(call.inputs)
    return gradients_of(
        [values[i] for i in depending],
        [*call.inputs],
        None if seeds is None else [seeds[i] for i in depending],
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=True,
    )


def with_aux(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise CallError("with has_aux, the function returns a tuple of what is differentiated and of anything else")
    return returned


def tensors_in(value: Any) -> list[Tensor]:
    found = pytrees.leaves(value)
    for leaf in found:
        expect(leaf, Tensor, "what is differentiated returns tensors, and containers of them")
    return found


def _detached(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    # Keep the tangents that a value carries in forward mode.
    carries = len(primal_and_tangents(leaf.inner)) > 1
    return _with_tangent_of(leaf, Tensor(leaf.inner) if carries else leaf.detach())


def _with_tangent_of(x: Tensor, made: Tensor) -> Tensor:
    return with_tangent(made, x.tangent) if isinstance(x, Dual) else made
