"""Containers of tensors as one vector, which is what minimisers and solvers of equations take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.calculus import containers
from gradcli.calculus.mapping import as_tensor
from gradcli.errors import ShapeError
from gradcli.primitives.conversions import reshape
from gradcli.primitives.shape import concat


def flatten(container: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """The numbers in tuples, lists and dicts as one vector, and the function that puts such a vector in their places.

    Both are operations of the graph. The function raises ShapeError for a vector of another length.
    """
    parts = [as_tensor(x) for x in containers.leaves(container)]
    ends = [0, *accumulate(part.size for part in parts)]

    def unflatten(vector: Any) -> Any:
        whole = as_tensor(vector)
        if whole.shape != (ends[-1],):
            raise ShapeError(f"a vector of {ends[-1]} numbers is needed, not one of shape {list(whole.shape)}")
        pieces = [reshape(whole[start:end], part.shape) for part, (start, end) in zip(parts, pairwise(ends))]
        return containers.filled(container, pieces)

    # Nothing at all is a vector too.
    return concat([reshape(part, (-1,)) for part in parts] or [as_tensor([])]), unflatten
