"""Gradients and Jacobians."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.tensor import Tensor
from gradcli.primitives.shape import reshape, stack


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
    rows = [gradients(value, leaves, unit, create_graph=create_graph) for unit in _units(value)]
    return tuple(_joined([row[i] for row in rows], shape, leaf) for i, leaf in enumerate(leaves))


def _units(value: Any) -> Any:
    """The cotangents that pick one element each."""
    xp = arrays.numpy_namespace()
    shape = arrays.shape(value)
    for position in itertools.product(*map(range, shape)):
        unit = xp.zeros(shape, value.dtype)
        unit[position] = 1.0
        yield unit


def _joined(rows: Sequence[Any], shape: tuple[int, ...], leaf: Tensor) -> Any:
    if all(row is None for row in rows):
        return None if rows else Tensor(arrays.numpy_namespace().zeros(shape + leaf.shape, leaf.dtype))
    whole = [Tensor(arrays.zeros_like(leaf.data)) if row is None else row for row in rows]
    return reshape(stack(whole), shape + leaf.shape)
