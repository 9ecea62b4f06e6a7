"""Random numbers as PyTorch draws them on the CPU: the same numbers for the same seed and order of calls.

The source is the 32-bit Mersenne Twister, https://doi.org/10.1145/272991.272995, which NumPy provides.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import Any

from gradcli.arrays.namespaces import numpy_namespace

# The number of random bits in a float of each dtype.
_BITS = {"float64": 53, "float32": 24, "float16": 11}
# PyTorch draws integers from a range of at least this length out of 64 random bits, and else out of 32.
_LONG_RANGE = 2**28
# PyTorch draws this many or more normal numbers in blocks of this size, each from as many uniform numbers.
_BLOCK = 16


class RandomStream:
    """A stream of random numbers from a seed. Thread-safe."""

    def __init__(self, seed: int) -> None:
        numpy = numpy_namespace()
        self._bits = numpy.random.MT19937()
        self._bits.state = numpy.random.RandomState(seed % 2**32).get_state(legacy=True)
        # PyTorch generates few normal numbers in pairs, and keeps the second for the next call.
        self._second: float | None = None
        self._lock = Lock()

    @property
    def state(self) -> Any:
        """The complete state of the stream."""
        return self._bits.state, self._second

    @state.setter
    def state(self, state: Any) -> None:
        self._bits.state, self._second = state

    def uniform(self, count: int, dtype: str) -> Any:
        """`count` uniform numbers in [0, 1), as a NumPy array."""
        with self._lock:
            return self._uniform(count, dtype)

    def _uniform(self, count: int, dtype: str) -> Any:
        bits = _BITS[dtype]
        whole = self._long(count) if dtype == "float64" else self._bits.random_raw(count)
        return ((whole & (2**bits - 1)) * 2.0**-bits).astype(dtype)

    def _long(self, count: int) -> Any:
        """`count` integers of 64 random bits."""
        pairs = self._bits.random_raw(2 * count)
        return (pairs[0::2] << 32) | pairs[1::2]

    def normal(self, count: int, dtype: str, mean: float = 0.0, deviation: float = 1.0) -> Any:
        """`count` normal numbers, as a NumPy array."""
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
        """Box-Muller transform in blocks.

        If `count` is not a multiple of the block size, the last block is drawn anew and overlaps the one before it.
        """
        numpy = numpy_namespace()
        numbers = self._uniform(count, dtype)
        full = count - count % _BLOCK
        numbers[:full] = _box_muller(numpy, numbers[:full].reshape(-1, _BLOCK)).reshape(-1)
        if full < count:
            numbers[-_BLOCK:] = _box_muller(numpy, self._uniform(_BLOCK, dtype))
        return numbers

    def exponential(self, count: int, dtype: str) -> Any:
        """`count` exponential numbers of rate 1, as a NumPy array."""
        return -numpy_namespace().log1p(-self.uniform(count, "float64")).astype(dtype)

    def integers(self, low: int, high: int, count: int) -> Any:
        """`count` integers in [low, high), as a NumPy array."""
        with self._lock:
            size = high - low
            whole = self._long(count) if size >= _LONG_RANGE else self._bits.random_raw(count)
            return (whole % size).astype("int64") + low

    def permutation(self, count: int) -> list[int]:
        """The integers below `count` in random order."""
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
