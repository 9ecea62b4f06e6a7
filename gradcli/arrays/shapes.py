"""Shapes and broadcasting, independent of any array library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, zip_longest
from operator import index

from gradcli.errors import CallError, ShapeError
from gradcli.type_hints import Any

Shape = tuple[int, ...]


class Size(tuple[int, ...]):
    """The shape of a tensor as its `size()` method returns it, like `torch.Size`."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found

    def __repr__(self) -> str:
        return f"gradcli.Size({list(self)})"


class ElementCount(int):
    """The number of elements of a tensor, like NumPy's `size`, which can also be called, like PyTorch's.

    `x.size()` is the shape, and `x.size(dim)` the size of one axis.
    """

    sizes: Size

    def __new__(cls, shape: Shape) -> ElementCount:
        count = super().__new__(cls, math.prod(shape))
        count.sizes = Size(shape)
        return count

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.sizes),)

    def __call__(self, dim: Any = None) -> Any:
        """The shape, or the size of axis `dim`.

        Raises ShapeError for an axis out of range, CallError if `dim` is not an integer.
        """
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
    """The broadcast shape of operands of an elementwise function.

    Raises ShapeError if the shapes do not fit: sizes, aligned at the last axis, must be equal or 1.
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


def element_ranges(counts: Mapping[str, int]) -> dict[str, range]:
    """The positions of the elements of each tensor among the concatenated elements of all, from their numbers of
    elements."""
    ends = accumulate(counts.values())
    return {name: range(end - count, end) for (name, count), end in zip(counts.items(), ends)}
