"""Observers of the node visits of a backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from gradcli.autograd.node import Node

# Called with each node, its cotangents and the resulting cotangents of its operands.
Observer = Callable[[Node, Sequence[Any], Sequence[Any]], None]
observer: ContextVar[Observer | None] = ContextVar("gradcli_observer", default=None)

# The visit of a node with its cotangents; a watcher is called in its place, with it as the first argument.
Visit = Callable[[Node, Sequence[Any]], Sequence[Any]]
visit_wrapper: ContextVar[Callable[[Visit, Node, Sequence[Any]], Sequence[Any]] | None] = ContextVar(
    "gradcli_watcher", default=None
)


@contextmanager
def observing(see: Observer | None) -> Iterator[None]:
    """Within the block, `see` is called for every node that a backward pass visits."""
    token = observer.set(see)
    try:
        yield
    finally:
        observer.reset(token)
