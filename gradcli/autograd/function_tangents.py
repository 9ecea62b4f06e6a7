"""Apply a user-defined Function to duals: its `jvp` computes the tangents of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.dual import (
    Dual,
    base_of_tangent,
    check_size,
    forward_enabled,
    give_tangent,
    gives_tangents,
    with_layout_of,
    with_tangent,
)
from gradcli.autograd.function_node import FunctionCtx, among
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError
from gradcli.primitives.entries.arithmetic import zeros_like

_NUMBER = "Function's jvp returned an invalid number of forward gradients (expected {} but got {})"
_CONSTANT = (
    "Function's jvp returned a gradient at position {}, but the corresponding forward output is not a differentiable "
    "Tensor. You should return None at that position instead."
)
_INPLACE = (
    "An inplace custom Function is not {}. If the forward is modifying an input inplace, then the jvp function must "
)
_NOT_INPLACE = _INPLACE.format("modifying the forward mode gradients inplace") + (
    "modify the corresponding gradient inplace."
)
_NOT_THE_SAME = _INPLACE.format("returning the forward mode gradients as-is") + (
    "modify the gradient inplace and return it as-is."
)
_NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
_OTHER_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the {}given grad input."


def apply_to_duals(function: Any, inputs: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The implementation of `apply` for inputs of which some are dual.

    Within `forward` and `jvp`, operations produce no tangents.
    """

    def push(context: FunctionCtx, outputs: Sequence[Any]) -> None:
        _give_tangents(function, context, inputs, outputs)
        # Tensors are saved next, and saved-tensor hooks must see the tangents.
        forward_enabled.set(True)

    if not gives_tangents():
        return function.applied(inputs, keywords)
    token = forward_enabled.set(False)
    try:
        return function.applied(inputs, keywords, push)
    finally:
        forward_enabled.reset(token)


def _give_tangents(function: Any, context: FunctionCtx, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    tangents = [_given(i, context) for i in inputs]
    versions = [None if t is None else t.version for t in tangents]
    context.saved_for_forward = tuple(t._primal() if isinstance(t, Dual) else t for t in context.saved_for_forward)
    context._within_jvp = True
    try:
        returned = function.jvp(context, *tangents)
    finally:
        context._within_jvp = False
    found = returned if isinstance(returned, tuple) else (returned,)
    if len(found) != len(outputs):
        raise DifferentiationError(_NUMBER.format(len(outputs), len(found)))
    for i, (output, tangent) in enumerate(zip(outputs, found)):
        if not isinstance(output, Tensor):
            continue
        if not arrays.is_inexact(output.inner) or among(output, context.non_differentiable):
            if tangent is not None:
                raise DifferentiationError(_CONSTANT.format(i))
        elif tangent is not None:
            check_size(tangent, output)
            if not among(output, context.dirty_tensors):
                _check_view(output, tangent, inputs)
                shared = tangent if output._is_view() or not among(tangent, tangents) else tangent.clone()
                with_tangent(output, with_layout_of(shared, output))
            elif isinstance(output, Dual):
                place = next(j for j, given in enumerate(inputs) if given is output)
                if tangent.version == versions[place]:
                    raise DifferentiationError(_NOT_INPLACE)
                if tangent is not tangents[place]:
                    raise DifferentiationError(_NOT_THE_SAME)
            else:
                give_tangent(output, tangent)


def _given(value: Any, context: FunctionCtx) -> Tensor | None:
    """The tangent of an input; zeros for a floating tensor without one, None if those are not to be materialised."""
    if not isinstance(value, Tensor) or not arrays.is_inexact(value.inner):
        return None
    if isinstance(value, Dual):
        return value.tangent
    return Tensor(zeros_like(value.inner)) if context.materialize_grads else None


def _check_view(output: Tensor, tangent: Tensor, inputs: Sequence[Any]) -> None:
    """Raise DifferentiationError if an output is a view of an input, but its tangent is not a view of that tangent."""
    base = _base(output)
    viewed = next((i for i in inputs if isinstance(i, Dual) and (i is base or _base(i) is base)), None)
    if base is None or viewed is None:
        return
    if tangent._base is None:
        raise DifferentiationError(_NO_VIEW)
    given = viewed.tangent
    if tangent._base is not (given if given._base is None else given._base):
        raise DifferentiationError(_OTHER_VIEW.format("" if given._base is None else "same base as the "))


def _base(x: Tensor) -> Tensor | None:
    return None if x.place is None else base_of_tangent(x.place)
