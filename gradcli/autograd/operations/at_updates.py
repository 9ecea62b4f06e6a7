"""Functional updates `x.at[key]` as in JAX: new tensors with some elements changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.arrays.index_keys import has_arrays
from gradcli.autograd.tensor_base import TensorBase
from gradcli.errors import CallError
from gradcli.primitives.conversions import broadcast_to, cast
from gradcli.primitives.entries.arithmetic import add, divide, multiply, negative
from gradcli.primitives.entries.comparisons import maximum, minimum
from gradcli.primitives.entries.indexing import index, normalize_key, scatter
from gradcli.primitives.entries.powers import power


class At:
    """The object `x.at`, which is indexed by a key."""

    def __init__(self, x: TensorBase) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Elements:
        return Elements(self._x, key)


class Elements:
    """Selected elements of a tensor. Each method returns a copy of the tensor with these elements changed."""

    def __init__(self, x: TensorBase, key: Any) -> None:
        self._x = x
        self._key = normalize_key(key, x)

    def get(self) -> Any:
        return index(self._x, self._key)

    def set(self, values: Any) -> Any:
        """Set the elements to `values`; of repeated positions the last value is kept."""
        changed: Any = self._x.clone()
        changed[self._key] = values
        return changed

    def add(self, values: Any) -> Any:
        """Add `values` to the elements; values at repeated positions accumulate."""
        fitting = broadcast_to(values, arrays.shape(self.get()))
        return add(self._x, scatter(cast(fitting, self._x.dtype), self._key, self._x.shape))

    def subtract(self, values: Any) -> Any:
        return self.add(negative(values))

    def multiply(self, values: Any) -> Any:
        return self._changed(multiply, values)

    mul = multiply

    def divide(self, values: Any) -> Any:
        return self._changed(divide, values)

    def power(self, values: Any) -> Any:
        return self._changed(power, values)

    def min(self, values: Any) -> Any:
        return self._changed(minimum, values)

    def max(self, values: Any) -> Any:
        return self._changed(maximum, values)

    def apply(self, function: Callable[[Any], Any]) -> Any:
        self._expect_once()
        return self.set(function(self.get()))

    def _changed(self, function: Callable[[Any, Any], Any], values: Any) -> Any:
        self._expect_once()
        return self.set(function(self.get(), values))

    def _expect_once(self) -> None:
        if not has_arrays(self._key):
            return
        xp = arrays.numpy_namespace()
        places = xp.arange(self._x.size).reshape(self._x.shape)[self._key]
        if xp.unique(places).size < places.size:
            raise CallError("an element is changed several times", hint="at[…].add adds up what comes several times")
