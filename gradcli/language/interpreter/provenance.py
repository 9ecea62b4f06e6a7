"""Records in which call or loop of a program each operation ran, and to which name its result was assigned."""

from __future__ import annotations

from collections.abc import Mapping

from gradcli.autograd.node import next_sequence
from gradcli.autograd.tensor import Tensor
from gradcli.language.syntax import tree
from gradcli.type_hints import Any


class Provenance:
    """Receives the events of a run. This class ignores them."""

    def enter(self, node: tree.Call | tree.For | tree.While) -> None:
        """A call begins, after its arguments were evaluated, or a loop begins."""

    def repeat(self) -> None:
        """The innermost loop begins another iteration."""

    def leave(self) -> None:
        """The call or loop entered last has ended."""

    def bind(self, name: str, value: Any) -> None:
        """A value is assigned to a name."""

    def handlers(self, handlers: Mapping[type, Any]) -> Mapping[type, Any]:
        """The handlers of nodes that evaluate a program whose events this receives."""
        return handlers


UNKNOWN = Provenance()


class CallFrame:
    """A call or a loop, whose operations have sequence numbers between `begin` and `end`.

    `parent` is the index of the enclosing frame, `times` the number of iterations of a loop.
    """

    __slots__ = ("begin", "end", "node", "parent", "times")

    def __init__(self, node: tree.Call | tree.For | tree.While, parent: int | None) -> None:
        self.node = node
        self.parent = parent
        self.begin = next_sequence()
        self.end = self.begin
        self.times = 0


class Log(Provenance):
    """Keeps all frames in the order in which they began, and the first name of each leaf and operation."""

    def __init__(self) -> None:
        self.frames: list[CallFrame] = []
        self.names: dict[Any, str] = {}
        self._open: list[int] = []

    def enter(self, node: tree.Call | tree.For | tree.While) -> None:
        self.frames.append(CallFrame(node, self._open[-1] if self._open else None))
        self._open.append(len(self.frames) - 1)

    def repeat(self) -> None:
        self.frames[self._open[-1]].times += 1

    def leave(self) -> None:
        self.frames[self._open.pop()].end = next_sequence()

    def bind(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.requires_grad:
            self.names.setdefault(value.grad_fn or value, name)
