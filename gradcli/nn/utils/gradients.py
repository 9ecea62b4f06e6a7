"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.autograd.creation.factory import tensor
from gradcli.autograd.modes import no_grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import EvaluationError
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.shape import stack
from gradcli.primitives.entries.statistics import norm

# Added to the norm as in PyTorch, so that a norm of 0 causes no division by 0.
_OFF_ZERO = 1e-6


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients of parameters so that their joint norm is at most `max_norm`; returns the norm before."""
    held = [parameters] if isinstance(parameters, Tensor) else [*parameters]
    total = get_total_norm([p.grad for p in held if p.grad is not None], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(held, max_norm, total)
    return total


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The norm of tensors concatenated to one vector. With `error_if_nonfinite`, raises RuntimeError if it is not
    finite."""
    parts = [tensors] if isinstance(tensors, Tensor) else [*tensors]
    if not parts:
        return tensor(0.0)
    with no_grad():
        norms = stack([norm(reshape(part, (-1,)), float(norm_type)) for part in parts])
        total: Any = norm(norms, float(norm_type))
    if error_if_nonfinite and not total.isfinite():
        raise EvaluationError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale the gradients of parameters by the factor that reduces `total_norm` to at most `max_norm`."""
    held = [parameters] if isinstance(parameters, Tensor) else [*parameters]
    with no_grad():
        factor = (float(max_norm) / (total_norm + _OFF_ZERO)).clip(max=1.0)
        for parameter in held:
            if parameter.grad is not None:
                parameter.grad.mul_(factor)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clip the elements of the gradients of parameters to ±clip_value."""
    held = [parameters] if isinstance(parameters, Tensor) else [*parameters]
    with no_grad():
        for parameter in held:
            if parameter.grad is not None:
                parameter.grad.clip_(-float(clip_value), float(clip_value))
