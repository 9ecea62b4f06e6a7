"""Gradients, Jacobians and derivatives of any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import DifferentiationError
from gradcli.primitives.shape import reshape, stack
from gradcli.taylor import Jet

# The value made of leaves by name, which may be of any kinds.
Function = Callable[[Mapping[str, Any]], Any]


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


def derivatives(function: Function, leaves: Mapping[str, Any], order: int) -> tuple[Any, dict[str, Any]]:
    """The scalar that `function` makes of the arrays `leaves`, and all its derivatives from order 1 to `order`.

    They are keyed by leaves joined with commas; each mixed one is there once, in the order of the
    leaves, and its shape is the leaves' shapes joined. None where the value does not depend on a leaf.

    By one Taylor series where there is one leaf, a number; else, and where something in the
    function has no series, by repeated reverse mode. Raises DifferentiationError for a value that
    is no scalar.
    """
    if order > 1 and [arrays.shape(leaf) for leaf in leaves.values()] == [()]:
        try:
            return _by_expansion(function, next(iter(leaves.items())), order)
        except NotImplementedError:
            pass
    return _by_reverse_mode(function, leaves, order)


def _check_scalar(value: Any) -> None:
    if arrays.shape(value):
        raise DifferentiationError(
            f"derivatives of higher order need a scalar, and the value has shape {list(arrays.shape(value))}",
            hint="sum(…) of it is a scalar",
        )


def _by_expansion(function: Function, leaf: tuple[str, Any], order: int) -> tuple[Any, dict[str, Any]]:
    name, point = leaf
    value = function({name: Jet([point, arrays.ones_like(point)], order)})
    _check_scalar(value)
    while isinstance(value, Tensor):
        value = value.data
    keys = [",".join([name] * k) for k in range(1, order + 1)]
    if not isinstance(value, Jet):
        return value, dict.fromkeys(keys)
    return value.inner, dict(zip(keys, value.derivatives()[1:]))


def _by_reverse_mode(function: Function, leaves: Mapping[str, Any], order: int) -> tuple[Any, dict[str, Any]]:
    tensors = {name: Tensor(array).requires_grad_() for name, array in leaves.items()}
    value = function(tensors)
    _check_scalar(value)
    names = list(leaves)
    known: dict[tuple[int, ...], Any] = {(): value}
    for n in range(1, order + 1):
        for key in itertools.combinations_with_replacement(range(len(names)), n):
            known[key] = _differentiated(known[key[:-1]], tensors[names[key[-1]]], n < order, n == 1)
    return value, {",".join(names[i] for i in key): d for key, d in known.items() if key}


def _differentiated(value: Any, leaf: Tensor, create_graph: bool, first: bool) -> Any:
    if value is None:
        return None
    found = jacobians(value, (leaf,), create_graph=create_graph)[0]
    if found is None and not first:
        # A derivative that is there but does not depend on the leaf is flat.
        return Tensor(arrays.zeros(arrays.shape(value) + leaf.shape, leaf.dtype))
    return found
