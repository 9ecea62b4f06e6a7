"""`jax.flatten_util`: trees as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.calculus.flattening import flatten
from gradcli.jax.tree_util import tree_flatten


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a tree as one vector, and the function that puts such a vector in their places."""
    leaves, structure = tree_flatten(pytree)
    vector, fill = flatten(leaves)
    return vector, lambda given: structure.unflatten(fill(given))
