"""Mutable references to tensors, for programs that change tensors in place: all names and views see a change.

The arrays themselves are immutable; a change stores another tensor in the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gradcli import arrays, limits
from gradcli.errors import NotRecordableError, ShapeError
from gradcli.primitives.conversions import broadcast_to, reshape
from gradcli.primitives.entries.indexing import index, normalize_key
from gradcli.type_hints import Any

Value = Any


class SizeNeededError(ShapeError):
    """Raised where a result depends on the number of elements of a tensor that is not known."""


class MutableReference:
    """A mutable reference to a tensor, which is `value`."""

    __slots__ = ("value",)
    # Whether it can only be read row by row, and has no `value`.
    by_rows = False

    def __init__(self, value: Value) -> None:
        self.value = value

    def set(self, value: Value) -> None:
        """Replace all elements by `value`, which must broadcast to the shape of the tensor."""
        self.value = broadcast_to(value, arrays.shape(self.value))

    def put(self, key: Any, value: Value) -> None:
        """Replace the elements at `key`."""
        from gradcli.primitives.entries.manipulation.functional_update import set_at

        self.value = set_at(self.value, key, value)

    def view(self, move: Callable[[Value], Value]) -> View:
        """A view of the elements that `move` selects and rearranges."""
        # Imported here as only programs that change tensors need it.
        from gradcli.primitives.entries.manipulation.functional_update import positions

        shape = arrays.shape(self.value)
        limits.charge(2 * math.prod(shape))
        return View(self, arrays.to_numpy(move(positions(shape, ...))))


class HiddenReference(MutableReference):
    """The class of a reference while a round of a loop that changes it is traced, where reading it is refused."""

    __slots__ = ()

    @property
    def value(self) -> Value:
        raise NotRecordableError("a round reads a tensor that it changes by another name")


class View(MutableReference):
    """A view of elements of another mutable reference; `places` are their flat indices there."""

    __slots__ = ("base", "places")

    def __init__(self, base: MutableReference, places: Any) -> None:
        self.base = base
        self.places = places

    @property
    def value(self) -> Value:
        from gradcli.primitives.entries.manipulation.functional_update import basic_key

        whole = self.base.value
        key = basic_key(self.places, arrays.shape(whole)) if self.places.size else None
        return index(reshape(whole, (-1,)), self.places) if key is None else index(whole, key)

    def set(self, value: Value) -> None:
        self._write(self.places, broadcast_to(value, self.places.shape))

    def put(self, key: Any, value: Value) -> None:
        from gradcli.primitives.entries.manipulation.functional_update import positions

        places = self.places.reshape(-1)[positions(self.places.shape, key)]
        self._write(places, broadcast_to(value, places.shape))

    def _write(self, places: Any, value: Value) -> None:
        from gradcli.primitives.entries.manipulation.functional_update import set_at_positions

        self.base.value = set_at_positions(self.base.value, places, value)

    def view(self, move: Callable[[Value], Value]) -> View:
        return View(self.base, arrays.to_numpy(move(self.places)))


class ElementwiseInput(MutableReference):
    """An input that is read element by element, or the part of it at `key`. Any other use of it gets `read(name, key)`.

    `sizes` is the shape of the input, or None where it is not known; it then follows from the elements that are read.
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
        # Only inputs of unknown shape get here: reading one of known shape, which comes first, makes it a tensor.
        raise self._needs_sizes()

    def _needs_sizes(self) -> SizeNeededError:
        return SizeNeededError(
            f"how many elements '{self.name}' has is not known, and this depends on it",
            hint=f"give it a value for its size, as in {self.name}=[1,2,3]",
        )

    def part(self, key: Any) -> ElementwiseInput | None:
        """The part at a key, or None where the key is not made of indices within the shape.

        Raises ShapeError where the shape is needed and not known.
        """
        places = normalize_key(key)
        counted = all(type(i) is int for i in places)
        if self.sizes is None:
            if counted and min(places, default=0) >= 0:
                return ElementwiseInput(self.name, None, self.read, self.key + places)
            raise self._needs_sizes()
        left = self.sizes[len(self.key) :]
        if not counted or len(places) > len(left) or any(not -s <= i < s for i, s in zip(places, left)):
            return None
        return ElementwiseInput(self.name, self.sizes, self.read, self.key + tuple(i % s for i, s in zip(places, left)))


def is_basic(key: tuple[Any, ...]) -> bool:
    """Return whether a key consists of scalars, slices, None and `...`, so that indexing with it gives a view."""
    return all(k is None or k is Ellipsis or isinstance(k, slice) or not arrays.shape(k) for k in key)
