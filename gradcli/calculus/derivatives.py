"""Jacobians, Hessians and derivatives of any order, by repeated reverse mode."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.rows import gradients_of_elements
from gradcli.errors import DifferentiationError
from gradcli.primitives.shape import reshape


def gradients(
    value: Any,
    leaves: Sequence[Tensor],
    cotangent: Any = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = True,
) -> tuple[Any, ...]:
    """The gradient of `value` by each leaf, in its shape; None for a leaf it does not depend on."""
    if not isinstance(value, Tensor) or not value.requires_grad or not leaves:
        return (None,) * len(leaves)
    given = None if cotangent is None else [cotangent]
    return grad([value], leaves, given, create_graph=create_graph, retain_graph=retain_graph, allow_unused=True)


def jacobians(value: Any, leaves: Sequence[Tensor], *, create_graph: bool = False) -> tuple[Any, ...]:
    """The Jacobian of `value` by each leaf, of shape value.shape + leaf.shape; None as in `gradients`."""
    shape = arrays.shape(value)
    if not shape:
        return gradients(value, leaves, create_graph=create_graph)
    if 0 in shape:
        return tuple(Tensor(arrays.zeros(shape + leaf.shape, leaf.dtype)) for leaf in leaves)
    if not isinstance(value, Tensor) or not value.requires_grad or not leaves:
        return (None,) * len(leaves)
    found = gradients_of_elements(value, leaves, create_graph=create_graph)
    return tuple(None if f is None else reshape(f, shape + leaf.shape) for f, leaf in zip(found, leaves))


def derivatives(value: Any, leaves: Mapping[str, Tensor], order: int) -> dict[str, Any]:
    """All derivatives of a scalar `value` from order 1 to `order`, keyed by leaves joined with commas.

    Each mixed derivative is there once, in the order of the leaves; its shape is the leaves'
    shapes joined. None where the value does not depend on a leaf.
    """
    if arrays.shape(value):
        raise DifferentiationError(
            f"derivatives of higher order need a scalar, and the value has shape {list(arrays.shape(value))}",
            hint="sum(…) of it is a scalar",
        )
    names = list(leaves)
    known: dict[tuple[int, ...], Any] = {(): value}
    for n in range(1, order + 1):
        for key in itertools.combinations_with_replacement(range(len(names)), n):
            known[key] = _differentiated(known[key[:-1]], leaves[names[key[-1]]], n < order, n == 1)
    return {",".join(names[i] for i in key): d for key, d in known.items() if key}


def _differentiated(value: Any, leaf: Tensor, create_graph: bool, first: bool) -> Any:
    if value is None:
        return None
    found = jacobians(value, (leaf,), create_graph=create_graph)[0]
    if found is None and not first:
        # A derivative that is there but does not depend on the leaf is flat.
        return Tensor(arrays.zeros(arrays.shape(value) + leaf.shape, leaf.dtype))
    return found
