"""Transformations of Python functions with the names and behaviour of `torch.func`, and `flatten` for containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.calculus.functions.composable_transforms import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from gradcli.calculus.functions.flattening import flatten
from gradcli.calculus.functions.mapping import vmap

if TYPE_CHECKING:
    from gradcli.nn.stateless_calls import functional_call, stack_module_state

__all__ = [
    "flatten",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    # Imported on first access, as only programs with modules need it.
    if name not in ("functional_call", "stack_module_state"):
        raise AttributeError(f"module 'gradcli.func' has no attribute {name!r}")
    from gradcli.nn import stateless_calls

    return getattr(stateless_calls, name)
