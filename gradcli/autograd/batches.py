"""Tensors in batches: going into a batch and out of it, recorded as operations of their own."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.autograd.function import Function
from gradcli.autograd.tensor import Tensor
from gradcli.kinds import batch
from gradcli.primitives.reductions import sum_


class _Rows(Function):
    """The rows of a batch along a new first axis."""

    takes_batches = True

    @staticmethod
    def forward(ctx: Any, x: Tensor, nesting: int, size: int) -> Any:
        ctx.nesting = nesting
        return batch.unbatched(x.data, nesting, size)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Batch.apply(g, ctx.nesting), None, None


class _Batch(Function):
    """The slices along the first axis as the rows of a batch."""

    takes_batches = True

    @staticmethod
    def forward(ctx: Any, x: Tensor, nesting: int) -> Any:
        ctx.nesting, ctx.size = nesting, arrays.shape(x)[0]
        return batch.batched(x.data, nesting)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return rows(g, ctx.nesting, ctx.size), None


def rows(x: Any, nesting: int, size: int) -> Any:
    """The `size` rows of a value along a new first axis, in the graph where it is a Tensor."""
    return _Rows.apply(x, nesting, size) if isinstance(x, Tensor) else batch.unbatched(x, nesting, size)


def sum_over_rows(cotangent: Any, operand: Any) -> Any:
    """The cotangent of an operand, summed over those batches the rows of which share it.

    A derivative that is computed row by row stays one for each row.
    """
    for nesting in batch.nestings(cotangent) - batch.nestings(operand) - batch.inside():
        cotangent = sum_(rows(cotangent, nesting, 1), axis=0)
    return cotangent
