"""Values with their first and second derivatives, and the chain rule for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# A float64 array of NumPy.
Array = Any


class Expansion(NamedTuple):
    """Values `[…, m]`, their derivatives by q variables `[…, m, q]`, and second ones `[…, m, q, q]`, up to some order."""

    value: Array
    first: Array = None
    second: Array = None

    @property
    def order(self) -> int:
        return (self.first is not None) + (self.second is not None)

    def of(self, inner: Expansion) -> Expansion:
        """The same values by the variables of their inputs, whose derivatives are those of `inner`."""
        first = second = None
        if self.first is not None and inner.first is not None:
            first = self.first @ inner.first
        if self.second is not None and inner.first is not None and inner.second is not None:
            second = np.einsum("...mrs,...ra,...sb->...mab", self.second, inner.first, inner.first)
            second += np.einsum("...mr,...rab->...mab", self.first, inner.second)
        return Expansion(self.value, first, second)

    def taken(self, key: object) -> Expansion:
        """Those at an index of the leading axes."""
        return Expansion(*(None if part is None else part[key] for part in self))


def constants(value: Array, variables: int, order: int) -> Expansion:
    """Values that depend on no variable."""
    shape = (*value.shape, variables)
    first = np.zeros(shape, value.dtype) if order else None
    return Expansion(value, first, np.zeros((*shape, variables), value.dtype) if order > 1 else None)


def joined(parts: list[Expansion], axis: int = -1) -> Expansion:
    """Expansions one after another along an axis of the values."""
    if axis < 0:
        axis += parts[0].value.ndim
    return Expansion(*(None if of[0] is None else np.concatenate(of, axis) for of in zip(*parts)))
