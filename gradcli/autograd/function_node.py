"""The node of a user-defined Function, and the context that its methods share."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradcli import arrays
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.autograd.node import RELEASED, Edge, Node, conjugated
from gradcli.autograd.operand_forms import shape_only
from gradcli.autograd.primitive_node import fit
from gradcli.autograd.saved_hooks import innermost
from gradcli.autograd.saved_values import (
    SAVED_INFERENCE,
    Pack,
    Packed,
    SavedOutput,
    SavedTensor,
    Unpack,
    restored,
)
from gradcli.autograd.tensor import Tensor
from gradcli.autograd.untaken_masks import drop_if_untaken
from gradcli.errors import DifferentiationError, ShapeError
from gradcli.primitives.bind import constant
from gradcli.primitives.operators import operand


class FunctionCtx:
    """The context that carries data from `forward` to `backward`: saved tensors, and any attribute set on it."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True
        # Whether outputs marked as non-differentiable get zeros for their gradients too.
        self._materialize_non_diff_grads = True
        # The tensors that `saved_tensors` returns to `jvp`, and whether `jvp` is running.
        self.saved_for_forward: tuple[Any, ...] = ()
        self._within_jvp = False
        # The saved tensors with their versions when saved; None when they have been freed.
        self._saved: list[tuple[Any, int | None]] | None = []
        self._node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Save inputs or outputs of `forward` for `backward`, which reads them from `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save inputs or outputs of `forward` for `jvp`, which reads them from `saved_tensors`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare the inputs that `forward` has changed in place. Each must be among its outputs."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Declare outputs of `forward` that are constants."""
        self.non_differentiable = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros instead of None for an output without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors. Raises DifferentiationError if they were freed or modified since."""
        if self._within_jvp:
            return self.saved_for_forward
        if self._saved is None:
            raise DifferentiationError(RELEASED)
        node = self._node() if self._node is not None else None
        return tuple(_saved_tensor(saved, version, node) for saved, version in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The deprecated name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


def _saved_tensor(saved: Any, version: int | None, node: FunctionNode | None) -> Any:
    if isinstance(saved, SavedOutput):
        assert node is not None
        numbers = saved.numbers(node)
        return (
            numbers._as_output(node, saved.number)
            if isinstance(numbers, Tensor)
            else Tensor(numbers, node, saved.number)
        )
    return restored(saved, version, node)


class FunctionNode(Node):
    """The node of a recorded call of a Function; each Function has its own subclass.

    Attributes of the context are attributes of the node too.
    """

    __slots__ = ("context", "inputs", "shapes", "zeros")
    # The Function; its class depends on this module.
    function: ClassVar[Any]
    takes_none = True

    def __init__(
        self, context: FunctionCtx, edges: tuple[Edge | None, ...], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        super().__init__(edges, len(outputs))
        self.context = context
        self.inputs = tuple(shape_only(i.inner) if isinstance(i, Tensor) else None for i in inputs)
        self.shapes = tuple(arrays.shape(o.inner) if isinstance(o, Tensor) else () for o in outputs)
        self.zeros = tuple(_zeros(constant(o.inner)) if self._gets_zeros(o) else None for o in outputs)
        context._node = weakref.ref(self)

    def __getattr__(self, name: str) -> Any:
        if name == "context":
            raise AttributeError(name)
        return getattr(self.context, name)

    def _gets_zeros(self, output: Any) -> bool:
        context = self.context
        if not isinstance(output, Tensor) or not context.materialize_grads:
            return False
        return context._materialize_non_diff_grads or not among(output, context.non_differentiable)

    def save(self, outputs: Sequence[Any]) -> None:
        """Store the tensors that `forward` asked to save, after its outputs have been attached to the graph."""
        kept = [
            SavedOutput(saved._without_graph() if saved.dual else saved.inner, saved.output_nr)
            if _is_of(saved, self) and among(saved, outputs)
            else saved
            for saved in self.context.to_save
        ]
        if any(isinstance(saved, Tensor) and saved.version is None for saved in kept):
            raise DifferentiationError(SAVED_INFERENCE)
        self.context._saved = [(saved, saved.version if isinstance(saved, Tensor) else 0) for saved in kept]
        self.context.to_save = self.context.saved_for_forward = ()
        packer = innermost()
        if packer is not None:
            for place in range(len(kept)):
                self.pack(place, packer.pack, packer.unpack)

    # --- what is saved, as users see it

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        self.check_saved()
        return tuple(SavedTensor(self, place) for place in range(len(self.context._saved or ())))

    def is_released(self) -> bool:
        return self.context._saved is None

    def kept(self, place: int) -> Any:
        """The saved tensor at a position, in the form in which it is stored."""
        assert self.context._saved is not None
        return self.context._saved[place][0]

    def pack(self, place: int, pack: Pack, unpack: Unpack) -> None:
        """Replace a saved tensor by the result of `pack`."""
        kept = self.kept(place)
        assert self.context._saved is not None
        if isinstance(kept, SavedOutput):
            numbers = kept.numbers(self)
            output = numbers if isinstance(numbers, Tensor) else Tensor(numbers)
            packed = Packed(output, (None, kept.number), pack, unpack)
        elif isinstance(kept, Tensor):
            packed = Packed.saved_by(self, kept, pack, unpack)
        else:
            return
        self.context._saved[place] = packed, None

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
        grads = [_cotangent(conjugated(c), zeros) for c, zeros in zip(cotangents, self.zeros)]
        returned = self.function.pulled_back(self.context, *grads)
        gradients = returned if isinstance(returned, tuple) else (returned,)
        if len(gradients) > len(self.edges) and all(g is None for g in gradients[len(self.edges) :]):
            gradients = gradients[: len(self.edges)]
        if len(gradients) != len(self.edges):
            raise DifferentiationError(
                f"function {self.name} returned an incorrect number of gradients "
                f"(expected {len(self.edges)}, got {len(gradients)})"
            )
        for i, (gradient, given) in enumerate(zip(gradients, self.inputs)):
            if gradient is not None and given is None:
                raise DifferentiationError(
                    f"function {self.name} returned a gradient different than None at position {i + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
        pulled = [
            self._checked(i, g, lift is not None) if want and g is not None else None
            for i, (g, want) in enumerate(zip(gradients, wanted))
        ]
        if guarded and len(cotangents) == 1 and cotangents[0] is not None:
            return [None if p is None else drop_if_untaken(cotangents[0], mask, p) for p in pulled]
        return pulled

    def _checked(self, i: int, gradient: Any, differentiable: bool) -> Any:
        value = operand(gradient)
        have, shape = arrays.shape(value), arrays.shape(self.inputs[i])
        if not _sums_to(have, shape):
            raise DifferentiationError(
                f"Function {self.name} returned an invalid gradient at index {i} - "
                f"got {list(have)} but expected shape compatible with {list(shape)}"
            )
        value = fit(conjugated(value), self.inputs[i])
        if differentiable:
            return value
        return value.inner if isinstance(value, Tensor) and not value.dual else value

    def output_modified(self, number: int, version: int) -> None:
        for saved, _ in self.context._saved or ():
            if isinstance(saved, SavedOutput) and saved.number == number:
                saved.modified(version)

    def shape_of(self, number: int) -> Shape:
        return self.shapes[number]

    def release(self) -> None:
        if self.context._saved:
            self.context._saved = None


def _is_of(saved: Any, node: FunctionNode) -> bool:
    return isinstance(saved, Tensor) and saved._node is node


def among(tensor: Any, tensors: Sequence[Any]) -> bool:
    """Return whether `tensor` is, by identity, one of `tensors`."""
    return any(tensor is other for other in tensors)


def _cotangent(cotangent: Any, zeros: Callable[[], Any] | None) -> Tensor | None:
    if cotangent is None:
        return None if zeros is None else Tensor(zeros())
    return cotangent if isinstance(cotangent, Tensor) else Tensor(cotangent)


def _zeros(output: Any) -> Callable[[], Any]:
    """A function that makes zeros like an output, without keeping the output alive."""
    namespace = arrays.foreign_namespace((output,))
    return functools.partial(arrays.zeros, arrays.shape(output), arrays.dtype_name(output), namespace)


def _sums_to(have: Shape, shape: Shape) -> bool:
    """Return whether `shape` broadcasts to `have`."""
    try:
        return broadcast([have, shape]) == have
    except ShapeError:
        return False
