"""Calls the static method `vmap` of a user-defined Function for all rows of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli.autograd.tensor import Tensor
from gradcli.calculus import pytrees
from gradcli.calculus.batches_and_series import batch_of, rows_of
from gradcli.errors import CallError, DifferentiationError
from gradcli.kinds import batch
from gradcli.primitives.entries.shape import moveaxis

_BOTH = (
    "You tried to vmap over {0}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please "
    "set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
)
_ONE_PAIR = "the vmap of {0} returns its outputs, and along which axis the rows of each stand, or None"


class VmapInfo(NamedTuple):
    """The first argument of `Function.vmap`."""

    batch_size: int
    randomness: str = "error"


def apply_to_rows(function: Any, inputs: tuple[Any, ...], nesting: int, size: int) -> Any:
    """Apply `function.vmap` to the rows of a batch: inputs have their rows along axis 0, and each output becomes
    batched again."""
    if function.generate_vmap_rule:
        raise DifferentiationError(_BOTH.format(function.__name__))
    sliced = [isinstance(i, Tensor) and nesting in batch.nestings(i.inner) for i in inputs]
    whole = [rows_of(i, nesting, size) if rows else i for i, rows in zip(inputs, sliced)]
    returned = function.vmap(VmapInfo(size), tuple(0 if rows else None for rows in sliced), *whole)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise CallError(_ONE_PAIR.format(function.__name__))
    outputs, axes = returned
    each = [
        y if axis is None or not isinstance(y, Tensor) else batch_of(moveaxis(y, axis, 0), nesting)
        for y, axis in zip(pytrees.leaves(outputs), pytrees.broadcast_prefix(axes, outputs))
    ]
    return pytrees.unflatten(outputs, each)
