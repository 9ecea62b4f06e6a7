"""Computes gradients and Jacobians of tensors with a graph, by reverse mode."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.tensor import Tensor
from gradcli.primitives.bind import assume
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.comparisons import isfinite


def gradients(
    value: Any,
    leaves: Sequence[Tensor],
    cotangent: Any = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = True,
) -> tuple[Any, ...]:
    """Return the gradient of `value` by each leaf, in the shape of the leaf; None for a leaf that it does not depend
    on."""
    if not isinstance(value, Tensor) or not value.requires_grad or not leaves:
        return (None,) * len(leaves)
    given = None if cotangent is None else [cotangent]
    return grad([value], leaves, given, create_graph=create_graph, retain_graph=retain_graph, allow_unused=True)


def jacobians(value: Any, leaves: Sequence[Tensor], *, create_graph: bool = False) -> tuple[Any, ...]:
    """Return the Jacobian of `value` by each leaf, of shape value.shape + leaf.shape; None as in `gradients`."""
    shape = arrays.shape(value)
    if not shape:
        return gradients(value, leaves, create_graph=create_graph)
    # Loaded on demand: most values are numbers.
    from gradcli.calculus.rows import check_axes, gradients_of_elements

    check_axes(len(shape) + max((len(leaf.shape) for leaf in leaves), default=0))
    if 0 in shape:
        return tuple(zeros(shape + leaf.shape, leaf) for leaf in leaves)
    if not isinstance(value, Tensor) or not value.requires_grad or not leaves:
        return (None,) * len(leaves)
    found = gradients_of_elements(value, leaves, create_graph=create_graph)
    return tuple(None if f is None else reshape(f, shape + leaf.shape) for f, leaf in zip(found, leaves))


def repeated(value: Any, leaves: Mapping[str, Tensor], order: int) -> dict[str, Any]:
    """Return all derivatives of a value up to an order, by repeated reverse mode.

    They are keyed by leaves joined with commas, each mixed one once; None where the value does not depend on a leaf.
    """
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
        # The value depends on the leaf, and its derivative does not: the next derivative is zero.
        return zeros(arrays.shape(value) + leaf.shape, leaf)
    return found


def inner_value(value: Any) -> Any:
    """The value inside tensors, which may be a Taylor series."""
    while isinstance(value, Tensor):
        value = value.inner
    return value


def all_finite(found: Iterable[Any]) -> bool:
    """Return whether all numbers of some derivatives are finite; None is skipped."""
    return all(d is None or assume(isfinite(d)) for d in found)


def zeros(shape: tuple[int, ...], leaf: Tensor) -> Tensor:
    """A zero derivative by a leaf, in the dtype and array library of the leaf."""
    return Tensor(arrays.zeros(shape, leaf.dtype, arrays.foreign_namespace((leaf.inner,))))
