"""Attach the outputs of a user-defined Function to its node."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.function_node import FunctionCtx, FunctionNode, among
from gradcli.autograd.tensor import Tensor
from gradcli.autograd.views import forbid_in_function, note_one_of_several
from gradcli.errors import DifferentiationError
from gradcli.primitives.conversions import reshape

_NOT_RETURNED = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
    "modified inplace must all be outputs of the Function."
)
_SEVERAL = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations)."
)
_NO_INPUT = (
    "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it "
    "to mark_dirty()."
)


def attach(
    outputs: Sequence[Any], inputs: Sequence[Any], context: FunctionCtx, node: FunctionNode | None
) -> tuple[Any, ...]:
    """The outputs in the graph of `node`, or outside of the graph if it is None.

    Values that are not tensors are returned unchanged. A tensor made by `forward` stays the same object; an input
    returned unchanged becomes a view of the input, and an input changed in place stays itself, with the node as its
    history.
    """
    if not all(among(tensor, outputs) for tensor in context.dirty_tensors):
        raise DifferentiationError(_NOT_RETURNED)
    attached = tuple(
        _attached(output, number, len(outputs), inputs, context, node) if isinstance(output, Tensor) else output
        for number, output in enumerate(outputs)
    )
    differentiable = [output for output in attached if isinstance(output, Tensor) and output.grad_fn is not None]
    for output in differentiable if len(differentiable) > 1 else ():
        if output.place is not None and output.place.refusal is not None:
            note_one_of_several(output, output.output_nr)
    return attached


def _attached(
    output: Tensor,
    number: int,
    count: int,
    inputs: Sequence[Any],
    context: FunctionCtx,
    node: FunctionNode | None,
) -> Tensor:
    given, dirty = among(output, inputs), among(output, context.dirty_tensors)
    if not arrays.is_floating(output.inner) or among(output, context.non_differentiable):
        node = None
    if dirty:
        _changed(output, number, count, given, node)
        return output
    if given:
        output = _as_it_is(output)
    elif output.requires_grad and node is None and not output._is_view():
        output = output.detach()
    if node is not None:
        output.move_to(node, number)
    forbid_in_function(output)
    return output


def _changed(tensor: Tensor, number: int, count: int, given: bool, node: FunctionNode | None) -> None:
    """Make the node the history of a tensor that `forward` changed in place."""
    if node is not None:
        tensor._check_recorded(())
        if not given:
            warnings.warn(_NO_INPUT, UserWarning, stacklevel=5)
        if count > 1 and tensor._is_view():
            raise DifferentiationError(_SEVERAL)
    # The data is already changed; this increments the version and notifies the tensors that share it.
    tensor._become(Tensor(tensor.inner) if node is None else Tensor(tensor.inner, node, number))


def _as_it_is(given: Tensor) -> Tensor:
    """A view of a whole input."""
    view = Tensor(given.inner)
    view.made_as_view(given, reshape, {"shape": given.shape})
    return view
