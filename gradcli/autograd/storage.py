"""The numbers that several tensors share, and how often they were changed."""

from __future__ import annotations

import weakref
from threading import RLock
from typing import Any

from gradcli import arrays
from gradcli.autograd.node import Node

# Threads may change parts of the same numbers, which are read, changed and put back.
sharing_lock = RLock()


class Counter:
    """How often the numbers were changed, of all tensors that count together; `version` is None where nobody counts.

    `nodes` are the operations that keep them as results of theirs, and the numbers of those results.
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
    """The numbers that tensors share; those that have them, or parts of them, are `fresh`, and others forgot them."""

    __slots__ = ("_forgetful", "_fresh", "_most", "numbers")

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers
        self._fresh: list[weakref.ref[Any]] = []
        self._forgetful: list[weakref.ref[Any]] = []
        self._most = 32

    def __len__(self) -> int:
        return arrays.size(self.numbers)

    def data_ptr(self) -> int:
        """A number that tells it from others, with room behind it for its places."""
        return id(self) << 32

    def join(self, tensor: Any) -> None:
        """A tensor has its numbers from here."""
        with sharing_lock:
            self._fresh.append(weakref.ref(tensor))
            if len(self._fresh) > self._most:
                self._fresh = _living(self._fresh)
                self._most = 32 + 2 * len(self._fresh)

    def sharing(self) -> list[Any]:
        """The tensors that share the numbers."""
        known = (reference() for reference in _living(self._fresh + self._forgetful))
        return [tensor for tensor in known if tensor is not None and tensor.place.storage is self]

    def change(self, numbers: Any) -> None:
        """Have other numbers, and all who share them forget theirs."""
        self.numbers = numbers
        known, self._fresh = self._fresh, []
        self._forgetful += known
        if len(self._forgetful) > 2 * self._most:
            self._forgetful = _living(self._forgetful)
            self._most = max(self._most, len(self._forgetful))
        for reference in _living(known):
            tensor = reference()
            if tensor is not None and tensor.place.storage is self:
                tensor.place.forget(tensor)


def _living(references: list[weakref.ref[Any]]) -> list[weakref.ref[Any]]:
    """Each of those whose tensors are there, once."""
    # A tensor has one reference, which is not asked for equality: that is a function of its elements.
    return [*{id(known): known for known in references if known() is not None}.values()]
