"""Data shared by several tensors, and version counters of in-place changes."""

from __future__ import annotations

import weakref
from threading import RLock
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node

# Writing a part of shared data reads, changes and replaces all of it, which threads must not interleave.
sharing_lock = RLock()


class Counter:
    """The version counter of tensors that count in-place changes together; None if changes are not counted.

    `nodes` are the nodes that may have saved the data as a result, with the output numbers.
    """

    __slots__ = ("nodes", "version")

    def __init__(self, version: int | None) -> None:
        self.version = version
        self.nodes: list[tuple[weakref.ref[Node], int]] = []

    def watch(self, node: Node | None, number: int) -> None:
        if node is not None and node.keeps_results():
            self.nodes.append((weakref.ref(node), number))

    def count(self) -> None:
        if self.version is None:
            return
        self.version += 1
        for reference, number in self.nodes:
            node = reference()
            if node is not None:
                node.output_modified(number, self.version)


class Storage:
    """The data shared by tensors.

    The tensors in `_fresh` hold current data; those in `_forgetful` have dropped theirs and will fetch it again.
    """

    __slots__ = ("_forgetful", "_fresh", "_most", "numbers")

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers
        self._fresh: list[weakref.ref[Any]] = []
        self._forgetful: list[weakref.ref[Any]] = []
        self._most = 32

    def __len__(self) -> int:
        return arrays.size(self.numbers)

    def data_ptr(self) -> int:
        """A number that identifies the storage, followed by enough unused numbers for the positions in it."""
        return id(self) << 32

    def join(self, tensor: Any) -> None:
        """Register a tensor that holds data of this storage."""
        with sharing_lock:
            self._fresh.append(weakref.ref(tensor))
            if len(self._fresh) > self._most:
                self._fresh = _living(self._fresh)
                self._most = 32 + 2 * len(self._fresh)

    def sharing(self) -> list[Any]:
        """The tensors that share the storage."""
        known = (reference() for reference in _living(self._fresh + self._forgetful))
        return [tensor for tensor in known if tensor is not None and tensor.place.storage is self]

    def change(self, numbers: Any) -> None:
        """Replace the data; all tensors that share it drop theirs."""
        self.numbers = numbers
        known, self._fresh = self._fresh, []
        self._forgetful += known
        if len(self._forgetful) > 2 * self._most:
            self._forgetful = _living(self._forgetful)
            self._most = max(self._most, len(self._forgetful))
        for reference in _living(known):
            tensor = reference()
            if tensor is not None and tensor.place.storage is self:
                tensor.place.invalidate(tensor)


def _living(references: list[weakref.ref[Any]]) -> list[weakref.ref[Any]]:
    """The references to living tensors, without duplicates."""
    # Compared by id, because the equality of two references is that of their tensors, which is elementwise.
    return [*{id(known): known for known in references if known() is not None}.values()]
