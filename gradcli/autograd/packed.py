"""Saved tensors that hooks have packed, and saved tensors as users see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.autograd.modes import grad_enabled
from gradcli.autograd.node import Edge, Node
from gradcli.autograd.saved import ShapeOnly, check_version
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import CallError, DifferentiationError
from gradcli.primitives.arithmetic import identity

# What is saved of a tensor, and a tensor of what was saved.
Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]

_IN_PLACE = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
    "modified by in-place operations as this can lead to unexpected side-effects."
)
_FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
    "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a "
    "second time or if you need to access saved tensors after calling backward."
)


class Packed(ShapeOnly):
    """What a hook made of a saved tensor.

    Its place in the graph is kept beside: an edge, None where it has none, and that of an output of the node that saves
    it has no target, which would be a circle of references.
    """

    __slots__ = ("_edge", "_held", "_is_itself", "_unpack", "_version")

    def __init__(self, tensor: Any, edge: tuple[Any, int] | None, pack: Pack, unpack: Unpack) -> None:
        super().__init__(arrays.shape(tensor.inner))
        self._edge = edge
        self._unpack = unpack
        if tensor.requires_grad:
            tensor = tensor._apart() if tensor.dual else tensor.detach()
        self._version = tensor.version
        token = grad_enabled.set(False)
        try:
            self._held = pack(tensor)
        finally:
            grad_enabled.reset(token)
        if tensor.version != self._version:
            raise DifferentiationError(_IN_PLACE)
        self._is_itself = self._held is tensor

    def tensor(self, node: Node | None) -> Any:
        """The tensor again, outside of the graph where it had no place there, for the node that saved it, if one did.

        Raises CallError where the hook gives no tensor.
        """
        if self._is_itself:
            check_version(self._held, self._version)
        found = self._unpack(self._held)
        if not isinstance(found, TensorBase):
            kind = type(found).__name__
            raise CallError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
        if self._edge is None:
            return found
        target, number = self._edge
        if target is not None and not isinstance(target, Node):
            target = _alias_of(target)
        target = target or node
        assert target is not None
        return found._as_output(target, number) if found.dual else found.made(found.inner, target, number)


def _alias_of(leaf: TensorBase) -> Any:
    """An operation by which a gradient comes to a leaf as it is."""
    token = grad_enabled.set(True)
    try:
        return identity(leaf).grad_fn
    finally:
        grad_enabled.reset(token)


def edge_of_saved(tensor: TensorBase, node: Node) -> Edge | tuple[None, int] | None:
    """The place in the graph of a tensor that a node saves."""
    if not tensor.requires_grad:
        return None
    return (None, tensor.output_nr) if tensor.grad_fn is node else tensor.edge


class SavedTensor:
    """Something that a node saves, as it is kept: `register_hooks` has it packed."""

    __slots__ = ("_node", "_place")

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) != 2:
            raise DifferentiationError("Trying to create a SavedTensor object from Python is forbidden")
        self._node, self._place = arguments

    def register_hooks(self, *hooks: Any) -> None:
        """`register_hooks(pack, unpack)`: from now on what `pack` makes of the tensor is kept, and what `unpack` makes of
        that is the tensor.

        Raises CallError for anything but two functions, and DifferentiationError where it was freed, is None, or has
        hooks.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise CallError("register_hooks(): incompatible function arguments: it takes (pack_hook, unpack_hook)")
        if self._node.is_released():
            raise DifferentiationError(_FREED)
        kept = self._node.kept(self._place)
        if kept is None:
            raise DifferentiationError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(kept, Packed):
            raise DifferentiationError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        self._node.pack(self._place, *hooks)
