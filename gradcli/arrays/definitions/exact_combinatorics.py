"""Permutations and binomial coefficients of integers up to 2,000, correctly rounded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from gradcli.arrays.definitions.common_definitions import product_and_rest

Array = Any
# A number in double-double arithmetic: a float, and its rounding error.
Double = tuple[Array, Array]

# The largest n of the table. Beyond it a binomial coefficient is finite only for small k, where SciPy is accurate.
HIGHEST = 2000
_BITS = 106


@cache
def _table() -> Sequence[Array]:
    """The factorials as n! = (high + low)*2**exponent for n from 0 on, with 1/2 <= high <= 1."""
    import numpy as np

    high, low, exponents = (np.empty(HIGHEST + 1) for _ in range(3))
    factorial = 1
    for n in range(HIGHEST + 1):
        factorial *= max(n, 1)
        length = factorial.bit_length()
        digits = factorial << (_BITS - length) if length < _BITS else factorial >> (length - _BITS)
        first = float(digits)
        high[n], low[n] = first * 2.0**-_BITS, float(digits - int(first)) * 2.0**-_BITS
        exponents[n] = length
    return high, low, exponents.astype("int64")


def _of_factorial(n: Array) -> tuple[Double, Array]:
    high, low, exponents = _table()
    return (high[n], low[n]), exponents[n]


def _product(x: Double, y: Double) -> Double:
    high, rest = product_and_rest(x[0], y[0])
    return high, rest + (x[0] * y[1] + x[1] * y[0])


def _quotient(n: Array, below: Double, exponent: Array) -> Array:
    """n!/(below*2**exponent), rounded."""
    import numpy as np

    (high, low), scale = _of_factorial(n)
    first = high / below[0]
    product, rest = product_and_rest(first, below[0])
    second = ((high - product) - rest + low - first * below[1]) / below[0]
    with np.errstate(over="ignore"):
        return np.ldexp(first + second, scale - exponent)


def choices(n: Array, k: Array) -> Array:
    """Binomial coefficients n!/(k!*(n - k)!) for integer arrays with 0 <= k <= n <= 2000."""
    first, of_first = _of_factorial(k)
    second, of_second = _of_factorial(n - k)
    return _quotient(n, _product(first, second), of_first + of_second)


def arrangements(n: Array, k: Array) -> Array:
    """The numbers of permutations n!/(n - k)! for integer arrays with 0 <= k <= n <= 2000."""
    return _quotient(n, *_of_factorial(n - k))
