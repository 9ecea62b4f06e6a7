"""Elementwise inverses of sec, csc, cot and their hyperbolic counterparts."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.definitions import reciprocal_definitions as definitions
from gradcli.primitives.entries.arithmetic import absolute, divide
from gradcli.primitives.entries.comparisons import equal, nowhere
from gradcli.primitives.entries.powers import sqrt
from gradcli.primitives.entries.trigonometric import hypot, one_minus_square, over_one_plus_square
from gradcli.primitives.families import elementwise
from gradcli.primitives.primitive import names_elsewhere

SUBJECT = "elementwise"

_BEYOND_ONE = (1.7, [-1.2, 3.0])
_ANYWHERE = (0.7, [-1.0, 2.0])


def _over_root(x: Any) -> Any:
    """1/(abs(x)*sqrt(x**2 - 1)), without overflow."""
    size = absolute(x)
    return divide(divide(divide(1.0, size), sqrt(size - 1.0)), sqrt(size + 1.0))


acot = elementwise(
    "acot", "x", "inverse cotangent, atan(1/x)",
    parity="odd", forward=definitions.acot,
    vjp=(lambda g, _y, x: -g * over_one_plus_square(x),),
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
    time=2, forward=definitions.asec,
    vjp=(lambda g, _y, x: g * _over_root(x),),
    spelling=names_elsewhere("sympy"),
    derivative="g/(abs(x)*sqrt(x**2 - 1))",
    domain="abs(x) >= 1; smooth where abs(x) > 1",
    aliases=("arcsec",),
    samples=_BEYOND_ONE,
)  # fmt: skip

acsc = elementwise(
    "acsc", "x", "inverse cosecant, asin(1/x)",
    time=2, parity="odd", forward=definitions.acsc,
    vjp=(lambda g, _y, x: -g * _over_root(x),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(abs(x)*sqrt(x**2 - 1))",
    domain="abs(x) >= 1; smooth where abs(x) > 1",
    aliases=("arccsc",),
    samples=_BEYOND_ONE,
)  # fmt: skip

acoth = elementwise(
    "acoth", "x", "inverse hyperbolic cotangent, atanh(1/x)",
    time=2, parity="odd", forward=definitions.acoth,
    vjp=(lambda g, _y, x: divide(divide(g, 1.0 - x), 1.0 + x),),
    spelling=names_elsewhere("sympy"),
    derivative="g/(1 - x**2)",
    domain="abs(x) > 1",
    edges=("acoth(1) = inf and acoth(-1) = -inf",),
    aliases=("arccoth",),
    samples=_BEYOND_ONE,
)  # fmt: skip

asech = elementwise(
    "asech", "x", "inverse hyperbolic secant, acosh(1/x)",
    time=2, forward=definitions.asech,
    vjp=(lambda g, _y, x: -divide(divide(g, x), sqrt(one_minus_square(x))),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(x*sqrt(1 - x**2))",
    domain="0 < x <= 1; smooth where x < 1",
    edges=("asech(0) = inf",),
    aliases=("arcsech",),
    samples=(0.7, [0.2, 0.5]),
)  # fmt: skip

acsch = elementwise(
    "acsch", "x", "inverse hyperbolic cosecant, asinh(1/x)",
    time=2, parity="odd", forward=definitions.acsch,
    vjp=(lambda g, _y, x: -divide(divide(g, absolute(x)), hypot(x, 1.0)),),
    spelling=names_elsewhere("sympy"),
    derivative="-g/(abs(x)*sqrt(1 + x**2))",
    domain="x != 0",
    edges=("acsch(0) = inf",),
    aliases=("arccsch",),
    samples=_ANYWHERE,
)  # fmt: skip
