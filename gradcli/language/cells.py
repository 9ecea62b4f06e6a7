"""Tensors that a program changes in place: every name of one, and every view of it, sees the change.

The numbers themselves never change: a change puts another tensor in the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli import arrays, limits
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.indexing import index

Value = Any


class Cell:
    """A tensor that may be changed. `value` is what it is now."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def set(self, value: Value) -> None:
        """Have all elements replaced by those of a tensor that can be broadcast to it."""
        self.value = broadcast_to(value, arrays.shape(self.value))

    def put(self, key: Any, value: Value) -> None:
        """Have the elements at `key` replaced."""
        from gradcli.primitives.replacing import replaced

        self.value = replaced(self.value, key, value)

    def view(self, move: Callable[[Value], Value]) -> View:
        """A view of what `move`, which moves and leaves out elements, makes of the tensor."""
        # Loaded by programs that change tensors alone.
        from gradcli.primitives.replacing import positions

        shape = arrays.shape(self.value)
        limits.charge(2 * math.prod(shape))
        return View(self, arrays.to_numpy(move(positions(shape, ...))))


class View(Cell):
    """Some of the elements of a cell, at their `places` in it."""

    __slots__ = ("base", "places")

    def __init__(self, base: Cell, places: Any) -> None:
        self.base = base
        self.places = places

    @property
    def value(self) -> Value:
        return index(reshape(self.base.value, (-1,)), self.places)

    def set(self, value: Value) -> None:
        self._write(self.places, broadcast_to(value, self.places.shape))

    def put(self, key: Any, value: Value) -> None:
        from gradcli.primitives.replacing import positions

        places = self.places.reshape(-1)[positions(self.places.shape, key)]
        self._write(places, broadcast_to(value, places.shape))

    def _write(self, places: Any, value: Value) -> None:
        from gradcli.primitives.replacing import replaced

        shape = arrays.shape(self.base.value)
        flat = replaced(reshape(self.base.value, (-1,)), places, value)
        self.base.set(reshape(flat, shape))

    def view(self, move: Callable[[Value], Value]) -> View:
        return View(self.base, arrays.to_numpy(move(self.places)))


def is_basic(key: tuple[Any, ...]) -> bool:
    """Whether a key is made of numbers and slices alone, so that what it takes is a view."""
    return all(k is None or k is Ellipsis or isinstance(k, slice) or not arrays.shape(k) for k in key)
