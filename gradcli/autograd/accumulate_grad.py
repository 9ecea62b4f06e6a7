"""The accumulation of gradients in leaves: its node, as users see it, and the way to clear them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.arrays.shapes import Shape
from gradcli.autograd.hooks import Hooks
from gradcli.autograd.node import Node, conjugated
from gradcli.primitives.node_name import NodeName


class AccumulateGrad(Node):
    """The node that accumulates the gradients of a leaf, `variable`.

    The edges of the graph lead to the leaf itself. This node holds the hooks of the leaf: those in `accumulated` are
    called with the leaf when its gradient has been accumulated.
    """

    __slots__ = ("_leaf", "accumulated")
    name = NodeName("AccumulateGrad")

    def __init__(self, leaf: Any) -> None:
        super().__init__(())
        # A weak reference, because the leaf owns this node.
        self._leaf = weakref.ref(leaf)
        self.accumulated = Hooks()

    @property
    def variable(self) -> Any:
        return self._leaf()

    def pull(
        self,
        cotangents: Sequence[Any],
        wanted: Sequence[object],
        *,
        lift: Callable[..., Any] | None,
        guarded: bool = False,
        mask: Any = None,
        masks: list[Any] | None = None,
    ) -> Sequence[Any]:
        (cotangent,) = cotangents
        if cotangent is not None:
            leaf, gradient = self.variable, conjugated(cotangent)
            leaf.accumulate_grad(gradient if hasattr(gradient, "made") else leaf.made(gradient), lift is not None)
        return ()

    def shape_of(self, _number: int) -> Shape:
        shape: Shape = self.variable.shape
        return shape


def clear_gradients(leaves: Iterable[Any], set_to_none: bool) -> None:
    """Remove the gradients of leaves, or set them to 0."""
    for leaf in leaves:
        if set_to_none:
            leaf.grad = None
        elif leaf.grad is not None:
            leaf.grad = leaf.grad.detach().zero_()
