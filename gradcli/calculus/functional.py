"""Jacobians and Hessians of Python functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.factory import tensor
from gradcli.autograd.modes import enable_grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import jacobians, zeros
from gradcli.calculus.higher_orders import derivatives
from gradcli.errors import DifferentiationError, expect_function


def jacobian(function: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobian of `function` at `inputs`, one tensor or a tuple of them.

    For one input a Tensor of shape function(x).shape + x.shape, for a tuple of inputs a tuple of
    such; zeros where the result does not depend on an input. Raises what `function` raises.
    """
    expect_function(function)
    leaves = _leaves(inputs)
    with enable_grad():
        value = function(*leaves)
        found = jacobians(value, leaves)
    filled = tuple(_filled(f, arrays.shape(value) + leaf.shape, leaf) for f, leaf in zip(found, leaves))
    return filled if isinstance(inputs, (list, tuple)) else filled[0]


def hessian(function: Callable[..., Any], inputs: Any) -> Any:
    """The second derivatives of the scalar `function` at `inputs`, one tensor or a tuple of them.

    For one input a Tensor of shape x.shape + x.shape; for a tuple a tuple of rows, the one at
    [i][j] of shape inputs[i].shape + inputs[j].shape. Raises DifferentiationError where the
    result is no scalar.
    """
    expect_function(function)
    leaves = {str(i): leaf for i, leaf in enumerate(_leaves(inputs))}

    def scalar(named: Mapping[str, Any]) -> Any:
        value = function(*named.values())
        if arrays.shape(value):
            raise DifferentiationError(
                f"a Hessian needs a scalar, and the function gives shape {list(arrays.shape(value))}"
            )
        return value

    with enable_grad():
        _, found = derivatives(scalar, {name: leaf.inner for name, leaf in leaves.items()}, 2)
    if not isinstance(inputs, (list, tuple)):
        return _filled(found["0,0"], leaves["0"].shape * 2, leaves["0"])
    return tuple(tuple(_block(found, leaves, i, j) for j in leaves) for i in leaves)


def _leaves(inputs: Any) -> Sequence[Tensor]:
    items = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    return [tensor(i, requires_grad=True) for i in items]


def _filled(found: Any, shape: tuple[int, ...], leaf: Tensor) -> Tensor:
    if found is None:
        return zeros(shape, leaf)
    return found.detach() if isinstance(found, Tensor) else tensor(found)


def _block(found: Mapping[str, Any], leaves: dict[str, Tensor], i: str, j: str) -> Tensor:
    """The second derivatives by inputs i and j; each mixed one was computed once."""
    if int(i) <= int(j):
        return _filled(found[f"{i},{j}"], leaves[i].shape + leaves[j].shape, leaves[i])
    known = _filled(found[f"{j},{i}"], leaves[j].shape + leaves[i].shape, leaves[j])
    first = leaves[j].ndim
    order = (*range(first, known.ndim), *range(first))
    moved: Tensor = known.permute(order) if known.ndim else known
    return moved
