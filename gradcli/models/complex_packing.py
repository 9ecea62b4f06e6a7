"""Conversion between named complex arrays and the flat real vector of their parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from gradcli import arrays


class ComplexPacking(NamedTuple):
    """As `Packing`, for values of which those of the names in `of_complex` are complex: the vector has the real and the
    imaginary part of each of their elements, one after the other."""

    shapes: Mapping[str, tuple[int, ...]]
    of_complex: frozenset[str]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ComplexPacking:
        """The packing of numbers and arrays by name."""
        shapes = {name: arrays.shape(value) for name, value in values.items()}
        return cls(shapes, frozenset(name for name, value in values.items() if arrays.is_complex(value)))

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(map(self._length, self.shapes))

    def _length(self, name: str) -> int:
        return math.prod(self.shapes[name]) * (2 if name in self.of_complex else 1)

    def places(self) -> dict[str, slice]:
        """The slice of the vector that holds the elements of each name."""
        found, first = {}, 0
        for name in self.shapes:
            found[name] = slice(first, first + self._length(name))
            first = found[name].stop
        return found

    def flat(self, values: Mapping[str, Any]) -> Any:
        """The float64 vector `[size]` of values by name."""
        xp = arrays.numpy_namespace()
        parts = [real_parts(values[name], name in self.of_complex) for name in self.shapes]
        return xp.concatenate(parts) if parts else xp.zeros(0)

    def named(self, vector: Any) -> dict[str, Any]:
        """The values by name: scalars as Python numbers, and the others as arrays."""
        xp = arrays.numpy_namespace()
        found = {}
        for name, place in self.places().items():
            part = xp.ascontiguousarray(vector[place])
            part = part.view("complex128") if name in self.of_complex else part
            found[name] = part.reshape(self.shapes[name]).copy() if self.shapes[name] else part[0].item()
        return found

    def labels(self) -> list[str]:
        """A label for each element of the vector."""
        xp = arrays.numpy_namespace()
        found = []
        for name, shape in self.shapes.items():
            elements = [f"{name}{list(key)}" if shape else name for key in xp.ndindex(*shape)]
            parts = ("real({})", "imag({})") if name in self.of_complex else ("{}",)
            found += [part.format(element) for element in elements for part in parts]
        return found


def real_parts(value: Any, is_complex: bool = True) -> Any:
    """The elements as a float64 vector; of complex ones the real and the imaginary part of each."""
    xp = arrays.numpy_namespace()
    vector = xp.ascontiguousarray(xp.asarray(value, "complex128" if is_complex else "float64")).reshape(-1)
    return vector.view("float64")
