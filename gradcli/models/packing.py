"""Conversion between named arrays of any shapes and the single flat vector that optimisers work on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradcli import arrays
from gradcli.errors import BindingError, ShapeError, did_you_mean
from gradcli.named_tuples import NamedTuple

# The lower and the upper bound of a name, each a number, or an array with one for each element.
Bounds = tuple[Any, Any]


class Packing(NamedTuple):
    """The names in the order of their elements in the vector, each with its shape."""

    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Packing:
        """The packing of numbers and arrays by name."""
        xp = arrays.numpy_namespace()
        return cls({name: xp.shape(value) for name, value in values.items()})

    @property
    def size(self) -> int:
        """The length of the vector."""
        return sum(map(math.prod, self.shapes.values()))

    def places(self) -> dict[str, slice]:
        """The slice of the vector that holds the elements of each name."""
        found, first = {}, 0
        for name, shape in self.shapes.items():
            found[name] = slice(first, first + math.prod(shape))
            first = found[name].stop
        return found

    def flat(self, values: Mapping[str, Any]) -> Any:
        """The float64 vector `[size]` of values by name. A value of None counts as zeros, as the gradient of a name
        that the program does not depend on. Raises ShapeError where a value has another shape."""
        xp = arrays.numpy_namespace()
        vector = xp.empty(self.size)
        for name, place in self.places().items():
            value, shape = values[name], self.shapes[name]
            if value is not None and xp.shape(value) != shape:
                raise ShapeError(f"'{name}' has shape {list(xp.shape(value))}, not {list(shape)}")
            vector[place] = 0.0 if value is None else xp.ravel(value)
        return vector

    def named(self, vector: Any) -> dict[str, Any]:
        """The values by name: scalars as floats, and the others as arrays that do not share memory with the vector."""
        return {
            name: vector[place].reshape(self.shapes[name]).copy() if self.shapes[name] else float(vector[place.start])
            for name, place in self.places().items()
        }

    def rows_named(self, vectors: Any) -> dict[str, Any]:
        """The values by name for k vectors `[k, n]`, each of shape `[k, …]`."""
        xp = arrays.numpy_namespace()
        return {
            name: xp.ascontiguousarray(vectors[:, place]).reshape(len(vectors), *self.shapes[name])
            for name, place in self.places().items()
        }

    def labels(self) -> list[str]:
        """A label for each element of the vector: `b1`, or `w[0, 2]` in an array."""
        xp = arrays.numpy_namespace()
        return [
            _element(name, list(key)) if shape else name
            for name, shape in self.shapes.items()
            for key in xp.ndindex(*shape)
        ]

    def bounds(self, given: Mapping[str, Bounds]) -> tuple[Any, Any]:
        """The vectors `[n]` of lower and upper bounds, infinite where none are given. Raises BindingError for a name
        that is not in the packing, and where a lower bound is above the upper one."""
        xp = arrays.numpy_namespace()
        low, high = xp.full(self.size, -math.inf), xp.full(self.size, math.inf)
        places = self.places()
        for name, (least, greatest) in given.items():
            if name not in places:
                hint = did_you_mean(name, places, f"there are {', '.join(places)}")
                raise BindingError(f"there are bounds for '{name}', which is not varied", hint=hint)
            for vector, bound in ((low, least), (high, greatest)):
                if xp.shape(bound) not in ((), self.shapes[name]):
                    raise BindingError(f"the bounds of '{name}' have shape {list(xp.shape(bound))}")
                vector[places[name]] = xp.ravel(bound)
            if not xp.all(low[places[name]] <= high[places[name]]):
                raise BindingError(f"no number lies between the bounds of '{name}'", hint="the lower one comes first")
        return low, high


def _element(name: str, index: list[int]) -> str:
    """The label of an element: `w[0, 2]`, or `real(w[0, 2])` in an array of parts, `real(w)`."""
    return f"{name[:-1]}{index})" if name.endswith(")") else f"{name}{index}"
