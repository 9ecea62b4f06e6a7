"""Gradients that stay in the graph of an operand although their values do not depend on it.

The derivative of `relu` is 0 or 1, so that its own derivative is 0. In PyTorch it is still a function of the operand: a
gradient of the gradient is zeros there, and not None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.arrays.shapes import Shape
from gradcli.autograd.node import Edge, Node, named_class
from gradcli.autograd.tensor_base import TensorBase
from gradcli.primitives.bind import Kind
from gradcli.primitives.conversions import broadcast_to
from gradcli.primitives.entries.arithmetic import zeros_like
from gradcli.primitives.entries.reductions import sum_


class Keeping(Node):
    """A node that adds 0 times an operand to a gradient.

    Its edges lead to the history of the gradient and to the operand.
    """

    __slots__ = ("operand_shape", "shape")

    def __init__(self, gradient: Edge | None, operand: Edge, shape: Shape, operand_shape: Shape) -> None:
        super().__init__((gradient, operand))
        self.shape, self.operand_shape = shape, operand_shape

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool,
        mask: Any,
        masks: list[Any] | None = None,
    ) -> Sequence[Any]:
        (cotangent,) = cotangents
        if masks is not None:
            masks[0] = mask
        passed = zeros = None
        if wanted[0]:
            passed = cotangent if lift is None else keep(cotangent, self.edges[1], self.operand_shape, self.name)
        if wanted[1]:
            zeros = zeros_like(cotangent)
            if self.operand_shape != self.shape:
                zeros = broadcast_to(sum_(zeros), self.operand_shape)
        return [passed, zeros]

    def shape_of(self, _number: int) -> Shape:
        return self.shape

    def keeps_results(self) -> bool:
        return False

    def release(self) -> None:
        """Do nothing: no tensors are saved."""


def keep(gradient: Any, operand: Edge | None, operand_shape: Shape, node_name: str) -> Any:
    """Put the gradient with respect to an operand into the graph of that operand, by a node with this name.

    Batches, series and recorded programs are left unchanged, because it does not matter there whether a gradient is
    None.
    """
    if operand is None or not isinstance(gradient, TensorBase) or isinstance(gradient.inner, Kind):
        return gradient
    edge = gradient.edge if gradient.requires_grad else None
    node = named_class(Keeping, node_name)(edge, operand, gradient.shape, operand_shape)
    return gradient._as_output(node, 0) if gradient.dual else gradient.made(gradient.inner, node, 0)
