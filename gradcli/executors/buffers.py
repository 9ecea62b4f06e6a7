"""Memory that is written again in every run of a program, a set of arrays for each run that is under way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradcli import arrays
from gradcli.arrays.shapes import Shape

# So many bytes are kept between the runs of a program: more do not stay in the caches of a core either.
_MOST_KEPT = 2**21
_BYTES = {"bool": 1, "float32": 4}


class Buffer(NamedTuple):
    """An array that is written again in every run."""

    shape: Shape
    dtype: str


class Buffers:
    """Sets of arrays of these shapes and dtypes. Any number of threads may take one, and one may take any number.

    Those that nobody has are in `unused`, where generated text looks itself; they `are_kept` if they are small.
    """

    def __init__(self, kinds: Sequence[Buffer]) -> None:
        self._kinds = kinds
        self.unused: list[list[Any]] = []
        self.are_kept = sum(math.prod(k.shape) * _BYTES.get(k.dtype, 8) for k in kinds) <= _MOST_KEPT

    def take(self) -> list[Any]:
        """A set that nobody else has."""
        try:
            return self.unused.pop()
        except IndexError:
            return self.made()

    def made(self) -> list[Any]:
        """A new set."""
        return [_array(*kind) for kind in self._kinds]

    def give(self, taken: list[Any]) -> None:
        """Have a set used again, in which nobody reads any more. One that is not given back is not missed."""
        if self.are_kept:
            self.unused.append(taken)


def _array(shape: Shape, dtype: str) -> Any:
    np = arrays.numpy_namespace()
    # In the `base` of truth values a 0 is found in a tenth of the time that it takes to look in the array.
    return np.ndarray(shape, bool, bytearray(math.prod(shape))) if dtype == "bool" else np.empty(shape, dtype)
