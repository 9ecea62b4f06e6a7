"""Shapes, without arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from operator import index
from typing import Any

from gradcli.errors import CallError, ShapeError

Shape = tuple[int, ...]


class Size(tuple[int, ...]):
    """The sizes of all axes, as a method of tensors gives them."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of these sizes has."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found

    def __repr__(self) -> str:
        return f"gradcli.Size({list(self)})"


class ElementCount(int):
    """The number of elements of a tensor, as NumPy's `size`, which can be called, as PyTorch's: `x.size()` are the sizes
    of all axes, and `x.size(dim)` that of one."""

    sizes: Size

    def __new__(cls, shape: Shape) -> ElementCount:
        count = super().__new__(cls, math.prod(shape))
        count.sizes = Size(shape)
        return count

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.sizes),)

    def __call__(self, dim: Any = None) -> Any:
        """Raises ShapeError for an axis that there is not, and CallError for what is no whole number."""
        if dim is None:
            return self.sizes
        rank = len(self.sizes)
        try:
            number = index(dim)
        except TypeError:
            raise CallError(f"an axis must be a whole number, not {type(dim).__name__}") from None
        if not -rank <= number < rank:
            raise ShapeError(f"axis {number} is out of range for a tensor of {rank} dimensions")
        return self.sizes[number]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of an elementwise function of operands of these shapes.

    Raises ShapeError where they do not fit: sizes, counted from the last axis, are equal or 1.
    """
    if not any(shapes):
        return ()
    sizes = []
    for others in map(set, zip_longest(*map(reversed, shapes), fillvalue=1)):
        others.discard(1)
        if len(others) > 1:
            text = " and ".join(str(list(shape)) for shape in shapes)
            raise ShapeError(f"shapes {text} do not broadcast together")
        sizes.append(others.pop() if others else 1)
    return tuple(reversed(sizes))
