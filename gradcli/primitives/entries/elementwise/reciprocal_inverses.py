"""Elementwise inverses of sec, csc, cot and their hyperbolic counterparts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import reciprocal_definitions as definitions
from gradcli.primitives.entries.arithmetic import absolute, divide, reciprocal
from gradcli.primitives.entries.comparisons import equal, nowhere
from gradcli.primitives.entries.elementwise.trigonometric import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    hypot,
    one_minus_square,
    over_one_plus_square,
)
from gradcli.primitives.entries.powers import sqrt
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "elementwise"

_BEYOND_ONE = (1.7, [-1.2, 3.0])
_ANYWHERE = (0.7, [-1.0, 2.0])


def _over_root(x: Any) -> Any:
    """1/(abs(x)*sqrt(x**2 - 1)), without overflow."""
    size = absolute(x)
    return divide(divide(divide(1.0, size), sqrt(size - 1.0)), sqrt(size + 1.0))


def _of_reciprocal(name: str) -> Callable[..., Any]:
    """The implementation for complex numbers: the function `name` of 1/x."""
    return lambda xp, x: getattr(xp, name)(xp.reciprocal(x))


def _or_by_reciprocal(inner: Primitive, of_real: Callable[..., Any]) -> Callable[..., Any]:
    """The vjp rule `of_real`, for complex numbers that of `inner` of 1/x."""

    def rule(g: Any, y: Any, x: Any) -> Any:
        if not arrays.is_complex(x):
            return of_real(g, y, x)
        u = reciprocal(x)
        return inner.rule(0)(g * -(u * u), y, u)

    return rule


acot = elementwise(
    "acot", "x", "inverse cotangent, atan(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("atan"),
    parity="odd", forward=definitions.acot,
    vjp=(_or_by_reciprocal(atan, lambda g, _y, x: -g * over_one_plus_square(x)),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(1 + x**2)",
    domain="x != 0",
    smooth=lambda x: nowhere(equal(x, 0)),
    jumps=True,
    edges=("between -pi/2 and pi/2: acot(0) = pi/2, and it jumps there",),
    aliases=("arccot",),
    samples=_ANYWHERE,
)  # fmt: skip

asec = elementwise(
    "asec", "x", "inverse secant, acos(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("acos"),
    time=2, forward=definitions.asec,
    vjp=(_or_by_reciprocal(acos, lambda g, _y, x: g * _over_root(x)),),
    spelling=names_elsewhere("sympy"),
    derivative="g/(abs(x)*sqrt(x**2 - 1))",
    domain="abs(x) >= 1; smooth where abs(x) > 1",
    aliases=("arcsec",),
    samples=_BEYOND_ONE,
)  # fmt: skip

acsc = elementwise(
    "acsc", "x", "inverse cosecant, asin(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("asin"),
    time=2, parity="odd", forward=definitions.acsc,
    vjp=(_or_by_reciprocal(asin, lambda g, _y, x: -g * _over_root(x)),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(abs(x)*sqrt(x**2 - 1))",
    domain="abs(x) >= 1; smooth where abs(x) > 1",
    aliases=("arccsc",),
    samples=_BEYOND_ONE,
)  # fmt: skip

acoth = elementwise(
    "acoth", "x", "inverse hyperbolic cotangent, atanh(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("atanh"),
    time=2, parity="odd", forward=definitions.acoth,
    vjp=(_or_by_reciprocal(atanh, lambda g, _y, x: divide(divide(g, 1.0 - x), 1.0 + x)),),
    spelling=names_elsewhere("sympy"),
    derivative="g/(1 - x**2)",
    domain="abs(x) > 1",
    edges=("acoth(1) = inf and acoth(-1) = -inf",),
    aliases=("arccoth",),
    samples=_BEYOND_ONE,
)  # fmt: skip

asech = elementwise(
    "asech", "x", "inverse hyperbolic secant, acosh(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("acosh"),
    time=2, forward=definitions.asech,
    vjp=(_or_by_reciprocal(acosh, lambda g, _y, x: -divide(divide(g, x), sqrt(one_minus_square(x)))),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(x*sqrt(1 - x**2))",
    domain="0 < x <= 1; smooth where x < 1",
    edges=("asech(0) = inf",),
    aliases=("arcsech",),
    samples=(0.7, [0.2, 0.5]),
)  # fmt: skip

acsch = elementwise(
    "acsch", "x", "inverse hyperbolic cosecant, asinh(1/x)",
    numbers="analytic", of_complex=_of_reciprocal("asinh"),
    time=2, parity="odd", forward=definitions.acsch,
    vjp=(_or_by_reciprocal(asinh, lambda g, _y, x: -divide(divide(g, absolute(x)), hypot(x, 1.0))),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(abs(x)*sqrt(1 + x**2))",
    domain="x != 0",
    edges=("acsch(0) = inf",),
    aliases=("arccsch",),
    samples=_ANYWHERE,
)  # fmt: skip
