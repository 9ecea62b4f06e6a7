"""Computes Jacobians by reverse or forward mode, whichever needs fewer passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli import arrays
from gradcli.autograd.targets import ancestors
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.derivatives import inner_value, jacobians
from gradcli.calculus.first_orders import Function
from gradcli.calculus.rows import unit_tensors
from gradcli.errors import EvaluationError, LimitError
from gradcli.kinds import batch
from gradcli.kinds.jets import Jet
from gradcli.primitives.bind import assume
from gradcli.primitives.conversions import permute, reshape
from gradcli.primitives.entries.comparisons import isfinite
from gradcli.primitives.entries.shape import concat


def jacobians_by_either_mode(function: Function, leaves: Mapping[str, Tensor], value: Any) -> dict[str, Any]:
    """Return the Jacobian by each leaf of `value`, which is `function(leaves)`; None where it does not depend on the
    leaf.

    Leaves with fewer elements than the value take forward mode, by Taylor series of order 1, where the function is
    smooth and the result finite. At kinks the conventions of reverse mode apply. Raises DifferentiationError for a
    complex value that is not known to be holomorphic in complex leaves.
    """
    if arrays.is_complex(value):
        return _of_complex(value, leaves)
    size = arrays.size(value)
    # By a complex leaf, forward mode would take two directions for each element.
    fewer = [name for name, leaf in leaves.items() if 0 < leaf.size < size and not arrays.is_complex(leaf.inner)]
    found: dict[str, Any] = {}
    if fewer and _is_smooth(value):
        # Functions without a series, such as those with a `backward` clause, take reverse mode, which also raises the
        # error for a derivative that does not exist.
        try:
            found = {name: _forward(function, name, leaves[name].inner, size) for name in fewer}
        except LimitError:
            raise
        except (NotImplementedError, EvaluationError):
            pass
    found = {name: f for name, f in found.items() if f is None or assume(isfinite(f))}
    others = {name: leaf for name, leaf in leaves.items() if name not in found}
    found |= zip(others, jacobians(value, list(others.values())))
    return {name: found[name] for name in leaves}


def _of_complex(value: Any, leaves: Mapping[str, Tensor]) -> dict[str, Any]:
    # Loaded on demand: few programs have complex numbers.
    from gradcli.calculus.complex_derivatives import check_holomorphic, complex_derivatives

    check_holomorphic(value, [*leaves.values()])
    return complex_derivatives(value, leaves, jacobians)


def _is_smooth(value: Any) -> bool:
    with arrays.quiet():
        return all(node.is_smooth() for node in ancestors(value))


def _forward(function: Function, name: str, point: Any, size: int) -> Any:
    """The Jacobian by one leaf; None where the value does not depend on it."""
    shape = arrays.shape(point)
    if not shape:
        return _derivative(function({name: Jet([point, arrays.ones_like(point)], 1)}), None, 1)
    variables, at_once = math.prod(shape), max(1, batch.MAX_ELEMENTS // size)
    parts = []
    for start in range(0, variables, at_once):
        rows = unit_tensors(point, start, min(start + at_once, variables))
        nesting = batch.new_batch_id()
        step = batch.Batched(rows, nesting)
        with batch.row_by_row(nesting):
            found = _derivative(function({name: Jet([point, step], 1)}), nesting, len(rows))
        if found is None:
            return None
        parts.append(found)
    return _with_leaf_last(concat(parts) if len(parts) > 1 else parts[0], shape)


def _derivative(value: Any, nesting: int | None, rows: int) -> Any:
    """The derivative along each direction, on a first axis; None where the value is not a series."""
    value = inner_value(value)
    if not isinstance(value, Jet):
        return None
    found = value.coefficient(1)
    found = value.zeros() if found is None else found
    return found if nesting is None else batch.unbatched(found, nesting, rows)


def _with_leaf_last(rows: Any, shape: Sequence[int]) -> Any:
    """Move the leading axis, with the elements of a leaf of `shape`, to the end as the axes of the leaf."""
    axes = range(len(arrays.shape(rows)))
    moved = permute(rows, (*axes[1:], 0))
    return reshape(moved, (*arrays.shape(moved)[:-1], *shape))
