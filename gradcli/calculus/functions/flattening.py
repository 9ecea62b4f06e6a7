"""Flattens containers of tensors into one vector, the form that minimisers and equation solvers take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.calculus.functions import pytrees
from gradcli.calculus.functions.mapping import as_tensor
from gradcli.errors import ShapeError
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.shape import concat


def flatten(container: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return the elements of nested containers as one vector, and the function that restores the structure from such a
    vector.

    Both are recorded in the graph. The function raises ShapeError for a vector of another length.
    """
    parts = [as_tensor(x) for x in pytrees.leaves(container)]
    ends = [0, *accumulate(part.size for part in parts)]

    def unflatten(vector: Any) -> Any:
        whole = as_tensor(vector)
        if whole.shape != (ends[-1],):
            raise ShapeError(f"a vector of {ends[-1]} numbers is needed, not one of shape {list(whole.shape)}")
        pieces = [reshape(whole[start:end], part.shape) for part, (start, end) in zip(parts, pairwise(ends))]
        return pytrees.unflatten(container, pieces)

    # An empty container becomes an empty vector.
    return concat([reshape(part, (-1,)) for part in parts] or [as_tensor([])]), unflatten
