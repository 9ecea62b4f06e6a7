"""Numbers off by a few roundings, as those of a computation are that rounds in another way.

What a computation makes of them, beside what it makes of the numbers themselves, shows how far its
rounding is felt in the result: the stochastic arithmetic of J. Vignes, "A stochastic arithmetic for
reliable scientific computation", Mathematics and Computers in Simulation 35 (1993), with one sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gradcli import arrays, limits
from gradcli.kinds.batch import Batched
from gradcli.primitives.arithmetic import divide, multiply, subtract
from gradcli.primitives.bind import bind
from gradcli.primitives.comparisons import equal, logical_and, where
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}
# The distance from 1 to the next number: none for truth values and whole numbers, which are not rounded.
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
# Larger than what rounding makes, and none of them small: a single sample has few chances to show too little.
_MOST = 16.0
# D. Knuth's linear congruential generator MMIX.
_FACTOR, _SUMMAND, _MODULUS = 6364136223846793005, 1442695040888963407, 2**64
# There are at least so many factors that no two arrays are likely to be off by the same.
_FEWEST = 2**14
# Those of an array with more elements are not kept.
_MANY = 2**20
# The bits of numbers that are no results of rounding but by a rare chance.
_SHORT = 24
# The squares of whole numbers times it, without their whole parts, are spread evenly and without a pattern.
_GOLDEN = 0.6180339887498949
# What it takes to find them, in eighths of steps.
_FACTORS = 2


class Roundings:
    """A source of roundings; what it gives depends on nothing but how often it was asked. With `spare_exact` results of
    operations that are plainly exact are not off."""

    def __init__(self, *, spare_exact: bool = False) -> None:
        self.spare_exact = spare_exact
        self._state = 1

    def off(self, value: Any) -> Any:
        """`value`, of any kinds, with each number off by 8 to 16 units of its last place; a zero stays, as None does."""
        if value is None:
            return None
        if isinstance(value, Batched):
            return Batched(self.off(value.rows), value.nesting)
        return bind(multiply, (value, self._factors(value)), _NO_PARAMS)

    def off_as_result(self, primitive: Primitive, result: Any, operands: Sequence[Any]) -> Any:
        """The result of an operation as `off` has it, unless it is exact and these are spared."""
        if self.spare_exact and all(type(x) is float for x in (result, *operands)):
            return result if _is_exact(primitive, result, operands) else self.off(result)
        return self.off(result)

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
            return 1.0 + _MOST * _EPSILON.get(dtype, 0.0) * (start - 1.0 if start < 0.5 else start)
        size = arrays.size(value)
        spread = _spread if size < _MANY else _spread.__wrapped__
        known = spread(max(_FEWEST, 2 ** size.bit_length()), dtype)
        first = int(start * (len(known) - size))
        return arrays.beside(known[first : first + size].reshape(shape), value)


def _is_exact(primitive: Primitive, result: float, operands: Sequence[float]) -> bool:
    """Whether the result of an operation on numbers is rounded off by nothing; of functions without a sure test it is so
    where the operands and the result have few digits, as `sqrt(4)` and `exp(0)`."""
    if not all(map(math.isfinite, (result, *operands))):
        return False
    if primitive is multiply:
        return _is_product(result, *operands)
    if primitive is divide:
        return _is_product(operands[0], result, operands[1])
    return all(map(is_short, (result, *operands)))


def _is_product(product: float, a: float, b: float) -> bool:
    (n, d), (n1, d1), (n2, d2) = (number.as_integer_ratio() for number in (product, a, b))
    return n * d1 * d2 == n1 * n2 * d


def is_short(number: Any) -> bool:
    """Whether a number has so few digits that it is no result of rounding; tensors are not looked at."""
    return type(number) is float and math.ldexp(math.frexp(number)[0], _SHORT).is_integer()


@lru_cache(4)
def _spread(size: int, dtype: str) -> Any:
    """Factors that arrays are off by, of which any that follow each other will do."""
    xp = arrays.numpy_namespace()
    spread = xp.remainder(_GOLDEN * xp.arange(float(size)) ** 2, 1.0)
    factors = 1.0 + _MOST * _EPSILON.get(dtype, 0.0) * xp.where(spread < 0.5, spread - 1.0, spread)
    return arrays.astype(factors, dtype)
