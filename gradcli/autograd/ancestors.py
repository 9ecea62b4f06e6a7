"""The one walk over the graph: from values to the operations that they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from gradcli import limits
from gradcli.autograd.node import Node
from gradcli.autograd.tensor_base import TensorBase


def ancestors(*values: Any, after: int = -1, past: Callable[[Node], bool] | None = None) -> list[Node]:
    """The operations that `values` depend on, latest first, so each before those that it depends on itself.

    A node is one of those that it depends on, and what is neither that nor a Tensor depends on none. Those up to the
    sequence number `after` are left out, and with them all that only they depend on; so is what is reached only by way
    of nodes that are not to be walked `past`. Each operation that is found takes an eighth of a step.
    """
    found: set[Node] = set()
    waiting = [value.grad_fn if isinstance(value, TensorBase) else value for value in values]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node.sequence > after and node not in found:
            found.add(node)
            if past is None or past(node):
                waiting += [edge[0] for edge in node.edges if edge is not None]
    limits.charge_steps(len(found))
    return sorted(found, key=attrgetter("sequence"), reverse=True)


def beginning(sources: Iterable[Any]) -> int:
    """The sequence number of the earliest of nodes and tensors: an operation that depends on one has a higher one."""
    nodes = (s if isinstance(s, Node) else s.grad_fn or s for s in sources)
    return min((n.sequence if isinstance(n, Node) else n.since for n in nodes), default=-1)


def reaches_earlier(values: Sequence[Any], began: int, own: Iterable[Any] = ()) -> bool:
    """Whether the graph of `values` has leaves from before the sequence number `began`, other than its `own`."""
    targets = [edge[0] for node in ancestors(*values) for edge in node.edges if edge is not None]
    earlier = (t for t in (*values, *targets) if isinstance(t, TensorBase) and t.since < began)
    known = {id(x) for x in own}
    return any(t.is_leaf and t.requires_grad and id(t) not in known for t in earlier)
