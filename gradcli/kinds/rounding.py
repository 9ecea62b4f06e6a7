"""Numbers off by a few roundings, as those of a computation are that rounds in another way.

What a computation makes of them, beside what it makes of the numbers themselves, shows how far its
rounding is felt in the result: the stochastic arithmetic of J. Vignes, "A stochastic arithmetic for
reliable scientific computation", Mathematics and Computers in Simulation 35 (1993), with one sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gradcli import arrays, limits
from gradcli.kinds.batch import Batched
from gradcli.primitives.arithmetic import multiply, subtract
from gradcli.primitives.bind import bind
from gradcli.primitives.comparisons import equal, logical_and, where

_NO_PARAMS: Mapping[str, Any] = {}
# The distance from 1 to the next number.
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
# Larger than what rounding makes, and none of them small: a single sample has few chances to show too little.
_MOST = 16.0
# D. Knuth's linear congruential generator MMIX.
_FACTOR, _SUMMAND, _MODULUS = 6364136223846793005, 1442695040888963407, 2**64
# There are at least so many factors that no two arrays are likely to be off by the same.
_FEWEST = 2**14
# Those of an array with more elements are not kept.
_MANY = 2**20
# The squares of whole numbers times it, without their whole parts, are spread evenly and without a pattern.
_GOLDEN = 0.6180339887498949
# What it takes to find them, in eighths of steps.
_FACTORS = 2


class Roundings:
    """A source of roundings; what it gives depends on nothing but how often it was asked."""

    def __init__(self) -> None:
        self._state = 1

    def off(self, value: Any) -> Any:
        """`value`, of any kinds, with each number off by 8 to 16 units of its last place; a zero stays, as None does."""
        if value is None:
            return None
        if isinstance(value, Batched):
            return Batched(self.off(value.rows), value.nesting)
        return bind(multiply, (value, self._factors(value)), _NO_PARAMS)

    def off_unless_exact(self, total: Any, a: Any, b: Any) -> Any:
        """The sum of `a` and `b` as `off` has it, unless it is exact: an exponent less 1 must stay a whole number."""
        if type(total) is float and type(a) is float and type(b) is float:
            return total if total - a == b and total - b == a else self.off(total)
        exact = logical_and(equal(subtract(total, a), b), equal(subtract(total, b), a))
        return where(exact, total, self.off(total))

    def _factors(self, value: Any) -> Any:
        limits.charge_steps(_FACTORS)
        shape, dtype = arrays.shape(value), arrays.dtype_name(value)
        self._state = (self._state * _FACTOR + _SUMMAND) % _MODULUS
        start = self._state / _MODULUS
        if not shape:
            return 1.0 + _MOST * _EPSILON[dtype] * (start - 1.0 if start < 0.5 else start)
        size = arrays.size(value)
        spread = _spread if size < _MANY else _spread.__wrapped__
        known = spread(max(_FEWEST, 2 ** size.bit_length()), dtype)
        first = int(start * (len(known) - size))
        return arrays.beside(known[first : first + size].reshape(shape), value)


@lru_cache(4)
def _spread(size: int, dtype: str) -> Any:
    """Factors that arrays are off by, of which any that follow each other will do."""
    xp = arrays.numpy_namespace()
    spread = xp.remainder(_GOLDEN * xp.arange(float(size)) ** 2, 1.0)
    factors = 1.0 + _MOST * _EPSILON[dtype] * xp.where(spread < 0.5, spread - 1.0, spread)
    return arrays.astype(factors, dtype)
