"""Detect when the last cotangent has reached a leaf."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

from gradcli.autograd.ancestors import ancestors
from gradcli.autograd.node import Node


class Ways:
    """For each leaf with hooks, the number of edges through which a cotangent may still arrive.

    The edges are those of waiting nodes and their ancestors. If `useful` is not None, only those nodes are visited.
    """

    def __init__(self, waiting: Iterable[Node], useful: Container[Any] | None) -> None:
        nodes = (node for node in ancestors(*waiting) if useful is None or node in useful)
        self._left = Counter(target for node in nodes for target in node.targets if has_hooks(target))

    def __contains__(self, leaf: Any) -> bool:
        return leaf in self._left

    def ended_by(self, node: Node) -> list[Any]:
        """The leaves that no cotangent can reach any more, now that `node` was visited."""
        ended = []
        for target in node.targets:
            if target in self._left:
                self._left[target] -= 1
                if not self._left[target]:
                    del self._left[target]
                    ended.append(target)
        return ended


def has_hooks(target: Any) -> bool:
    """Whether the target of an edge is a leaf that may have hooks."""
    return not isinstance(target, Node) and target._accumulator is not None
