"""Special functions of SciPy, with corrections where SciPy is wrong or inaccurate.

SciPy is imported at their first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from gradcli.arrays import spellings
from gradcli.arrays.definitions import common_definitions
from gradcli.timing import phase

# For smaller x, SciPy steps from pole to pole, in time proportional to abs(x).
_MANY_POLES = -20.0
# Above _IVE_FAR SciPy's scaled Bessel functions lose their digits; below _TINY the first term of the series is accurate
# to rounding.
_IVE_FAR, _TINY = 1e6, 1e-9
# For larger abs(x), exp(x) is close to overflow.
_EXP_IS_LARGE = 700.0
# For min(k, n - k) below this and integer n, SciPy computes a binomial coefficient as a product.
_FEW = 20
# The number of elements of a block, chosen so that ten intermediate results fit into the cache of a CPU.
_BLOCK = 8192


def polygamma(n: int, x: Any) -> Any:
    """SciPy's polygamma, in bounded time also for x far below 0.

    With the fractional part f of x, the sum over the poles between is polygamma(1 - f) - polygamma(1 - x).
    """
    import numpy as np
    import scipy.special

    far = np.less(x, _MANY_POLES)
    if not far.any():
        with np.errstate(all="ignore"):
            return scipy.special.polygamma(n, x)
    fraction = np.where(far, x - np.floor(x), x)
    # The other elements are replaced by 1, because their reflection 1 - x could itself be far below 0.
    right, rightmost = np.where(far, 1.0 - fraction, 1.0), np.where(far, 1.0 - x, 1.0)
    with np.errstate(all="ignore"):
        between = scipy.special.polygamma(n, right) - scipy.special.polygamma(n, rightmost)
        value = scipy.special.polygamma(n, fraction)
        return np.where(far, value + (-1.0) ** (n + 1) * between, value)


def erfinv(x: Any) -> Any:
    """SciPy's function, with arguments outside its domain replaced by nan.

    SciPy takes a hundred times as long to handle a domain error.
    """
    import numpy as np
    import scipy.special

    return scipy.special.erfinv(np.where(np.abs(x) > 1.0, np.nan, x))


def j0(x: Any) -> Any:
    return _with_far(_scipy("j0"), 0.0, x)


def j1(x: Any) -> Any:
    return _with_far(_scipy("j1"), 1.0, x)


def y0(x: Any) -> Any:
    return _with_far(_scipy("y0"), 0.0, x, second=True)


def y1(x: Any) -> Any:
    return _with_far(_scipy("y1"), 1.0, x, second=True)


def jv(v: Any, x: Any) -> Any:
    """SciPy's function, with the correct sign of overflowed values, for which SciPy always returns inf."""
    import numpy as np

    value = _with_far(partial(_scipy("jv"), v), v, x)
    infinite = np.isinf(value)
    if not infinite.any():
        return value
    # The sign is that of 1/gamma(v + 1), DLMF 10.2.2.
    return np.where(infinite & np.equal(np.remainder(np.floor(np.add(v, 1.0)), 2.0), 1.0), -np.inf, value)


jv_of_number = jv


def yv(v: Any, x: Any) -> Any:
    """SciPy's function, except for negative half-integer orders.

    For these SciPy returns infinities near 0, where the function is one of the first kind.
    """
    import numpy as np

    value = _with_far(partial(_scipy("yv"), v), v, x, second=True)
    half = np.logical_and(np.less(v, 0.0), np.equal(np.remainder(v, 1.0), 0.5))
    if not half.any():
        return value
    sign = np.where(np.equal(np.remainder(v, 2.0), 1.5), 1.0, -1.0)
    return np.where(half, sign * jv(np.where(half, -v, 0.0), x), value)


def iv(v: Any, x: Any) -> Any:
    """SciPy's function, corrected near 0, near the overflow of exp(x) and for large x.

    SciPy returns 0 near 0, and inf as soon as exp(x) overflows, although the result need not.
    """
    import numpy as np

    size = np.abs(x)
    value = _scipy("iv")(v, x)
    large = np.logical_and(size > _EXP_IS_LARGE, size < np.inf)
    if large.any():
        half = np.exp(0.5 * size)
        scaled = ive(v, x)
        # Where the scaled function has underflowed to 0, the function itself need not be 0.
        value = np.where(np.logical_and(large, np.not_equal(scaled, 0.0)), scaled * half * half, value)
    whole = np.equal(np.remainder(v, 1.0), 0.0)
    tiny = (size < _TINY) & np.not_equal(x, 0.0) & (whole | (np.greater(v, 0.0) & np.greater(x, 0.0)))
    if not tiny.any():
        return value
    order = np.where(whole, np.abs(v), v)
    leading = np.power(0.5 * size, order) * _scipy("rgamma")(order + 1.0)
    return np.where(tiny, np.where(np.less(x, 0.0) & np.equal(np.remainder(v, 2.0), 1.0), -leading, leading), value)


def ive(v: Any, x: Any) -> Any:
    """SciPy's function, corrected for large x, where SciPy has none, and for negative orders.

    For negative orders SciPy rounds pi times the order, or returns nan for infinite values.
    """
    import numpy as np

    from gradcli.arrays.definitions import bessel_definitions

    size, order, whole = np.abs(x), np.abs(v), np.equal(np.remainder(v, 1.0), 0.0)
    value = _scipy("ive")(v, x)
    mirrored = np.logical_and(np.less(v, 0.0) & ~whole, np.greater(x, 0.0))
    if mirrored.any():
        # DLMF 10.27.2.
        second = _scipy("kve")(order, size) * np.exp(-2.0 * size)
        second = np.where(np.isinf(second), _scipy("kv")(order, size) * np.exp(-size), second)
        # A value that overflowed before it is multiplied by a small number need not be infinite.
        second = np.where(np.isinf(second) & (size > 1.0), np.nan, second) * common_definitions.sinpi(np, order)
        value = np.where(mirrored, _scipy("ive")(order, x) + (2.0 / np.pi) * second, value)
    far = (size > _IVE_FAR) & (size < np.inf) & (np.greater(x, 0.0) | whole) & (size > -10.0 * np.where(whole, 0.0, v))
    if not far.any():
        return value
    there = bessel_definitions.ive(np, order, np.where(far, size, 1.0))
    odd = np.less(x, 0.0) & np.equal(np.remainder(v, 2.0), 1.0)
    return np.where(far, np.where(odd, -there, there), value)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """SciPy's function, except where SciPy returns nan for large parameters."""
    import numpy as np

    from gradcli.arrays.definitions import integral_definitions

    value = _scipy("betainc")(a, b, x)
    large = integral_definitions.is_of_large(np, a, b) & np.greater(x, 0.0) & np.less(x, 1.0)
    if not large.any():
        return value
    parameters = [np.where(large, parameter, replacement) for parameter, replacement in ((a, 1.0), (b, 1.0), (x, 0.5))]
    return np.where(large, integral_definitions.betainc_of_large(_functions, *parameters), value).astype(value.dtype)


def hurwitz_zeta(x: Any, q: Any) -> Any:
    """SciPy's function, continued analytically to x < 1, where SciPy returns nan, and nan for nan operands."""
    import numpy as np

    from gradcli.arrays.definitions import integral_definitions

    value = np.where(np.isnan(x) | np.isnan(q), np.nan, _scipy("zeta")(x, q))
    low = np.less(x, 1.0) & np.greater(x, -np.inf) & np.greater(q, 0.0) & np.less(q, np.inf)
    if not low.any():
        return value
    continued = integral_definitions.continued_hurwitz
    return np.where(low, continued(_functions, np.where(low, x, 0.5), np.where(low, q, 1.0)), value)


def rgamma(x: Any) -> Any:
    """SciPy's function, except at -inf, where the limit does not exist and SciPy returns 0."""
    import numpy as np

    return np.where(np.isneginf(x), np.nan, _scipy("rgamma")(x))


def binom(n: Any, k: Any) -> Any:
    """The binomial coefficient: SciPy's for integer n and small k, else that of `special_definitions`.

    SciPy's is accurate only there.
    """
    import numpy as np

    from gradcli.arrays.definitions import special_definitions

    few = np.equal(np.floor(n), n) & (np.minimum(k, np.subtract(n, k)) < _FEW)
    found = special_definitions.binom(_functions, np.where(few, 1.0, n), np.where(few, 1.0, k))
    value = np.where(few, special_definitions.nearest(np, _scipy("binom")(n, k), n, k), found)
    return _of_whole("choices", value, n, k)


def arrangements(n: Any, k: Any) -> Any:
    from gradcli.arrays.definitions import special_definitions

    return _of_whole("arrangements", special_definitions.arrangements(_functions, n, k), n, k)


def _of_whole(quotient: str, value: Any, n: Any, k: Any) -> Any:
    """`value`, correctly rounded by `exact_combinatorics` where n and k are integers in the range of its table."""
    import numpy as np

    from gradcli.arrays.definitions import exact_combinatorics

    n, k = np.broadcast_arrays(n, k)
    whole = (
        np.equal(np.floor(n), n) & np.equal(np.floor(k), k) & (k >= 0) & (k <= n) & (n <= exact_combinatorics.HIGHEST)
    )
    if not whole.any():
        return value
    value = np.array(value)
    value[whole] = getattr(exact_combinatorics, quotient)(n[whole].astype("int64"), k[whole].astype("int64"))
    return value


class _Functions:
    """The namespace of NumPy, extended by the functions of this module."""

    def __getattr__(self, name: str) -> Any:
        import numpy as np

        return getattr(np, name, None) or getattr(sys.modules[__name__], name)


_functions = _Functions()


def _scipy(name: str) -> Any:
    with phase("import"):
        import scipy.special

    return getattr(scipy.special, name)


def _with_far(near: Callable[[Any], Any], v: Any, x: Any, second: bool = False) -> Any:
    """A Bessel function of order v, which `near` computes for small x.

    For large x, where SciPy loses the phase, it is the expansion by modulus and phase.
    """
    import numpy as np

    size = np.abs(x)
    far = np.logical_and(
        size > common_definitions.BESSEL_FAR, size > common_definitions.BESSEL_FAR_BY_ORDER * np.abs(v)
    )
    far = np.logical_and(far, size < np.inf)
    negative = np.less(x, 0.0)
    if negative.any():
        # For x < 0 only functions of the first kind and integer order are real.
        far = np.logical_and(far, np.logical_or(~negative, np.equal(np.remainder(v, 1.0), 0.0) & (not second)))
    if not far.any():
        return near(x)
    value = np.array(near(np.where(far, 1.0, x)))
    order: Any = float(v) if np.ndim(v) == 0 else np.asarray(np.broadcast_to(v, far.shape)[far], "float64")
    large = np.asarray(np.broadcast_to(size, far.shape)[far], "float64")
    there = np.empty_like(large)
    # Process blocks, so that intermediate results stay in the cache.
    for start in range(0, large.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        part = order if type(order) is float else order[block]
        there[block] = common_definitions.far_bessel(np, part, large[block], second)
    if negative.any():
        odd = np.not_equal(np.remainder(order, 2.0), 0.0)
        there = np.where(np.broadcast_to(negative, far.shape)[far] & odd, -there, there)
    value[far] = there
    return value


def __getattr__(name: str) -> Any:
    theirs = spellings.of(name).names.get("scipy")
    if theirs is None:
        raise spellings.MissingFunctionError("numpy", name)
    return _scipy(theirs)
