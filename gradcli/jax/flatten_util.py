"""`jax.flatten_util`: conversion of pytrees to vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.calculus.functions.flattening import flatten
from gradcli.jax.tree_util import tree_flatten


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a tree as one vector, and the function that restores the tree from such a vector."""
    leaves, structure = tree_flatten(pytree)
    vector, fill = flatten(leaves)
    return vector, lambda given: structure.unflatten(fill(given))
