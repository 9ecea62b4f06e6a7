"""Gradients by complex arguments in the convention of JAX and HIPS autograd: dL/da - i*dL/db for z = a + i*b.

Those of `composable_transforms` are PyTorch's, their conjugates. For real arguments both are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.node import conjugated
from gradcli.calculus.functions import composable_transforms
from gradcli.calculus.functions.pytrees import mapped
from gradcli.primitives.operators import operand

Function = Callable[..., Any]


def grad(function: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """`composable_transforms.grad` in this convention."""
    found = composable_transforms.grad(function, argnums, has_aux)

    def gradient(*arguments: Any, **keywords: Any) -> Any:
        slopes = found(*arguments, **keywords)
        return (_all(slopes[0]), slopes[1]) if has_aux else _all(slopes)

    return gradient


def grad_and_value(function: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """`composable_transforms.grad_and_value` in this convention."""
    found = composable_transforms.grad_and_value(function, argnums, has_aux)

    def both(*arguments: Any, **keywords: Any) -> Any:
        gradient, value = found(*arguments, **keywords)
        return _all(gradient), value

    return both


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """`composable_transforms.vjp` in this convention, of the cotangents that are given and found."""
    value, pull, *aux = composable_transforms.vjp(function, *primals, has_aux=has_aux)
    return value, lambda *cotangents: _all(pull(*_all(cotangents))), *aux


def _all(values: Any) -> Any:
    return mapped(lambda x: conjugated(operand(x)), values)
