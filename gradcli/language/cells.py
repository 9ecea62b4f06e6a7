"""Tensors that a program changes in place: every name of one, and every view of it, sees the change.

The numbers themselves never change: a change puts another tensor in the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli import arrays, limits
from gradcli.errors import ShapeError
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.indexing import index, normalize_key

Value = Any


class SizeNeededError(ShapeError):
    """What a program computes depends on how many elements a tensor has, which is not known."""


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
        from gradcli.primitives.replacing import put

        self.base.value = put(self.base.value, places, value)

    def view(self, move: Callable[[Value], Value]) -> View:
        return View(self.base, arrays.to_numpy(move(self.places)))


class InParts(Cell):
    """An input that may be read element by element, or what stands at `key` of it. Whatever does more with it than to take
    an element gets what `read` gives for the key.

    `sizes` are those of the input; None where nobody has said whether it is a number or a tensor, which is then seen by
    what is read of it.
    """

    __slots__ = ("key", "name", "read", "sizes")

    def __init__(
        self,
        name: str,
        sizes: tuple[int, ...] | None,
        read: Callable[[str, tuple[int, ...]], Value],
        key: tuple[int, ...] = (),
    ) -> None:
        self.name = name
        self.sizes = sizes
        self.read = read
        self.key = key

    @property
    def value(self) -> Value:
        return self.read(self.name, self.key)

    @value.setter
    def value(self, _value: Value) -> None:
        # Reading it has made a tensor of one whose sizes are known.
        raise self._needs_sizes()

    def _needs_sizes(self) -> SizeNeededError:
        return SizeNeededError(
            f"how many elements '{self.name}' has is not known, and this depends on it",
            hint=f"give it a value for its size, as in {self.name}=[1,2,3]",
        )

    def part(self, key: Any) -> InParts | None:
        """What stands at a key; None where that is not found by counting. Raises ShapeError where the sizes are needed."""
        places = normalize_key(key)
        counted = all(type(i) is int for i in places)
        if self.sizes is None:
            if counted and min(places, default=0) >= 0:
                return InParts(self.name, None, self.read, self.key + places)
            raise self._needs_sizes()
        left = self.sizes[len(self.key) :]
        if not counted or len(places) > len(left) or any(not -s <= i < s for i, s in zip(places, left)):
            return None
        return InParts(self.name, self.sizes, self.read, self.key + tuple(i % s for i, s in zip(places, left)))


def is_basic(key: tuple[Any, ...]) -> bool:
    """Whether a key is made of numbers and slices alone, so that what it takes is a view."""
    return all(k is None or k is Ellipsis or isinstance(k, slice) or not arrays.shape(k) for k in key)
