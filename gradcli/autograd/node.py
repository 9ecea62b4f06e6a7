"""The nodes of the graph: what was computed, from what, and how to send a cotangent back."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from gradcli.autograd.modes import current_span
from gradcli.errors import Span

# Called with the gradient as a Tensor; gives another one, or None.
Hook = Callable[[Any], Any]
# Where a cotangent goes next: a node or a leaf Tensor, and the number of the node's output.
Edge = tuple[Any, int]

next_sequence = itertools.count(1).__next__

# Called with each operation as it is recorded, and its result.
recorder: ContextVar[Callable[[Node, Any], None] | None] = ContextVar("gradcli_recorder", default=None)


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
        self.retained: dict[int, weakref.ref[Any]] | None = None

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the cotangents go: a node and the number of its output, or a leaf and 0."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def targets(self) -> list[Any]:
        """The nodes and leaves that the cotangents go to."""
        return [edge[0] for edge in self.edges if edge is not None]

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
    ) -> Sequence[Any]:
        """The operands' cotangents from those of the results; None for those not wanted.

        Where the work itself is recorded, cotangents are Tensors, and `lift` makes a Tensor of data,
        a node and the number of its output; else it is None. Where `guarded`, a zero in a cotangent
        may mean "not taken", unless it is in the `mask`, where there is one. Raises DifferentiationError where the graph was released or a saved
        tensor was modified since.
        """
        raise NotImplementedError

    def mask_behind(self, _i: int, _cotangents: Sequence[Any], _mask: Any, _pulled: Any) -> Any:
        """Which zeros of `pulled`, the cotangent of operand `i`, were computed, as a mask of what was taken; None where
        none were, or nobody knows. `mask` is that of the result's cotangent."""

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
