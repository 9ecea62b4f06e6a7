"""Terms of asymptotic series: powers times powers of a logarithm, and remainders of known order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive


def _sign_at_0(q: float, factors: Sequence[float]) -> float:
    """The limit of x**q*(sum over k of factors[k]*log(x)**k) as x tends to 0 from the right."""
    k = max((k for k, f in enumerate(factors) if f), default=0)
    if q > 0.0 or not any(factors):
        return 0.0
    return factors[0] if q == 0.0 and k == 0 else math.copysign(math.inf, factors[k] * (-1.0) ** k)


def _power_times_logs(xp: Any, x: Any, *, q: float, factors: Sequence[float]) -> Any:
    inside = xp.greater(x, 0.0)
    safe = xp.where(inside, x, 1.0)
    logarithm, total = xp.log(safe), xp.multiply(0.0, safe)
    for factor in reversed(factors):
        total = xp.add(xp.multiply(total, logarithm), factor)
    edge = xp.where(xp.equal(x, 0.0), _sign_at_0(q, factors), math.nan)
    return xp.where(inside, xp.multiply(xp.pow(safe, q), total), edge)


def _slope(q: float, factors: Sequence[float]) -> tuple[float, ...]:
    """The factors of the derivative, whose power is x**(q - 1)."""
    return tuple(q * f + (k + 1.0) * g for k, (f, g) in enumerate(zip(factors, (*factors[1:], 0.0))))


power_times_logs: Primitive = elementwise(
    "power_times_logs", "x, q, factors", "x**q times a polynomial in log(x), 0 at 0 where q > 0",
    time=30, internal="pow",
    forward=_power_times_logs,
    vjp=(lambda g, _y, x, *, q, factors: g * power_times_logs(x, q - 1.0, _slope(q, factors)),),
    prepare=lambda x, q, factors: ((x,), {"q": q, "factors": factors}),
    derivative="g*(its derivative)",
    domain="x >= 0; smooth where x > 0",
    samples=((0.7, 2.0, (0.0, 1.0)), ([0.3, 1.2], 1.5, (1.0, 0.0, 2.0))),
)  # fmt: skip


def _power_times_log(xp: Any, x: Any, q: Any, *, m: int) -> Any:
    inside = xp.greater(x, 0.0)
    safe = xp.where(inside, x, 1.0)
    value = xp.pow(safe, q)
    for _ in range(m):
        value = xp.multiply(value, xp.log(safe))
    lead = math.copysign(math.inf, (-1.0) ** m)
    edge = xp.where(xp.greater(q, 0.0), 0.0, xp.where(xp.equal(q, 0.0), lead if m else 1.0, lead))
    return xp.where(inside, value, xp.where(xp.equal(x, 0.0), edge, math.nan))


def _slope_by_base(g: Any, _y: Any, x: Any, q: Any, *, m: int) -> Any:
    slope = q * power_times_log(x, q - 1.0, m)
    return g * (slope + float(m) * power_times_log(x, q - 1.0, m - 1)) if m else g * slope


power_times_log: Primitive = elementwise(
    "power_times_log", "x, q, m", "x**q*log(x)**m, 0 at 0 where q > 0",
    time=30, internal="pow",
    forward=_power_times_log,
    vjp=(_slope_by_base, lambda g, _y, x, q, *, m: g * power_times_log(x, q, m + 1)),
    prepare=lambda x, q, m: ((x, q), {"m": m}),
    derivative="g*x**(q-1)*log(x)**(m-1)*(q*log(x) + m), g*x**q*log(x)**(m+1)",
    domain="x >= 0; smooth where x > 0",
    samples=((0.7, 2.0, 1), ([0.3, 1.2], 1.5, 2)),
)  # fmt: skip

unknown_from: Primitive = elementwise(
    "unknown_from", "x, order", "0, with derivatives that are nan from an order on",
    internal="Taylor series",
    forward=lambda xp, x, *, order: xp.multiply(0.0, x) if order > 0 else xp.add(xp.multiply(0.0, x), math.nan),
    vjp=(lambda g, _y, x, *, order: g * unknown_from(x, order - 1),),
    prepare=lambda x, order: ((x,), {"order": order}),
    derivative="g*(0 or nan)",
    domain="everywhere",
    samples=((0.7, 40), ([0.3, 1.2], 40)),
)  # fmt: skip
