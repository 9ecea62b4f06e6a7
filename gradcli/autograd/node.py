"""The nodes of the graph: what was computed, from what, and how to send a cotangent back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, ClassVar, NamedTuple

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.hooks import Attached, Hook, HookHandle
from gradcli.autograd.modes import grad_enabled, span_now
from gradcli.errors import CallError, Span
from gradcli.primitives.node_name import NodeName

# Where a cotangent goes next: a node or a leaf Tensor, and the number of the node's output.
Edge = tuple[Any, int]

next_sequence = itertools.count(1).__next__

# Called with each operation as it is recorded, and its result.
recorders: ContextVar[tuple[Callable[[Node, Any], None], ...]] = ContextVar("gradcli_recorders", default=())
recorders_now = recorders.get


class Node:
    """A recorded operation.

    `edges` say where the cotangent of each operand goes, None where there is none. `sequence`
    rises with time, so an operation always has a higher one than those that it depends on.
    `guarded` says that zeros in its cotangents may mean "not taken", see `gradcli.autograd.selection`.
    `attached` is what users attached to it, and `name` its name, of a kind of nodes or of each.
    """

    __slots__ = ("__weakref__", "attached", "edges", "guarded", "outputs", "sequence", "span")
    name: NodeName
    # Whether `pull` is called where no result has a cotangent; else there are none for the operands either.
    takes_none: ClassVar[bool] = False

    def __init__(self, edges: Sequence[Edge | None], outputs: int = 1) -> None:
        self.edges = edges
        self.outputs = outputs
        self.sequence: int = next_sequence()
        self.span: Span | None = span_now()
        self.guarded = False
        self.attached: Attached | None = None

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where the cotangents go: a node, that which accumulates them for a leaf, and the number of its output."""
        return tuple((None, 0) if e is None else e if isinstance(e[0], Node) else (e[0]._end(), 0) for e in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """For users to keep what they like with this node."""
        return self.attach().metadata

    def attach(self) -> Attached:
        if self.attached is None:
            self.attached = Attached()
        return self.attached

    def register_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(grad_inputs, grad_outputs)` once a backward pass has been here; a tuple that it returns replaces
        the first, the gradients of the operands. The handle's `remove()` takes it away."""
        return self.attach().after.register(hook)

    def register_prehook(self, hook: Hook) -> HookHandle:
        """Call `hook(grad_outputs)` before a backward pass goes on from here, after the hooks of the tensors; a tuple
        that it returns replaces the gradients of the results. The handle's `remove()` takes it away."""
        return self.attach().before.register(hook)

    def __call__(self, *gradients: Any) -> Any:
        """The gradients of the operands from those of the results, each a tensor or None, without hooks: a tensor, or a
        tuple of them for several operands. Raises CallError for another number of gradients, and for what is none."""
        if len(gradients) != self.outputs:
            raise CallError(f"expected {self.outputs} arguments, got {len(gradients)} instead")
        for i, gradient in enumerate(gradients):
            if gradient is not None and not hasattr(gradient, "made"):
                raise CallError(f"argument {i} is not a Tensor")
        made = next((g.made for g in gradients if g is not None), None)
        recorded = grad_enabled.get()
        wanted = [edge is not None for edge in self.edges]
        with arrays.quiet():
            pulled = self.pull(
                [g if g is None or recorded or g.dual else g.inner for g in gradients],
                wanted,
                lift=made if recorded else None,
                guarded=self.guarded,
                mask=None,
            )
        found = tuple(p if p is None or made is None or hasattr(p, "made") else made(p) for p in pulled)
        return found[0] if len(found) == 1 else found

    @property
    def targets(self) -> list[Any]:
        """The nodes and leaves that the cotangents go to."""
        return [edge[0] for edge in self.edges if edge is not None]

    def leaf(self) -> Any:
        """One of the leaves that it depends on."""
        waiting: list[Any] = [self]
        while isinstance(waiting[-1], Node):
            waiting += waiting.pop().targets
        return waiting[-1]

    def is_smooth(self) -> bool:
        """Whether the function is differentiable at its operands, as far as is known of it and of them."""
        return True

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
        """The operands' cotangents from those of the results; None for those not wanted.

        Where the work itself is recorded, cotangents are Tensors, and `lift` makes a Tensor of data,
        a node and the number of its output; else it is None. Where `guarded`, a zero in a cotangent
        may mean "not taken", unless it is in the `mask`, where there is one; `masks` is where those behind the operands
        are then put, as far as they are known. Raises DifferentiationError where the graph was released or a saved
        tensor was modified since.
        """
        raise NotImplementedError

    def shape_of(self, _number: int) -> Shape:
        """The shape of an output. Raises DifferentiationError where the graph was released."""
        raise NotImplementedError

    def keeps_results(self) -> bool:
        """Whether `pull` needs results of the operation as they were."""
        return True

    def output_modified(self, _number: int, _version: int) -> None:
        """Take note that an output was modified in place, and is at this version now: it may have been saved for `pull`."""

    def release(self) -> None:
        """Free what was saved for `pull`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.name}>"


@cache
def named_class(kind: type[Any], name: str) -> type[Any]:
    """The class of the nodes of a kind that have this name: in PyTorch too each name has one, which is no module's."""
    return type(str(name), (kind,), {"__slots__": (), "__module__": "builtins", "name": NodeName(name)})


class GradientEdge(NamedTuple):
    """An output of a node, which a gradient comes by: what a tensor is for `grad` and `backward`, whatever becomes of the
    tensor."""

    node: Node
    output_nr: int
