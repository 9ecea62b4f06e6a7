"""NumPy's `r_` and `c_`: concatenation of arrays and tensors by indexing."""

from __future__ import annotations

from typing import Any

from gradcli import arrays
from gradcli.errors import CallError
from gradcli.primitives.conversions import reshape
from gradcli.primitives.entries.manipulation.creation import arange
from gradcli.primitives.entries.shape import concat
from gradcli.primitives.operators import operand


class IndexConcatenator:
    """Concatenates the items of its index along an axis.

    Items are tensors, arrays, numbers, and slices as ranges; those with fewer than `fewest` axes get axes of size 1 at
    the end.
    """

    def __init__(self, name: str, axis: int, fewest: int) -> None:
        self.name = name
        self.axis = axis
        self.fewest = fewest

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        return concat([self._part(item) for item in items], axis=self.axis)

    def _part(self, item: Any) -> Any:
        if isinstance(item, slice) and item.stop is not None and not isinstance(item.step, complex):
            item = arange(item.start or 0, item.stop, 1 if item.step is None else item.step)
        if isinstance(item, (slice, str)):
            raise CallError(f"'{self.name}' takes no {item!r}", hint="give it tensors, numbers and ranges like 1:10")
        part = operand(item)
        shape = arrays.shape(part)
        return reshape(part, (*shape, *[1] * (self.fewest - len(shape)))) if len(shape) < self.fewest else part

    def __repr__(self) -> str:
        return f"<{self.name}>"


r_ = IndexConcatenator("r_", axis=0, fewest=1)
c_ = IndexConcatenator("c_", axis=-1, fewest=2)
