"""Checks that the results of a function depend on its inputs, as the `strict` options require."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from gradcli.autograd.tensor import Tensor
from gradcli.calculus.function_calls import Callback, called, gradients, tensors_in
from gradcli.errors import DifferentiationError
from gradcli.primitives.entries.arithmetic import ones_like

_NO_GRADIENTS = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
_INDEPENDENT = "{} of the user-provided function is independent of input {}. This is not allowed in strict mode{}."
_LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
    "example)."
)


def check_dependence(
    function: Callback, points: Sequence[Tensor], create_graph: bool, *, second: bool = False, each: bool = False
) -> None:
    """Raise DifferentiationError where the value of `function` does not depend on every point.

    With `each`, every result must depend on every point; with `second`, the gradient must too; with `create_graph`, the
    highest of these derivatives must not be constant.
    """
    call = called(function, points, False)
    values = tensors_in(call.value)
    for i, value in enumerate(values):
        if not value.requires_grad:
            raise DifferentiationError(_NO_GRADIENTS.format(i))
    slopes: list[Tensor] = []
    for i, group in enumerate([[value] for value in values] if each else [values]):
        seeds = [ones_like(value).detach() for value in group]
        for j, found in enumerate(gradients(call, group, seeds, create_graph=True)):
            if found is None:
                _refuse(f"Output {i}" if each else "The output", j)
            if create_graph and not second and not found.requires_grad:
                _refuse("The jacobian", j, " when create_graph=True")
            slopes.append(found)
    if not second:
        return
    for j, slope in enumerate(slopes):
        if not slope.requires_grad:
            raise DifferentiationError(_LINEAR.format(j))
    seeds = [ones_like(slope).detach() for slope in slopes]
    for j, found in enumerate(gradients(call, slopes, seeds, create_graph=True)):
        if found is None:
            _refuse("The jacobian", j)
        if create_graph and not found.requires_grad:
            _refuse("The hessian", j, " when create_graph=True")


def _refuse(what: str, place: int, when: str = "") -> NoReturn:
    raise DifferentiationError(_INDEPENDENT.format(what, place, when))
