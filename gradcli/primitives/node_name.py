"""The names of the nodes that operations make in the graph."""

from __future__ import annotations

from typing import final


@final
class NodeName(str):
    """The name of a node: a text, and called it gives itself, since a node of PyTorch has a method `name()`."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)
