"""The base class of nodes of the graph: what was computed, from which operands, and how cotangents are propagated.

The node of a leaf accumulates its gradients.
"""

from __future__ import annotations

import itertools
from _weakref import ref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import cache

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.autograd.hooks import Attached, Hook, HookHandle, Hooks
from gradcli.autograd.modes import grad_enabled, span_now
from gradcli.errors import CallError, DifferentiationError, Span
from gradcli.named_tuples import NamedTuple
from gradcli.primitives.entries.complex_parts import conjugate_of
from gradcli.primitives.primitive import NodeName
from gradcli.type_hints import Any, ClassVar

RELEASED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed). Saved intermediate values of the graph are freed when you call .backward() "
    "or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time "
    "or if you need to access saved tensors after calling backward."
)

# The destination of a cotangent: a node and the number of its output, or a leaf Tensor.
Edge = tuple[Any, int]

next_sequence = itertools.count(1).__next__

# The key in the metadata of a node whose value was computed from the parts of complex numbers: the values in which it is
# nevertheless analytic, where they are complex, and on which alone it depends.
ANALYTIC_IN = "analytic in"

# Functions that are called with each node when it is recorded, and its result.
recorders: ContextVar[tuple[Callable[[Node, Any], None], ...]] = ContextVar("gradcli_recorders", default=())
recorders_now = recorders.get


# Cotangents of complex numbers have two conventions. For a real L and z = a + i*b, users get and give dL/da + i*dL/db, as
# in PyTorch: the direction in which L grows. Within a pass cotangents are dL/da - i*dL/db, as in JAX, for which the chain
# rule of holomorphic functions has no conjugates. Each is the conjugate of the other; those of real numbers are the same.


def conjugated(cotangent: Any) -> Any:
    """A cotangent in the other convention; None for None."""
    return None if cotangent is None else conjugate_of(cotangent)


def all_conjugated(cotangents: Sequence[Any]) -> list[Any]:
    return [conjugated(c) for c in cotangents]


class Node:
    """A recorded operation.

    `edges` are the destinations of the cotangents of the operands, None for constants. `sequence` increases with time,
    so that an operation has a higher number than those that it depends on. `guarded` says that zeros in its cotangents
    may mean "not taken", see `untaken_masks`. `attached` holds what users attached, and `name` is the name of the class
    of nodes or of the node.
    """

    __slots__ = ("__weakref__", "attached", "edges", "guarded", "outputs", "sequence", "span")
    name: NodeName
    # Whether `pull` is called if all cotangents of the outputs are None; else those of the operands are None too.
    takes_none: ClassVar[bool] = False
    # Whether zeros among the cotangents of the operands may mean "not taken".
    selects: bool = False

    def __init__(self, edges: Sequence[Edge | None], outputs: int = 1) -> None:
        self.edges = edges
        self.outputs = outputs
        self.sequence: int = next_sequence()
        self.span: Span | None = span_now()
        self.guarded = False
        self.attached: Attached | None = None

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The destinations of the cotangents as nodes and output numbers; a leaf has its AccumulateGrad node."""
        return tuple(
            (None, 0)
            if e is None
            else (e[0].shown(), e[1])
            if isinstance(e[0], Node)
            else (e[0]._accumulate_grad_node(), 0)
            for e in self.edges
        )

    def shown(self) -> Node:
        """This node as users see it: of the class that its name has."""
        return self

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for arbitrary user data about this node."""
        return self.attach().metadata

    def attach(self) -> Attached:
        if self.attached is None:
            self.attached = Attached()
        return self.attached

    def register_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(grad_inputs, grad_outputs)` after a backward pass visited this node.

        A tuple that it returns replaces the gradients of the operands. The handle's `remove()` removes the hook.
        """
        return self.attach().after.register(hook)

    def register_prehook(self, hook: Hook) -> HookHandle:
        """Call `hook(grad_outputs)` before a backward pass visits this node, after the tensor hooks.

        A tuple that it returns replaces the gradients of the outputs. The handle's `remove()` removes the hook.
        """
        return self.attach().before.register(hook)

    def __call__(self, *gradients: Any) -> Any:
        """The gradients of the operands from those of the outputs (tensors or None), without hooks.

        Returns a tensor, or a tuple for several operands. Raises CallError for a wrong number of gradients, or an
        argument that is not a tensor.
        """
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
                all_conjugated([g if g is None or recorded or g.dual else g.inner for g in gradients]),
                wanted,
                lift=made if recorded else None,
                guarded=self.guarded,
                mask=None,
            )
        pulled = all_conjugated(pulled)
        found = tuple(p if p is None or made is None or hasattr(p, "made") else made(p) for p in pulled)
        return found[0] if len(found) == 1 else found

    @property
    def targets(self) -> list[Any]:
        """The nodes and leaves that the edges lead to."""
        return [edge[0] for edge in self.edges if edge is not None]

    def leaf(self) -> Any:
        """One of the leaves that this node depends on."""
        waiting: list[Any] = [self]
        while isinstance(waiting[-1], Node):
            waiting += waiting.pop().targets
        return waiting[-1]

    def is_smooth(self) -> bool:
        """Return whether the function is differentiable at its operands, as far as that is known."""
        return True

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
        """The cotangents of the operands from those of the outputs; None for those not wanted.

        If the work is recorded, cotangents are Tensors, and `lift` makes a Tensor from data, a node and an output
        number; else `lift` is None. If `guarded`, a zero in a cotangent may mean "not taken", except where `mask` (if
        not None) is true; the masks of the operands' cotangents are then stored in `masks`, as far as they are known.
        Raises DifferentiationError if the graph was released or a saved tensor was modified.
        """
        raise NotImplementedError

    def shape_of(self, _number: int) -> Shape:
        """The shape of an output. Raises DifferentiationError if the graph was released."""
        raise NotImplementedError

    def keeps_results(self) -> bool:
        """Return whether `pull` needs the original results of the operation."""
        return True

    def output_modified(self, _number: int, _version: int) -> None:
        """Note that an output was modified in place and is now at this version; it may be saved for `pull`."""

    def release(self) -> None:
        """Free the tensors saved for `pull`, if there are any."""

    def is_released(self) -> bool:
        return False

    def check_saved(self) -> None:
        """Raise DifferentiationError if the saved tensors were freed."""
        if self.is_released():
            raise DifferentiationError(RELEASED)

    def __repr__(self) -> str:
        return f"<{self.name}>"


@cache
def named_class(kind: type[Any], name: str) -> type[Any]:
    """The subclass of `kind` for nodes with this name.

    As in PyTorch, each name has a class of its own, without a module.
    """
    return type(str(name), (kind,), {"__slots__": (), "__module__": "builtins", "name": NodeName(name)})


class GradientEdge(NamedTuple):
    """An output of a node that a gradient flows to.

    It stands for a tensor in `grad` and `backward`, also if the tensor is changed in place later.
    """

    node: Node
    output_nr: int


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
        self._leaf = ref(leaf)
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
