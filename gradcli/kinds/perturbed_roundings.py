"""Rounding-error estimates: numbers perturbed by a few roundings, as by a computation that rounds differently.

The difference between the results for perturbed and for actual numbers shows how sensitive the results are to rounding:
the stochastic arithmetic of J. Vignes, "A stochastic arithmetic for reliable scientific computation", Mathematics and
Computers in Simulation 35 (1993), with one sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gradcli import arrays, limits
from gradcli.arrays.mathematical_constants import GOLDEN_RATIO
from gradcli.kinds.batch import Batched
from gradcli.primitives.bind import Kind, bind
from gradcli.primitives.entries.arithmetic import add, divide, multiply, subtract
from gradcli.primitives.entries.comparisons import equal, logical_and, where
from gradcli.primitives.entries.powers import whole_power
from gradcli.primitives.primitive import Primitive

_NO_PARAMS: Mapping[str, Any] = {}
# The largest perturbation, in units of rounding, and twice the smallest. It is larger than actual rounding errors, as a
# single sample could underestimate them by chance.
_MAX_PERTURBATION = 16.0
# D. Knuth's linear congruential generator MMIX.
_LCG_MULTIPLIER, _LCG_INCREMENT, _LCG_MODULUS = 6364136223846793005, 1442695040888963407, 2**64
# The smallest table of factors, such that two arrays are unlikely to get the same ones.
_MIN_TABLE_SIZE = 2**14
# The number of elements of an array from which its table of factors is not cached.
_UNCACHED_SIZE = 2**20
# The number of elements above which arrays are not compared.
_MANY_TO_COMPARE = 1_000
# A number with at most this many significant bits is taken for exact, as a rounded result rarely is that short.
_EXACT_BITS = 24
# Arguments at which functions have simple values.
_TRIVIAL = (0.0, 1.0, -1.0)
# The cost of a set of factors, in eighths of a step (see `gradcli.limits`).
_FACTORS_COST = 2


class Perturbation:
    """A deterministic source of perturbations, which depend only on the number of calls before.

    With `spare_exact`, results of operations that are evidently exact are not perturbed.
    """

    def __init__(self, *, spare_exact: bool = False) -> None:
        self.spare_exact = spare_exact
        self._state = 1
        # The factors of results: the same operation on the same numbers has the same rounding error.
        self._alike: dict[tuple[Any, ...], Any] = {}

    def off(self, value: Any) -> Any:
        """`value`, of any kind, with each number perturbed by 8 to 16 units of its last place; 0 and None are
        unchanged."""
        if value is None:
            return None
        if isinstance(value, Batched):
            return Batched(self.off(value.rows), value.nesting)
        return bind(multiply, (value, self._factors(value)), _NO_PARAMS)

    def perturb_result(
        self, primitive: Primitive, result: Any, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        """The perturbed result of an operation; the result itself if it is exact and such results are spared."""
        if not self.spare_exact:
            return self.off(result)
        if all(type(x) is float for x in (result, *operands)) and _is_exact(primitive, result, operands, params):
            return result
        return self._perturb_consistently(primitive, result, operands, params)

    def _perturb_consistently(
        self, primitive: Primitive, result: Any, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        """The perturbed result, with the factors that the same operation on the same numbers had before."""
        key = rounding_key(primitive, operands, params)
        if key is None or isinstance(result, Kind):
            return self.off(result)
        factors = self._alike.get(key)
        if factors is None:
            factors = self._alike[key] = self._factors(result)
        return bind(multiply, (result, factors), _NO_PARAMS)

    def perturb_sum(self, total: Any, a: Any, b: Any) -> Any:
        """The perturbed sum of `a` and `b`; the sum itself if it is exact, as an exponent minus 1 must remain an
        integer."""
        if type(total) is float and type(a) is float and type(b) is float and total - a == b and total - b == a:
            return total
        off = self._perturb_consistently(add, total, (a, b), _NO_PARAMS) if self.spare_exact else self.off(total)
        if type(total) is float:
            return off
        exact = logical_and(equal(subtract(total, a), b), equal(subtract(total, b), a))
        return where(exact, total, off)

    def _factors(self, value: Any) -> Any:
        limits.charge_steps(_FACTORS_COST)
        shape, dtype = arrays.shape(value), arrays.real_dtype(arrays.dtype_name(value))
        self._state = (self._state * _LCG_MULTIPLIER + _LCG_INCREMENT) % _LCG_MODULUS
        start = self._state / _LCG_MODULUS
        if not shape:
            return _factor(start - 1.0 if start < 0.5 else start, dtype)
        size = arrays.size(value)
        spread = _spread if size < _UNCACHED_SIZE else _spread.__wrapped__
        known = spread(max(_MIN_TABLE_SIZE, 2 ** size.bit_length()), dtype)
        first = int(start * (len(known) - size))
        return arrays.like_library_of(known[first : first + size].reshape(shape), value)


def rounding_key(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """A key that is equal for operations whose results have the same rounding error up to sign.

    None if that is not known, as for large arrays.
    """
    if any(isinstance(o, Kind) or arrays.size(o) > _MANY_TO_COMPARE for o in operands):
        return None
    compared = [*map(_fraction if primitive in (multiply, divide) else _compared, operands)]
    key = (primitive, *(sorted(compared, key=repr) if primitive.commutative else compared), *params.items())
    try:
        hash(key)
    except TypeError:
        # An unhashable parameter, such as a slice.
        return None
    return key


def _fraction(number: Any) -> Any:
    """The mantissa, which determines the rounding of products and quotients: powers of 2 and signs are exact.

    A complex number is compared as a whole: its parts round in sums of products.
    """
    if arrays.is_complex(number):
        return _compared(number)
    if type(number) in arrays.PYTHON_NUMBERS:
        return abs(math.frexp(number)[0])
    xp = arrays.numpy_namespace()
    return _compared(xp.abs(xp.frexp(arrays.on_host(number))[0]))


def _compared(number: Any) -> Any:
    return number if type(number) in arrays.PYTHON_NUMBERS else (arrays.shape(number), arrays.on_host(number).tobytes())


def _is_exact(primitive: Primitive, result: float, operands: Sequence[float], params: Mapping[str, Any]) -> bool:
    """Return whether the result of an operation on numbers has no rounding error."""
    if not all(map(math.isfinite, (result, *operands))):
        return False
    if primitive is multiply:
        return _is_product(result, *operands)
    if primitive is divide:
        return _is_product(operands[0], result, operands[1])
    return is_first_power(primitive, params) or is_exact_result(result, operands)


def is_first_power(primitive: Primitive, params: Mapping[str, Any]) -> bool:
    """Return whether an operation raises a number to the power 0 or 1, which is exact."""
    return primitive is whole_power and params["n"] in (0.0, 1.0)


def is_exact_result(result: float, operands: Sequence[float]) -> bool:
    """Return whether the result of a function without a reliable test is assumed to be exact.

    It is if operands and result have few bits, as in `gamma(5)` and `exp(0)`, unless the result is a limit that it is
    close to, as in `tanh(20)` and `hypot(1e9, 1)`.
    """
    if not all(map(is_short, (result, *operands))):
        return False
    return all(o in _TRIVIAL for o in operands) or abs(result) not in (1.0, *map(abs, operands))


def _is_product(product: float, a: float, b: float) -> bool:
    (n, d), (n1, d1), (n2, d2) = (number.as_integer_ratio() for number in (product, a, b))
    return n * d1 * d2 == n1 * n2 * d


def is_short(number: Any) -> bool:
    """Return whether a float has so few significant bits that it is not the result of rounding; False for anything
    else."""
    return type(number) is float and math.ldexp(math.frexp(number)[0], _EXACT_BITS).is_integer()


def _factor(share: Any, dtype: str) -> Any:
    """1 plus `share` of the largest perturbation, in a dtype."""
    if dtype in arrays.DTYPES:
        return arrays.astype(1.0 + _MAX_PERTURBATION * arrays.epsilon(dtype) * share, dtype)
    # A dtype with higher or lower precision than the default ones.
    return arrays.astype(1.0, dtype) + arrays.astype(_MAX_PERTURBATION * arrays.epsilon(dtype) * share, dtype)


@lru_cache(4)
def _spread(size: int, dtype: str) -> Any:
    """A table of perturbation factors, any consecutive ones of which can be used for an array."""
    xp = arrays.numpy_namespace()
    # Fractional parts of multiples of the golden ratio by square numbers are evenly distributed without a pattern.
    spread = xp.remainder(GOLDEN_RATIO * xp.arange(float(size)) ** 2, 1.0)
    return _factor(xp.where(spread < 0.5, spread - 1.0, spread), dtype)
