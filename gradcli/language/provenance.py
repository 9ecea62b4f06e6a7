"""Which call or loop of a program an operation was recorded in, and what its result was called."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.node import next_sequence
from gradcli.autograd.tensor import Tensor
from gradcli.language.syntax import tree


class Provenance:
    """Is told of a run as it goes. This one takes no notice."""

    def enter(self, node: tree.Call | tree.For | tree.While) -> None:
        """A function is called, its arguments known, or a loop begins."""

    def repeat(self) -> None:
        """The innermost loop goes round once more."""

    def leave(self) -> None:
        """What was entered last is done."""

    def bind(self, name: str, value: Any) -> None:
        """A name is given a value."""


UNKNOWN = Provenance()


class Frame:
    """A call or a loop: its operations have sequence numbers between `begin` and `end`.

    `parent` is the number of the frame around it, `times` how often a loop went round.
    """

    __slots__ = ("begin", "end", "node", "parent", "times")

    def __init__(self, node: tree.Call | tree.For | tree.While, parent: int | None) -> None:
        self.node = node
        self.parent = parent
        self.begin = next_sequence()
        self.end = self.begin
        self.times = 0


class Log(Provenance):
    """A provenance that is kept: the frames in the order in which they began, and the first name of
    every leaf and operation that got one."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.names: dict[Any, str] = {}
        self._open: list[int] = []

    def enter(self, node: tree.Call | tree.For | tree.While) -> None:
        self.frames.append(Frame(node, self._open[-1] if self._open else None))
        self._open.append(len(self.frames) - 1)

    def repeat(self) -> None:
        self.frames[self._open[-1]].times += 1

    def leave(self) -> None:
        self.frames[self._open.pop()].end = next_sequence()

    def bind(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.requires_grad:
            self.names.setdefault(value.grad_fn or value, name)
