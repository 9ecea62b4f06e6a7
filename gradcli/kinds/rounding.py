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
from gradcli.primitives.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.comparisons import equal, logical_and, where
from gradcli.primitives.powers import whole_power
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}
# Larger than what rounding makes, and none of them small: a single sample has few chances to show too little.
_MOST = 16.0
# D. Knuth's linear congruential generator MMIX.
_FACTOR, _SUMMAND, _MODULUS = 6364136223846793005, 1442695040888963407, 2**64
# There are at least so many factors that no two arrays are likely to be off by the same.
_FEWEST = 2**14
# Those of an array with more elements are not kept.
_MANY = 2**20
# The elements of arrays beyond which it is not asked whether they are the same.
_MANY_TO_COMPARE = 1_000
# The bits of numbers that are no results of rounding but by a rare chance.
_SHORT = 24
# Numbers at which functions have simple values.
_TRIVIAL = (0.0, 1.0, -1.0)
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
        # The factors of results, as those of one operation on the same numbers round alike.
        self._alike: dict[tuple[Any, ...], Any] = {}

    def off(self, value: Any) -> Any:
        """`value`, of any kinds, with each number off by 8 to 16 units of its last place; a zero stays, as None does."""
        if value is None:
            return None
        if isinstance(value, Batched):
            return Batched(self.off(value.rows), value.nesting)
        return bind(multiply, (value, self._factors(value)), _NO_PARAMS)

    def off_as_result(
        self, primitive: Primitive, result: Any, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        """The result of an operation as `off` has it, unless it is exact and these are spared."""
        if not self.spare_exact:
            return self.off(result)
        if all(type(x) is float for x in (result, *operands)) and _is_exact(primitive, result, operands, params):
            return result
        return self._off_alike(primitive, result, operands, params)

    def _off_alike(self, primitive: Primitive, result: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """A result as `off` has it, and as the same operation on the same numbers had it before."""
        key = rounding_key(primitive, operands, params)
        if key is None or isinstance(result, Kind):
            return self.off(result)
        factors = self._alike.get(key)
        if factors is None:
            factors = self._alike[key] = self._factors(result)
        return bind(multiply, (result, factors), _NO_PARAMS)

    def off_unless_exact(self, total: Any, a: Any, b: Any) -> Any:
        """The sum of `a` and `b` as `off` has it, unless it is exact: an exponent less 1 must stay a whole number."""
        if type(total) is float and type(a) is float and type(b) is float and total - a == b and total - b == a:
            return total
        off = self._off_alike(add, total, (a, b), _NO_PARAMS) if self.spare_exact else self.off(total)
        if type(total) is float:
            return off
        exact = logical_and(equal(subtract(total, a), b), equal(subtract(total, b), a))
        return where(exact, total, off)

    def _factors(self, value: Any) -> Any:
        limits.charge_steps(_FACTORS)
        shape, dtype = arrays.shape(value), arrays.dtype_name(value)
        self._state = (self._state * _FACTOR + _SUMMAND) % _MODULUS
        start = self._state / _MODULUS
        if not shape:
            return _factor(start - 1.0 if start < 0.5 else start, dtype)
        size = arrays.size(value)
        spread = _spread if size < _MANY else _spread.__wrapped__
        known = spread(max(_FEWEST, 2 ** size.bit_length()), dtype)
        first = int(start * (len(known) - size))
        return arrays.beside(known[first : first + size].reshape(shape), value)


def rounding_key(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The same for operations whose results are rounded off by the same, but for the sign; None where that is not known,
    as of large arrays."""
    if any(isinstance(o, Kind) or arrays.size(o) > _MANY_TO_COMPARE for o in operands):
        return None
    compared = [*map(_fraction if primitive in (multiply, divide) else _compared, operands)]
    key = (primitive, *(sorted(compared, key=repr) if primitive.commutative else compared), *params.items())
    try:
        hash(key)
    except TypeError:
        # As of slices.
        return None
    return key


def _fraction(number: Any) -> Any:
    """What decides how products and quotients are rounded: a power of 2 and a sign are exact."""
    if type(number) in arrays.PLAIN:
        return abs(math.frexp(number)[0])
    xp = arrays.numpy_namespace()
    return _compared(xp.abs(xp.frexp(arrays.on_host(number))[0]))


def _compared(number: Any) -> Any:
    return number if type(number) in arrays.PLAIN else (arrays.shape(number), arrays.on_host(number).tobytes())


def _is_exact(primitive: Primitive, result: float, operands: Sequence[float], params: Mapping[str, Any]) -> bool:
    """Whether the result of an operation on numbers is rounded off by nothing."""
    if not all(map(math.isfinite, (result, *operands))):
        return False
    if primitive is multiply:
        return _is_product(result, *operands)
    if primitive is divide:
        return _is_product(operands[0], result, operands[1])
    return is_first_power(primitive, params) or is_exact_result(result, operands)


def is_first_power(primitive: Primitive, params: Mapping[str, Any]) -> bool:
    """Whether an operation raises a number to the power 0 or 1, which is exact."""
    return primitive is whole_power and params["n"] in (0.0, 1.0)


def is_exact_result(result: float, operands: Sequence[float]) -> bool:
    """Whether a function without a sure test is taken to have rounded off nothing: where the operands and the result have
    few digits, as `gamma(5)` and `exp(0)`, unless the result is a limit that it is near to, as `tanh(20)` and
    `hypot(1e9, 1)`."""
    if not all(map(is_short, (result, *operands))):
        return False
    return all(o in _TRIVIAL for o in operands) or abs(result) not in (1.0, *map(abs, operands))


def _is_product(product: float, a: float, b: float) -> bool:
    (n, d), (n1, d1), (n2, d2) = (number.as_integer_ratio() for number in (product, a, b))
    return n * d1 * d2 == n1 * n2 * d


def is_short(number: Any) -> bool:
    """Whether a number has so few digits that it is no result of rounding; tensors are not looked at."""
    return type(number) is float and math.ldexp(math.frexp(number)[0], _SHORT).is_integer()


def _factor(share: Any, dtype: str) -> Any:
    """1, and beside it so large a share of what numbers are off at most."""
    if dtype in arrays.DTYPES:
        return arrays.astype(1.0 + _MOST * arrays.epsilon(dtype) * share, dtype)
    # Of more digits than a float has, or fewer.
    return arrays.astype(1.0, dtype) + arrays.astype(_MOST * arrays.epsilon(dtype) * share, dtype)


@lru_cache(4)
def _spread(size: int, dtype: str) -> Any:
    """Factors that arrays are off by, of which any that follow each other will do."""
    xp = arrays.numpy_namespace()
    spread = xp.remainder(_GOLDEN * xp.arange(float(size)) ** 2, 1.0)
    return _factor(xp.where(spread < 0.5, spread - 1.0, spread), dtype)
