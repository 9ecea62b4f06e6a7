"""Computes the rows of a Jacobian: the gradients of all elements of a value, in one backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gradcli import arrays
from gradcli.autograd.engine import grad
from gradcli.autograd.function_node import FunctionNode
from gradcli.autograd.primitive_node import PrimitiveNode
from gradcli.autograd.targets import ancestors, beginning
from gradcli.autograd.tensor import Tensor
from gradcli.calculus.batches_and_series import rows_of
from gradcli.errors import LimitError, NotBatchableError
from gradcli.kinds import batch
from gradcli.primitives.axes import MOST_AXES
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.comparisons import equal
from gradcli.primitives.entries.indexing import index
from gradcli.primitives.entries.shape import concat, stack

# Bounds on the number of rows with nan that are recomputed separately, and on the size of the value.
_MOST_ROWS, _MOST_ELEMENTS = 256, 4096


def gradients_of_elements(value: Tensor, leaves: Sequence[Tensor], *, create_graph: bool) -> tuple[Any, ...]:
    """Return by each leaf the gradients of the elements of `value` along a first axis; None where `value` does not
    depend on it.

    As many rows as memory permits are propagated together, unless a part of the graph cannot be batched: a user's
    Function, a hook, or a condition on the numbers.
    """
    # In directional derivatives the value may be batched already.
    nested = batch.nestings(value.inner)
    at_once = 0 if nested else _rows_at_once(value, leaves)
    found = None
    if at_once:
        with suppress(NotBatchableError):
            found = _in_batches(value, leaves, create_graph, at_once)
    if found is None:
        found = _one_by_one(value, leaves, create_graph)
    return found if nested else _recompute_nan_rows(value, leaves, found, create_graph)


def _in_batches(value: Tensor, leaves: Sequence[Tensor], create_graph: bool, at_once: int) -> tuple[Any, ...]:
    parts = []
    for start in range(0, value.size, at_once):
        stop = min(start + at_once, value.size)
        rows = arrays.like_library_of(unit_tensors(value, start, stop), value.inner)
        nesting = batch.new_batch_id()
        with batch.row_by_row(nesting):
            found = _gradients(value, leaves, batch.Batched(rows, nesting), create_graph)
        parts.append([None if f is None else rows_of(f, nesting, stop - start) for f in found])
    return tuple(_joined(concat, of_leaf) for of_leaf in zip(*parts))


def _one_by_one(value: Tensor, leaves: Sequence[Tensor], create_graph: bool) -> tuple[Any, ...]:
    rows = (arrays.like_library_of(unit_tensors(value, i, i + 1)[0], value.inner) for i in range(value.size))
    parts = [_gradients(value, leaves, row, create_graph) for row in rows]
    return tuple(_joined(stack, of_leaf) for of_leaf in zip(*parts))


def _recompute_nan_rows(value: Tensor, leaves: Sequence[Tensor], found: Any, create_graph: bool) -> tuple[Any, ...]:
    """Recompute rows that contain nan separately.

    In the joint pass, a zero cotangent of another element times an infinite or undefined derivative is nan; a separate
    pass does not reach those operations.
    """
    if all(f is None or assume(equal(constant(f), constant(f))) for f in found):
        return tuple(found)
    rows = [i for i in range(value.size) if not _is_defined(found, i)]
    if len(rows) > _MOST_ROWS or value.size > _MOST_ELEMENTS:
        return tuple(found)
    flat, parts = (
        reshape(value, (value.size,)),
        [[None if f is None else index(f, i) for i in range(value.size)] for f in found],
    )
    for i in rows:
        gradients = grad([index(flat, i)], leaves, create_graph=create_graph, retain_graph=True, allow_unused=True)
        for part, gradient in zip(parts, gradients):
            if part[i] is not None:
                part[i] = zeros_like(part[i]) if gradient is None else gradient
    return tuple(None if f is None else stack(part) for f, part in zip(found, parts))


def _is_defined(found: Sequence[Any], i: int) -> bool:
    """Return whether row i has no nan."""
    rows = [constant(index(f, i)) for f in found if f is not None]
    return all(assume(equal(row, row)) for row in rows)


def _gradients(value: Tensor, leaves: Sequence[Tensor], cotangent: Any, create_graph: bool) -> tuple[Any, ...]:
    return grad([value], leaves, [cotangent], create_graph=create_graph, retain_graph=True, allow_unused=True)


def unit_tensors(x: Any, start: int, stop: int) -> Any:
    """The unit tensors for the elements of `x` numbered from `start` to `stop`, along a first axis."""
    rows = arrays.numpy_namespace().eye(stop - start, arrays.size(x), start, dtype=arrays.dtype_name(x))
    return shaped(rows, arrays.shape(x))


def shaped(rows: Any, shape: Sequence[int]) -> Any:
    """Reshape rows `[n, …]` to `[n, *shape]`."""
    check_axes(1 + len(shape))
    return rows.reshape(len(rows), *shape)


def check_axes(number: int) -> None:
    """Raise LimitError for more axes than an array may have."""
    if number > MOST_AXES:
        raise LimitError(f"the derivatives have {number} axes, more than the {MOST_AXES} of the largest arrays")


def _joined(join: Any, parts: Sequence[Any]) -> Any:
    """Join the parts of one leaf; all rows either depend on the leaf or do not."""
    if parts[0] is None:
        return None
    return join(parts) if len(parts) > 1 or join is stack else parts[0]


def _rows_at_once(value: Tensor, leaves: Sequence[Tensor]) -> int:
    """The number of rows that fit into memory together; 0 where they cannot be batched."""
    widest = value.numel()
    nodes = ancestors(value, after=beginning(leaves))
    if not all(map(_takes_batches, {value, *nodes, *(target for node in nodes for target in node.targets)})):
        return 0
    for node in nodes:
        if isinstance(node, PrimitiveNode):
            widest = max(widest, *(arrays.size(batch.unwrap_rows(constant(o))) for o in node.saved or ()))
    return max(1, batch.MAX_ELEMENTS // max(widest, 1))


def _takes_batches(target: Any) -> bool:
    """Return whether a node or leaf can process all rows at once."""
    if isinstance(target, FunctionNode) and not target.function.generate_vmap_rule:
        return False
    node = target._accumulator if isinstance(target, Tensor) else target
    return node is None or node.attached is None or not node.attached.acts
