"""Bounds of functions in a quarter of the complex plane, by powers: what proves that an amplitude vanishes far away.

The quarter is that of the numbers v to the right of a D > 0 and not below the real axis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from flint import arb

from gradcli.errors import BackendError
from gradcli.named_tuples import NamedTuple

# A logarithm is bounded by a power with this reciprocal exponent.
_SLOWLY = 8


class SectorBounds(NamedTuple):
    """Bounds of an analytic function in the quarter plane, with x = abs(v)/D: its magnitude is at most `most` * x**`order`
    and at least `least` * x**`below`, and its angle is between `low` and `high` half turns.

    The upper bound is unknown if `most` is None; the lower one and the angle are unknown if `least` is.
    """

    most: arb | None = None
    order: arb = arb(0)
    least: arb | None = None
    below: arb = arb(0)
    low: arb = arb(0)
    high: arb = arb(0)


def variable(start: arb) -> SectorBounds:
    """The bounds of v itself, to the right of `start`."""
    return SectorBounds(start.upper(), arb(1), start.lower(), arb(1), arb(0), arb(1) / 2)


def constant(x: arb) -> SectorBounds:
    found = SectorBounds(abs(x).upper())
    if x > 0 or x < 0:
        turns = arb(0 if x > 0 else 1)
        found = found._replace(least=abs(x).lower(), low=turns, high=turns)
    return found


def bounds(name: str, *operands: SectorBounds, **params: Any) -> SectorBounds:
    """The bounds of a function of others. Raises BackendError for a function of which no bounds are known."""
    rule = _RULES.get(name)
    if rule is None:
        raise BackendError(f"'{name}' has no known bounds for complex numbers")
    return rule(*operands, **params)


def _add(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    for zero, other in ((x, y), (y, x)):
        if zero.most is not None and zero.most == 0:
            return other
    found = SectorBounds()
    if x.most is not None and y.most is not None:
        found = SectorBounds((x.most + y.most).upper(), max(x.order, y.order))
    if x.least is not None and y.least is not None:
        low, high = min(x.low, y.low), max(x.high, y.high)
        # The larger of two numbers is at most 1/sin(angle) times their sum, or once it for an angle up to a quarter turn.
        share = (high - low).sin_pi().lower() if high - low > 0.5 else arb(1)
        if high - low < 1 and share > 0:
            larger = max((x, y), key=lambda z: (z.below, z.least))
            return found._replace(least=(larger.least * share).lower(), below=larger.below, low=low, high=high)
    for large, small in ((x, y), (y, x)):
        if large.least is None or small.most is None:
            continue
        if small.order <= large.below and small.most < large.least:
            turn = (small.most / large.least).asin() / arb.pi()
            return found._replace(
                least=(large.least - small.most).lower(),
                below=large.below,
                low=(large.low - turn).lower(),
                high=(large.high + turn).upper(),
            )
    return found


def _multiply(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    found = SectorBounds()
    if x.most is not None and y.most is not None:
        found = SectorBounds((x.most * y.most).upper(), (x.order + y.order).upper())
    if x.least is not None and y.least is not None:
        found = found._replace(
            least=(x.least * y.least).lower(),
            below=(x.below + y.below).lower(),
            low=(x.low + y.low).lower(),
            high=(x.high + y.high).upper(),
        )
    return found


def _reciprocal(x: SectorBounds) -> SectorBounds:
    if x.least is None:
        return SectorBounds()
    found = SectorBounds((1 / x.least).upper(), -x.below)
    if x.most is None:
        return found
    return found._replace(least=(1 / x.most).lower(), below=-x.order, low=-x.high, high=-x.low)


def _whole_power(x: SectorBounds, *, n: float) -> SectorBounds:
    found = reduce(_multiply, [x] * abs(int(n)), constant(arb(1)))
    return found if n >= 0 else _reciprocal(found)


def _pow(x: SectorBounds, y: SectorBounds) -> SectorBounds:
    """A power with a constant real exponent, of what is not on the negative real axis."""
    if not _is_off_cut(x) or y.most is None or y.least is None or y.order != 0 or y.below != 0 or y.low != y.high:
        return SectorBounds()
    found = _positive_power(x, y.least, y.most)
    return found if y.low == 0 else _reciprocal(found)


def _is_off_cut(x: SectorBounds) -> bool:
    return bool(x.least is not None and x.low > -1 and x.high < 1)


def _positive_power(x: SectorBounds, least: arb, most: arb) -> SectorBounds:
    """A power with an exponent between two positive numbers."""
    assert x.least is not None
    exponents = (least, most)
    found = SectorBounds()
    if x.most is not None:
        found = SectorBounds(max((x.most**e).upper() for e in exponents), max((x.order * e).upper() for e in exponents))
    return found._replace(
        least=min((x.least**e).lower() for e in exponents),
        below=min((x.below * e).lower() for e in exponents),
        low=min((x.low * e).lower() for e in exponents),
        high=max((x.high * e).upper() for e in exponents),
    )


def _exp(x: SectorBounds) -> SectorBounds:
    if x.most is not None and x.order <= 0:
        turns = (x.most / arb.pi()).upper()
        return SectorBounds(x.most.exp().upper(), arb(0), (-x.most).exp().lower(), arb(0), -turns, turns)
    half = arb(1) / 2
    if x.least is not None and ((x.low >= half and x.high <= 3 * half) or (x.low >= -3 * half and x.high <= -half)):
        # The real part is not positive.
        return SectorBounds(arb(1))
    return SectorBounds()


def _log(x: SectorBounds) -> SectorBounds:
    if not _is_off_cut(x) or x.least is None or x.most is None:
        return SectorBounds()
    # log(x) <= e*x**(1/e).
    slope = max(abs(x.order).upper(), abs(x.below).upper()) * _SLOWLY
    angle = max(abs(x.low).upper(), abs(x.high).upper()) * arb.pi()
    size = max(abs(x.most.log()).upper(), abs(x.least.log()).upper())
    return SectorBounds((size + slope + angle).upper(), arb(1) / _SLOWLY)


def _sin(x: SectorBounds) -> SectorBounds:
    """At most sinh(abs(x)) <= abs(x)*cosh(most)."""
    if x.most is None or not x.order <= 0:
        return SectorBounds()
    return SectorBounds((x.most * x.most.cosh()).upper(), x.order)


def _cos(x: SectorBounds) -> SectorBounds:
    return SectorBounds(x.most.cosh().upper()) if x.most is not None and x.order <= 0 else SectorBounds()


def _half_power(sign: int) -> Callable[[SectorBounds], SectorBounds]:
    return lambda x: _pow(x, constant(arb(sign) / 2))


def _negative(x: SectorBounds) -> SectorBounds:
    return _multiply(constant(arb(-1)), x)


_RULES: dict[str, Callable[..., SectorBounds]] = {
    "add": _add,
    "subtract": lambda x, y: _add(x, _negative(y)),
    "multiply": _multiply,
    "divide": lambda x, y: _multiply(x, _reciprocal(y)),
    "negative": _negative,
    "reciprocal": _reciprocal,
    "square": lambda x: _multiply(x, x),
    "whole_power": _whole_power,
    "pow": _pow,
    "sqrt": _half_power(1),
    "rsqrt": _half_power(-1),
    "exp": _exp,
    "log": _log,
    "log1p": lambda x: _log(_add(constant(arb(1)), x)),
    "sin": _sin,
    "cos": _cos,
}
