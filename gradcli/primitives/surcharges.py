"""What NumPy takes for some numbers beyond what it takes for most, in the time that one element of a sum or a sine takes.

Each is a function of the operands that gives so many elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli import arrays, limits

# So many elements at most take no longer than their call, whatever they are.
_FEW = 64
# From here on NumPy reduces angles number by number, by a long pi.
_FAR = 1e8
# Of more numbers than this, NumPy may compute a sum of products in threads of its own.
_SUMMED = 8192
# Bits of a quotient that are found in the time of an element, and how many of them no element is charged for.
_BITS, _FIRST_BITS = 6, 16
# The orders of Bessel functions from which on recurrences are long.
_HIGH_ORDER = 30
# The time, in that of elements of a sum, from which on one number takes long enough to be looked at.
_LONG = 100
# A matrix is not squared more often.
_SQUARINGS = 64


def of_one(function: Callable[..., Any], time: int, surcharge: Callable[..., int]) -> Callable[..., Any]:
    """A function of one element that takes so much `time`, for plain numbers: one that takes long charges what these take
    beyond that, as it is for arrays of them."""
    if time < _LONG:
        return function

    def charged(*operands: Any, **params: Any) -> Any:
        budget = limits.budget()
        if budget is not None:
            budget.charge(surcharge(*operands, **params))
        return function(*operands, **params)

    return charged


def of_angles(x: Any) -> int:
    """For sines and cosines."""
    if type(x) in arrays.PLAIN or x.size <= _FEW:
        return 0
    # The sum of the squares is found in one call.
    if x.size <= _SUMMED and (flat := x.ravel()).dot(flat) < _FAR**2:
        return 0
    return 3 * _count(abs(x) > _FAR)


def of_quotients(x: Any, y: Any) -> int:
    """For whole quotients and their remainders, which are found bit by bit."""
    np = arrays.numpy_namespace()
    if _floats(x, y) is None:
        return 0
    x, y = np.asarray(x, "float64"), np.asarray(y, "float64")
    if np.max(abs(x), initial=0.0) < 2.0**_FIRST_BITS * np.min(abs(y), initial=math.inf):
        return 0
    return int(np.maximum(np.frexp(x)[1] - np.frexp(y)[1], 0).sum()) // _BITS


def of_powers(x: Any, q: Any) -> int:
    """For powers of negative numbers, and those that overflow or come near 0, which are computed number by number."""
    np = arrays.numpy_namespace()
    limits = _floats(x, q)
    if limits is None or max(arrays.size(x), arrays.size(q)) <= _FEW:
        return 0
    most = float(limits.maxexp - 2)
    least, largest = np.min(x), np.max(x)
    if least > 0.0 and max(abs(np.log2(least)), abs(np.log2(largest))) * np.max(abs(q)) < most:
        return 0
    exponent = abs(q * np.log2(abs(x)))
    return 6 * _count(np.logical_and(np.logical_or(np.less(x, 0.0), exponent > most), np.not_equal(x, 0.0)))


def of_points(y: Any, x: Any) -> int:
    """For the angles of points, of which those very near and very far are computed one by one."""
    np = arrays.numpy_namespace()
    limits = _floats(x, y)
    if limits is None or max(arrays.size(x), arrays.size(y)) <= _FEW:
        return 0
    near, far = 4.0 * float(limits.tiny), 2.0 ** (limits.maxexp - 64)
    low, high = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
    return 8 * _count(np.logical_or(high > far, np.logical_and(low < near, low > 0.0)))


def of_digamma(x: Any) -> int:
    """For numbers near the first zero of digamma below 0, where SciPy has a series of many terms."""
    return 180 * _count(abs(x + 0.525) < 0.325)


def of_digamma_rise(x: Any, y: Any) -> int:
    """For the difference of two values of digamma, where it is computed as such."""
    return of_digamma(x) + of_digamma(x + y)


def of_sinc(x: Any, *, n: int) -> int:
    """For the derivatives of sinc by their order."""
    return 3 * n * arrays.size(x)


def of_bessel_i(x: Any, *, n: int) -> int:
    """For modified Bessel functions by their order."""
    return 25 * arrays.size(x) + 100 * _count(abs(x) > 500.0) if n > 1 else 0


def of_bessel_j(x: Any, *, n: int) -> int:
    """For Bessel functions by their order."""
    if n < 2:
        return 0
    slow = 40 if n < _HIGH_ORDER else 190
    return 25 * arrays.size(x) + slow * _count(abs(x) > max(4.0, n / 8))


def of_bessel_of_number(v: Any, x: Any) -> int:
    """For Bessel functions of any order, between their series and their asymptotic expansions; so far out that these have no
    digits, SciPy takes as many steps as the order says."""
    np = arrays.numpy_namespace()
    between = _count(np.logical_and(np.not_equal(abs(v), 0.5), np.logical_and(abs(x) > 4.0, abs(x) < 1e8)))
    orders = np.minimum(abs(v), 1e12)
    return 5000 * between + int(np.nansum(np.where(abs(x) > 1e15, 3.0 * orders, 0.0)))


def of_betainc(a: Any, b: Any, x: Any) -> int:
    """For large parameters, where SciPy's continued fraction is long."""
    np = arrays.numpy_namespace()
    smaller = np.clip(np.minimum(a, b) + 0.0 * x, 0.0, 1e18)
    return int(np.nansum(np.where(smaller > 1500.0, 6.0 * np.cbrt(smaller), 0.0)))


def of_derivative(time: int) -> Callable[..., int]:
    """For the derivatives, of the order `n`, of a function, which are sums of many terms."""
    return lambda *operands, n: time * (n + 1) * max(map(arrays.size, operands)) if n else 0


def of_matrix_exp(x: Any) -> int:
    """For exponentials of large matrices: they are squared once for each power of 2 in their norm."""
    np = arrays.numpy_namespace()
    n = arrays.shape(x)[-1]
    norm = np.max(np.sum(abs(x), -2), initial=0.0)
    squarings = min(max(int(np.frexp(norm)[1]), 0), _SQUARINGS) if np.isfinite(norm) else _SQUARINGS
    return squarings * (3000 + 10 * arrays.size(x) + arrays.size(x) * n // 32)


def _count(condition: Any) -> int:
    return int(arrays.numpy_namespace().count_nonzero(condition))


def _floats(*operands: Any) -> Any:
    """What NumPy says of the floats that functions of the operands are; None where they are whole numbers."""
    np = arrays.numpy_namespace()
    dtype = np.result_type(*operands)
    return np.finfo(dtype) if dtype.kind == "f" else None
