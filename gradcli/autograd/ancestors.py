"""The traversal of the graph from values back to the operations that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from gradcli import limits
from gradcli.autograd.node import Node
from gradcli.autograd.tensor_base import TensorBase


def ancestors(*values: Any, after: int = -1, past: Callable[[Node], bool] | None = None) -> list[Node]:
    """The operations that `values` depend on, latest first, so that each precedes those that it depends on.

    `values` are nodes or Tensors; a node is its own ancestor, and other values have none. Nodes with a sequence number
    of at most `after` are left out, and so is everything reached only through nodes for which `past` is false. Each
    operation found is charged an eighth of a step.
    """
    found: set[Node] = set()
    waiting = [value._node if isinstance(value, TensorBase) else value for value in values]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.sequence > after and node not in found:
            found.add(node)
            if past is None or past(node):
                waiting += [edge[0] for edge in node.edges if edge is not None]
    limits.charge_steps(len(found))
    return sorted(found, key=attrgetter("sequence"), reverse=True)


def beginning(sources: Iterable[Any]) -> int:
    """The sequence number of the earliest of some nodes and tensors; their dependents have higher numbers."""
    nodes = (s if isinstance(s, Node) else s._node or s for s in sources)
    return min((n.sequence if isinstance(n, Node) else n.since for n in nodes), default=-1)


def reaches_earlier(values: Sequence[Any], began: int, own: Iterable[Any] = ()) -> bool:
    """Whether the graph of `values` has leaves older than the sequence number `began`, other than those in `own`."""
    targets = [edge[0] for node in ancestors(*values) for edge in node.edges if edge is not None]
    earlier = (t for t in (*values, *targets) if isinstance(t, TensorBase) and t.since < began)
    known = {id(x) for x in own}
    return any(t.is_leaf and t.requires_grad and id(t) not in known for t in earlier)
