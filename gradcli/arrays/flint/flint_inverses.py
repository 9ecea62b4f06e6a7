"""Inverses of incomplete gamma and beta functions of FLINT numbers, under the names that the namespace looks up.

The inverses are monotonic in each operand, so that the values over balls lie between those at two corners. There the
root is refined by Newton's method, starting from SciPy's value, and proved by a change of sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flint import arb

from gradcli.arrays.flint.balls import (
    INFINITY,
    UNDEFINED,
    Number,
    UndecidedError,
    is_nan,
    precise,
    precision,
    to_float,
)
from gradcli.arrays.flint.flint_functions import less, negative, subtract
from gradcli.arrays.flint.flint_incomplete import betainc, gammainc, gammaincc
from gradcli.arrays.flint.flint_numbers import HALF, ONE, ZERO, hull, is_at, is_infinite

# The maximum number of Newton steps, and the extra bits in which they are computed.
_STEPS, _GUARD = 60, 20


def betaincc(a: Number, b: Number, x: Number) -> Number:
    return betainc(b, a, subtract(ONE, x))


def gammaincinv(a: Number, p: Number) -> Number:
    return _inverse("gammaincinv", gammainc, _gamma_slope, (a,), p, (1,), 1)


def gammainccinv(a: Number, p: Number) -> Number:
    return _inverse("gammainccinv", gammaincc, _gamma_slope, (a,), p, (1,), -1)


def betaincinv(a: Number, b: Number, p: Number) -> Number:
    return _inverse("betaincinv", betainc, _beta_slope, (a, b), p, (1, -1), 1)


def betainccinv(a: Number, b: Number, p: Number) -> Number:
    return _inverse("betainccinv", betaincc, _beta_slope, (a, b), p, (1, -1), -1)


def stdtrit(df: Number, p: Number) -> Number:
    """The quantile of Student's distribution, from that of the beta distribution.

    t**2 = df*(1/x - 1), where betainc(df/2, 1/2, x) = 2*min(p, 1 - p).
    """
    if is_nan(df) or is_nan(p) or is_infinite(df) or not df > 0 or less(p, ZERO) or less(ONE, p):
        return UNDEFINED
    if is_at(p, HALF):
        return ZERO
    tail = p if less(p, HALF) else subtract(ONE, p)
    x = arb(betaincinv(df / 2, HALF, 2 * tail))
    size = (arb(df) * (1 / x - 1)).sqrt() if not is_at(tail, ZERO) else INFINITY
    return negative(size) if p < HALF else size


def _gamma_slope(a: Any, x: Any) -> Any:
    return ((a - 1) * x.log() - x).exp() * a.rgamma()


def _beta_slope(a: Any, b: Any, x: Any) -> Any:
    return ((a - 1) * x.log() + (b - 1) * (-x).log1p()).exp() * a.rgamma() * b.rgamma() * (a + b).gamma()


def _inverse(
    name: str,
    function: Callable[..., Number],
    slope: Callable[..., Any],
    parameters: Sequence[Number],
    p: Number,
    rises: Sequence[int],
    sign: int,
) -> Number:
    """The x with function(*parameters, x) = p.

    `sign` is 1 if the function increases with x and -1 if it decreases; `rises` says the same of x as a function of
    each parameter.
    """
    if any(is_nan(o) for o in (*parameters, p)) or less(p, ZERO) or less(ONE, p):
        return UNDEFINED
    if any(is_infinite(a) or not a > 0 for a in parameters):
        return UNDEFINED
    if is_at(p, ZERO) or is_at(p, ONE):
        last = INFINITY if len(parameters) == 1 else ONE
        return ZERO if (p == 0) is (sign > 0) else last
    operands, ways = [*map(arb, (*parameters, p))], (*rises, sign)
    ends = []
    for end in (-1, 1):
        *given, wanted = (o.lower() if way == -end else o.upper() for o, way in zip(operands, ways))
        ends.append(_root(name, function, slope, given, wanted, sign))
        if all(o.is_exact() for o in operands):
            return ends[0]
    return hull(*ends)


def _root(
    name: str, function: Callable[..., Number], slope: Callable[..., Any], given: Sequence[Any], p: Any, sign: int
) -> Number:
    """The root for exact operands, as a ball. Raises UndecidedError if it is not found."""
    import scipy.special

    start = float(getattr(scipy.special, name)(*map(to_float, given), to_float(p)))
    if not 0.0 < start < math.inf:
        raise UndecidedError("an inverse is not found")
    bits = precision()
    with precise(bits + _GUARD):
        x = arb(start)
        for _ in range(_STEPS):
            step = (sign * (arb(function(*given, x)) - p) / slope(*given, x)).mid()
            if not step.is_finite():
                break
            following = (x - step).mid()
            x = following if following > 0 and (len(given) == 1 or following < 1) else x / 2
            if abs(step) < abs(x) * arb(2) ** -bits:
                break
        around = abs(x) * arb(2) ** -(bits - 4)
        below, above = (sign * (arb(function(*given, x + way * around)) - p) for way in (-1, 1))
        if not (below < 0 and above > 0):
            raise UndecidedError("an inverse is not found")
        return x + arb(0, around.abs_upper())
