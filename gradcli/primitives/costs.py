"""The cost of an operation as a number of array elements, the unit of `limits.charge`.

That unit is the time of one element of a sum or a sine. Values that NumPy processes more slowly than most have an
additional cost, by function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from gradcli import arrays, limits
from gradcli.arrays.shapes import Shape, broadcast
from gradcli.errors import ShapeError
from gradcli.type_hints import Any


def broadcast_elements(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    """The size of the broadcast result; 0 if the shapes do not broadcast, which the operation itself reports."""
    if len(shapes) == 1:
        return math.prod(shapes[0])
    try:
        return math.prod(broadcast(shapes))
    except ShapeError:
        return 0


def matmul_cost(multiplications: int) -> int:
    """The number of elements that take as long as `multiplications` multiplications of a matrix product, 64 of which
    cost as much as one element."""
    return multiplications // 64


def largest_operand_size(shapes: Sequence[Shape], _params: Mapping[str, Any]) -> int:
    """The number of elements of the largest operand, as the cost; 1 without operands."""
    return max((math.prod(s) for s in shapes), default=1)


def sort_cost(times: int = 1) -> Callable[[Sequence[Shape], Mapping[str, Any]], int]:
    """The cost of sorting along `axis` (default: the last); `times` is 2 or more where positions are computed or
    used."""

    def elements(shapes: Sequence[Shape], params: Mapping[str, Any]) -> int:
        size: int = shapes[0][params.get("axis", -1)]
        return math.prod(shapes[0]) * (1 + times * size.bit_length() // 2)

    return elements


# Up to this number of elements the time of the call dominates, whatever the values.
_FREE_SIZE = 64
# Magnitude from which NumPy reduces angles one by one, with a long approximation of pi.
_LARGE_ANGLE = 1e8
# Above this number of elements NumPy may compute a dot product in its own threads.
_SUMMED = 8192
# Bits of a quotient that are computed in the time of one element, and bits that are free of charge.
_BITS, _FIRST_BITS = 6, 16
# The order from which the recurrences of Bessel functions are long.
_HIGH_ORDER = 30
# The cost of one element, in elements, from which the surcharge is computed for single numbers too.
_LONG = 100
# The largest number of squarings of a matrix.
_SQUARINGS = 64


def of_one(function: Callable[..., Any], time: int, surcharge: Callable[..., int]) -> Callable[..., Any]:
    """`function` of plain numbers, which also charges the surcharge if its `time` is long, as for arrays."""
    if time < _LONG:
        return function

    def charged(*operands: Any, **params: Any) -> Any:
        budget = limits.budget()
        if budget is not None:
            budget.charge(surcharge(*operands, **params))
        return function(*operands, **params)

    return charged


def of_angles(x: Any) -> int:
    """The surcharge for sines and cosines of large angles."""
    if type(x) in arrays.PYTHON_NUMBERS or x.size <= _FREE_SIZE:
        return 0
    # The sum of squares is one call and bounds every magnitude.
    if x.size <= _SUMMED and (flat := x.ravel()).dot(flat) < _LARGE_ANGLE**2:
        return 0
    return 3 * _count(abs(x) > _LARGE_ANGLE)


def of_quotients(x: Any, y: Any) -> int:
    """The surcharge for floor division and remainders, whose quotients are computed bit by bit."""
    np = arrays.numpy_namespace()
    if _floats(x, y) is None:
        return 0
    x, y = np.asarray(x, "float64"), np.asarray(y, "float64")
    if np.max(abs(x), initial=0.0) < 2.0**_FIRST_BITS * np.min(abs(y), initial=math.inf):
        return 0
    return int(np.maximum(np.frexp(x)[1] - np.frexp(y)[1], 0).sum()) // _BITS


def of_powers(x: Any, q: Any) -> int:
    """The surcharge for powers of negative numbers, and those near overflow or underflow, which NumPy computes one by
    one."""
    np = arrays.numpy_namespace()
    limits = _floats(x, q)
    if limits is None or max(arrays.size(x), arrays.size(q)) <= _FREE_SIZE:
        return 0
    most = float(limits.maxexp - 2)
    least, largest = np.min(x), np.max(x)
    if least > 0.0 and max(abs(np.log2(least)), abs(np.log2(largest))) * np.max(abs(q)) < most:
        return 0
    exponent = abs(q * np.log2(abs(x)))
    return 6 * _count(np.logical_and(np.logical_or(np.less(x, 0.0), exponent > most), np.not_equal(x, 0.0)))


def of_points(y: Any, x: Any) -> int:
    """The surcharge for atan2 of points that are very near to or very far from the origin, which are computed one by
    one."""
    np = arrays.numpy_namespace()
    limits = _floats(x, y)
    if limits is None or max(arrays.size(x), arrays.size(y)) <= _FREE_SIZE:
        return 0
    near, far = 4.0 * float(limits.tiny), 2.0 ** (limits.maxexp - 64)
    low, high = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
    return 8 * _count(np.logical_or(high > far, np.logical_and(low < near, low > 0.0)))


def of_digamma(x: Any) -> int:
    """The surcharge for arguments near the first negative zero of digamma, where SciPy sums a series of many terms."""
    return 180 * _count(abs(x + 0.525) < 0.325)


def of_digamma_rise(x: Any, y: Any) -> int:
    """The surcharge for digamma(x + y) - digamma(x), where it is computed as a difference."""
    return of_digamma(x) + of_digamma(x + y)


def of_sinc(x: Any, *, n: int) -> int:
    """The surcharge for derivatives of sinc, in proportion to their order."""
    return 3 * n * arrays.size(x)


def of_bessel_i(x: Any, *, n: int) -> int:
    """The surcharge for modified Bessel functions of integer order n > 1."""
    return 25 * arrays.size(x) + 100 * _count(abs(x) > 500.0) if n > 1 else 0


def of_bessel_j(x: Any, *, n: int) -> int:
    """The surcharge for Bessel functions of integer order n > 1."""
    if n < 2:
        return 0
    slow = 40 if n < _HIGH_ORDER else 190
    return 25 * arrays.size(x) + slow * _count(abs(x) > max(4.0, n / 8))


def of_bessel_of_number(v: Any, x: Any) -> int:
    """The surcharge for Bessel functions of real order, between the ranges of their series and of their asymptotic
    expansion.

    Beyond 1e15, where no digit is accurate, SciPy takes a number of steps in proportion to the order.
    """
    np = arrays.numpy_namespace()
    between = _count(np.logical_and(np.not_equal(abs(v), 0.5), np.logical_and(abs(x) > 4.0, abs(x) < 1e8)))
    orders = np.minimum(abs(v), 1e12)
    return 5000 * between + int(np.nansum(np.where(abs(x) > 1e15, 3.0 * orders, 0.0)))


def of_betainc(a: Any, b: Any, x: Any) -> int:
    """The surcharge for betainc with large parameters, for which SciPy's continued fraction is long."""
    np = arrays.numpy_namespace()
    smaller = np.clip(np.minimum(a, b) + 0.0 * x, 0.0, 1e18)
    return int(np.nansum(np.where(smaller > 1500.0, 6.0 * np.cbrt(smaller), 0.0)))


def of_derivative(time: int) -> Callable[..., int]:
    """The surcharge for nth derivatives that are sums of a number of terms in proportion to n; `time` is the cost of a
    term."""
    return lambda *operands, n: time * (n + 1) * max(map(arrays.size, operands)) if n else 0


def of_matrix_exp(x: Any) -> int:
    """The surcharge for exponentials of large matrices, which are squared once for each power of 2 in their norm."""
    np = arrays.numpy_namespace()
    n = arrays.shape(x)[-1]
    norm = np.max(np.sum(abs(x), -2), initial=0.0)
    squarings = min(max(int(np.frexp(norm)[1]), 0), _SQUARINGS) if np.isfinite(norm) else _SQUARINGS
    return squarings * (3000 + 10 * arrays.size(x) + arrays.size(x) * n // 32)


def _count(condition: Any) -> int:
    return int(arrays.numpy_namespace().count_nonzero(condition))


def _floats(*operands: Any) -> Any:
    """NumPy's finfo of the result dtype of the operands; None if it is not floating."""
    np = arrays.numpy_namespace()
    dtype = np.result_type(*operands)
    return np.finfo(dtype) if dtype.kind == "f" else None
