"""The nodes of the graph: what was computed, from what, and how to send a cotangent back."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from gradcli.autograd.modes import current_span
from gradcli.errors import Span

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor

Hook = Callable[["Tensor"], "Tensor | None"]
# Where a cotangent goes next: a node or a leaf Tensor, and the number of the node's output.
Edge = tuple[Any, int]

next_sequence = itertools.count().__next__

# Called with each operation as it is recorded, and its result.
recorder: ContextVar[Callable[[Node, Any], None] | None] = ContextVar("gradcli_recorder", default=None)

RELEASED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they "
    "have already been freed). Saved intermediate values of the graph are freed when you call .backward() "
    "or gradcli.grad(). Specify retain_graph=True if you need to backward through the graph a second time "
    "or if you need to access saved tensors after calling backward."
)


class Node:
    """A recorded operation.

    `edges` say where the cotangent of each operand goes, None where there is none. `sequence`
    rises with time, so an operation always has a higher one than those that it depends on.
    `guarded` says that zeros in its cotangents may mean "not taken", see `gradcli.autograd.selection`.
    """

    __slots__ = ("__weakref__", "edges", "guarded", "hooks", "name", "outputs", "retained", "sequence", "span")

    def __init__(self, name: str, edges: tuple[Edge | None, ...], outputs: int = 1) -> None:
        self.name = name
        self.edges = edges
        self.outputs = outputs
        self.sequence: int = next_sequence()
        self.span: Span | None = current_span.get()
        self.guarded = False
        self.hooks: dict[int, list[Hook]] | None = None
        self.retained: dict[int, weakref.ref[Tensor]] | None = None

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the cotangents go: a node and the number of its output, or a leaf and 0."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    def pull(
        self, cotangents: Sequence[Any], wanted: Sequence[bool], *, differentiable: bool, guarded: bool
    ) -> Sequence[Any]:
        """The operands' cotangents from those of the results; None for those not wanted.

        Where `differentiable`, cotangents are Tensors and the work itself is recorded. Where
        `guarded`, a zero in a cotangent may mean "not taken". Raises
        DifferentiationError where the graph was released or a saved tensor was modified since.
        """
        raise NotImplementedError

    def output_modified(self, _number: int) -> None:
        """Take note that an output was modified in place: it may have been saved for `pull`."""

    def release(self) -> None:
        """Free what was saved for `pull`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.name}>"


class ShapeOnly:
    """Stands for an operand whose numbers backward does not need."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
