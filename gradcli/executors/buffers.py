"""Reusable memory for programs: a set of arrays for each run in progress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli import arrays
from gradcli.arrays.shapes import Shape
from gradcli.named_tuples import NamedTuple

# The maximum size in bytes of a set that is kept between runs; larger sets would not stay in the cache of a core.
_MOST_KEPT = 2**21
_BYTES = {"bool": 1, "float32": 4}


class Buffer(NamedTuple):
    """The shape and dtype of a reusable array."""

    shape: Shape
    dtype: str


class Buffers:
    """A pool of sets of arrays with the given shapes and dtypes, shared by threads; a thread may take several sets.

    Free sets are in `unused`, which generated code accesses directly. Sets are kept after use (`are_kept`) if they are
    small.
    """

    def __init__(self, kinds: Sequence[Buffer]) -> None:
        self._kinds = kinds
        self.unused: list[list[Any]] = []
        self.are_kept = sum(math.prod(k.shape) * _BYTES.get(k.dtype, 8) for k in kinds) <= _MOST_KEPT

    def take(self) -> list[Any]:
        """A set for exclusive use."""
        try:
            return self.unused.pop()
        except IndexError:
            return self.made()

    def made(self) -> list[Any]:
        """A new set."""
        return [_array(*kind) for kind in self._kinds]

    def give(self, taken: list[Any]) -> None:
        """Return a set that is not read any more. Returning it is optional."""
        if self.are_kept:
            self.unused.append(taken)


def _array(shape: Shape, dtype: str) -> Any:
    np = arrays.numpy_namespace()
    # Searching a 0 in the `base`, a bytearray, takes a tenth of the time of searching it in the array.
    return np.ndarray(shape, bool, bytearray(math.prod(shape))) if dtype == "bool" else np.empty(shape, dtype)
