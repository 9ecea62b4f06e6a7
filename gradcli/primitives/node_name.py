"""The names of graph nodes."""

from __future__ import annotations

from typing import final


@final
class NodeName(str):
    """The name of a node. It is a string that returns itself when called, as PyTorch nodes have a method `name()`."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)
