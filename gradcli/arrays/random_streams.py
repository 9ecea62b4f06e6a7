"""Random numbers as PyTorch draws them on the CPU: for a seed the same numbers, drawn in the same order.

The source is the Mersenne Twister of 32 bits, https://doi.org/10.1145/272991.272995, which NumPy has as well.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

from gradcli.arrays.namespaces import numpy_namespace

# The bits of a random number that become those of a float of each dtype.
_BITS = {"float64": 53, "float32": 24, "float16": 11}
# PyTorch draws whole numbers from a longer range out of 64 random bits, and from a shorter one out of 32.
_LONG_RANGE = 2**28
# So many normal numbers are made together, where there are as many: from as many uniform ones.
_BLOCK = 16


class RandomStream:
    """The random numbers that follow from a seed. Several threads may draw from one."""

    def __init__(self, seed: int) -> None:
        numpy = numpy_namespace()
        self._bits = numpy.random.MT19937()
        self._bits.state = numpy.random.RandomState(seed % 2**32).get_state(legacy=True)
        # PyTorch makes normal numbers in pairs where they are few, and keeps the second.
        self._second: float | None = None
        self._lock = Lock()

    @property
    def state(self) -> Any:
        """What the next numbers depend on."""
        return self._bits.state, self._second

    @state.setter
    def state(self, state: Any) -> None:
        self._bits.state, self._second = state

    def uniform(self, count: int, dtype: str) -> Any:
        """So many numbers from 0 on and below 1, as an array of NumPy."""
        with self._lock:
            return self._uniform(count, dtype)

    def _uniform(self, count: int, dtype: str) -> Any:
        bits = _BITS[dtype]
        whole = self._long(count) if dtype == "float64" else self._bits.random_raw(count)
        return ((whole & (2**bits - 1)) * 2.0**-bits).astype(dtype)

    def _long(self, count: int) -> Any:
        """So many whole numbers of 64 random bits."""
        pairs = self._bits.random_raw(2 * count)
        return (pairs[0::2] << 32) | pairs[1::2]

    def normal(self, count: int, dtype: str, mean: float = 0.0, deviation: float = 1.0) -> Any:
        """So many normal numbers, as an array of NumPy."""
        with self._lock:
            if count < _BLOCK:
                numbers = numpy_namespace().array([self._single() for _ in range(count)], "float64")
            else:
                numbers = self._blocks(count, dtype)
            return (numbers * deviation + mean).astype(dtype)

    def _single(self) -> float:
        if self._second is not None:
            kept, self._second = self._second, None
            return kept
        angle, radius = self._uniform(2, "float64").tolist()
        angle, radius = 2 * math.pi * angle, math.sqrt(-2 * math.log1p(-radius))
        self._second = radius * math.sin(angle)
        return radius * math.cos(angle)

    def _blocks(self, count: int, dtype: str) -> Any:
        """The transform of Box and Muller, in blocks; the last one ends with the last number, and overlaps with that
        before it where the count is no multiple of its size."""
        numpy = numpy_namespace()
        numbers = self._uniform(count, dtype)
        full = count - count % _BLOCK
        numbers[:full] = _box_muller(numpy, numbers[:full].reshape(-1, _BLOCK)).reshape(-1)
        if full < count:
            numbers[-_BLOCK:] = _box_muller(numpy, self._uniform(_BLOCK, dtype))
        return numbers

    def exponential(self, count: int, dtype: str) -> Any:
        """So many exponential numbers of rate 1, as an array of NumPy."""
        return -numpy_namespace().log1p(-self.uniform(count, "float64")).astype(dtype)

    def integers(self, low: int, high: int, count: int) -> Any:
        """So many whole numbers from `low` on and below `high`, as an array of NumPy."""
        with self._lock:
            size = high - low
            whole = self._long(count) if size >= _LONG_RANGE else self._bits.random_raw(count)
            return (whole % size).astype("int64") + low

    def permutation(self, count: int) -> list[int]:
        """The numbers below `count` in a random order."""
        order = [*range(count)]
        with self._lock:
            drawn = self._bits.random_raw(max(count - 1, 0)).tolist()
        for place, number in enumerate(drawn):
            other = place + number % (count - place)
            order[place], order[other] = order[other], order[place]
        return order


def _box_muller(numpy: Any, uniform: Any) -> Any:
    half = _BLOCK // 2
    radius = numpy.sqrt(-2 * numpy.log(1 - uniform[..., :half]))
    angle = (2 * math.pi) * uniform[..., half:]
    return numpy.concatenate([radius * numpy.cos(angle), radius * numpy.sin(angle)], axis=-1)
