"""Elementwise trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import itertools
import math
from typing import Any

from gradcli import arrays
from gradcli.arrays.definitions import common_definitions
from gradcli.arrays.mathematical_constants import by_formula
from gradcli.primitives.bind import assume, constant
from gradcli.primitives.costs import of_angles, of_points, of_sinc
from gradcli.primitives.entries.arithmetic import divide, minus, multiply
from gradcli.primitives.entries.comparisons import equal, greater, logical_and, nowhere, where
from gradcli.primitives.entries.powers import sqrt
from gradcli.primitives.families import complex_definition, elementwise
from gradcli.primitives.jet_rules import Coefficients, integrate_coefficients, jet_through_definition
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "elementwise"

_ANYWHERE = (0.7, [-1.0, 2.0])
_INSIDE = (0.7, [-0.3, 0.2])
_degree, _radian = by_formula(lambda m: m.pi / 180.0), by_formula(lambda m: 180.0 / m.pi)
_PAIRS = ((0.7, 1.3), (-2.0, 0.5), ([[0.3, -1.2]], [[0.8], [2.5]]))

sin = elementwise(
    "sin", "x", "sine",
    numbers="analytic",
    parity="odd", surcharge=of_angles,
    vjp=(lambda g, _y, x: g * cos(x),),
    spelling=names_elsewhere("c sql sympy latex polars"),
    derivative="g*cos(x)",
    samples=_ANYWHERE,
)  # fmt: skip

cos: Primitive = elementwise(
    "cos", "x", "cosine",
    numbers="analytic",
    parity="even", surcharge=of_angles,
    vjp=(lambda g, _y, x: -g * sin(x),),
    spelling=names_elsewhere("c sql sympy latex polars"),
    derivative="-g*sin(x)",
    samples=_ANYWHERE,
)  # fmt: skip

tan = elementwise(
    "tan", "x", "tangent",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, y, _x: g * (1.0 + y * y),),
    spelling=names_elsewhere("c sql sympy latex polars"),
    derivative="g*(1 + tan(x)**2)",
    domain="x is no odd multiple of pi/2",
    samples=_ANYWHERE,
)  # fmt: skip

# A primitive, as (1 - x)*(1 + x) is accurate near 1, and its derivative -2*x has a limit there where that of the
# product does not.
one_minus_square = elementwise(
    "one_minus_square", "x", "1 - x**2, accurate near 1",
    numbers="analytic",
    internal=True,
    forward=lambda xp, x: xp.multiply(xp.subtract(1.0, x), xp.add(1.0, x)),
    # Subtracting 0 keeps the sign of an imaginary part of 0, which decides the side of a branch cut, and adding it does
    # not.
    of_complex=lambda xp, x: xp.negative(xp.multiply(xp.subtract(x, 1.0), xp.subtract(x, -1.0))),
    vjp=(lambda g, _y, x: g * (-2.0 * x),),
    derivative="-2*g*x",
    samples=_ANYWHERE,
)  # fmt: skip

asin = elementwise(
    "asin", "x", "inverse sine",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, _y, x: divide(g, sqrt(one_minus_square(x))),),
    spelling=names_elsewhere("c sql sympy", numpy="arcsin", polars="arcsin", latex="arcsin"),
    derivative="g/sqrt(1 - x**2)",
    domain="-1 <= x <= 1; smooth inside",
    edges=("asin'(-1) = asin'(1) = inf; higher derivatives are infinite there too", "nan outside the domain"),
    aliases=("arcsin",),
    samples=_INSIDE,
)  # fmt: skip

acos = elementwise(
    "acos", "x", "inverse cosine",
    numbers="analytic",
    vjp=(lambda g, _y, x: -divide(g, sqrt(one_minus_square(x))),),
    spelling=names_elsewhere("c sql sympy", numpy="arccos", polars="arccos", latex="arccos"),
    derivative="-g/sqrt(1 - x**2)",
    domain="-1 <= x <= 1; smooth inside",
    edges=("acos'(-1) = acos'(1) = -inf; higher derivatives are infinite there too", "nan outside the domain"),
    aliases=("arccos",),
    samples=_INSIDE,
)  # fmt: skip

# A primitive, as x**2 overflows for large x.
over_one_plus_square: Primitive = elementwise(
    "over_one_plus_square", "x", "1/(1 + x**2), without overflow",
    numbers="analytic",
    internal=True, parity="even",
    forward=common_definitions.over_one_plus_square,
    of_complex=lambda xp, x: xp.reciprocal(xp.multiply(xp.subtract(x, 1j), xp.subtract(x, complex(0.0, -1.0)))),
    vjp=(lambda g, y, x: g * (-2.0 * ((x * y) * y)),),
    jet=jet_through_definition(lambda x: divide(1.0, 1.0 + x * x)),
    derivative="-2*g*x/(1 + x**2)**2",
    samples=_ANYWHERE,
)  # fmt: skip

atan = elementwise(
    "atan", "x", "inverse tangent",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, _y, x: g * over_one_plus_square(x),),
    spelling=names_elsewhere("c sql sympy", numpy="arctan", polars="arctan", latex="arctan"),
    derivative="g/(1 + x**2)",
    aliases=("arctan",),
    samples=_ANYWHERE,
)  # fmt: skip


def _over_square(g: Any, numerator: Any, a: Any, b: Any) -> Any:
    """g*numerator/(a**2 + b**2) without overflow; 0 at the origin."""
    radius = hypot(a, b)
    if assume(greater(constant(radius), 0)):
        return g * divide(divide(numerator, radius), radius)
    origin = equal(radius, 0)
    radius = where(origin, 1.0, radius)
    return g * where(origin, 0.0, divide(divide(numerator, radius), radius))


atan2 = elementwise(
    "atan2", "y, x", "the angle of the point (x, y)",
    surcharge=of_points,
    vjp=(
        lambda g, _y, a, b: _over_square(g, b, a, b),
        lambda g, _y, a, b: _over_square(-g, a, a, b),
    ),
    spelling=names_elsewhere("c sql sympy", numpy="arctan2"),
    derivative="g*x/(x**2 + y**2), -g*y/(x**2 + y**2), 0 at the origin",
    domain="smooth where (x, y) != (0, 0)",
    smooth=lambda y, x: nowhere(logical_and(equal(y, 0), equal(x, 0))),
    jumps=True,
    edges=("atan2(0, 0) = 0, with derivatives 0 of every order", "atan2(0, -1) = pi, atan2(-0.0, -1) = -pi"),
    aliases=("arctan2",),
    samples=_PAIRS,
)  # fmt: skip

hypot = elementwise(
    "hypot", "x, y", "sqrt(x**2 + y**2), without overflow",
    time=3,
    vjp=(lambda g, y, a, _b: g * divide(a, y), lambda g, y, _a, b: g * divide(b, y)),
    spelling=names_elsewhere("c"),
    derivative="g*x/hypot(x, y), g*y/hypot(x, y)",
    domain="smooth where (x, y) != (0, 0)",
    smooth=lambda x, y: nowhere(logical_and(equal(x, 0), equal(y, 0))),
    edges=("hypot(0, 0) = 0, with derivatives nan",),
    samples=_PAIRS,
)  # fmt: skip

sinh = elementwise(
    "sinh", "x", "hyperbolic sine",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, _y, x: g * cosh(x),),
    spelling=names_elsewhere("c sql sympy latex polars"),
    derivative="g*cosh(x)",
    samples=_ANYWHERE,
)  # fmt: skip

cosh: Primitive = elementwise(
    "cosh", "x", "hyperbolic cosine",
    numbers="analytic",
    parity="even",
    vjp=(lambda g, _y, x: g * sinh(x),),
    spelling=names_elsewhere("c sql sympy latex polars"),
    derivative="g*sinh(x)",
    samples=_ANYWHERE,
)  # fmt: skip

# A primitive, as 1 - tanh(x)**2 cancels away from 0.
sech_square: Primitive = elementwise(
    "sech_square", "x", "1/cosh(x)**2, without overflow",
    numbers="analytic",
    time=2,
    internal=True, parity="even",
    forward=common_definitions.sech_square,
    of_complex=lambda xp, x: xp.square(complex_definition("sech")(xp, x)),
    vjp=(lambda g, y, x: g * (-2.0 * (y * tanh(x))),),
    derivative="-2*g*sech_square(x)*tanh(x)",
    samples=_ANYWHERE,
)  # fmt: skip


def _tanh_series(_primitive: Primitive, y: Any, x: Any) -> Coefficients:
    # y' = x'*(1 - y**2), whose first coefficient is computed as sech(x)**2 because 1 - y**2 cancels.
    square = y * y
    rest = (minus(None, square.coefficient(k)) for k in itertools.count(1))
    yield from integrate_coefficients(y, x.derivative() * y.growing(sech_square(x.inner), rest))


tanh: Primitive = elementwise(
    "tanh", "x", "hyperbolic tangent",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, _y, x: g * sech_square(x),),
    jet=_tanh_series, spelling=names_elsewhere("c sql sympy latex polars"),
    gradient_name="TanhBackwardBackward0",
    derivative="g*(1 - tanh(x)**2)",
    samples=_ANYWHERE,
)  # fmt: skip

sech = elementwise(
    "sech", "x", "1/cosh(x), without overflow",
    numbers="analytic",
    parity="even", forward=common_definitions.sech, of_complex=complex_definition("sech"),
    vjp=(lambda g, y, x: -g * (y * tanh(x)),),
    spelling=names_elsewhere("sympy"),
    derivative="-g*sech(x)*tanh(x)",
    samples=_ANYWHERE,
)  # fmt: skip

logcosh = elementwise(
    "logcosh", "x", "log(cosh(x)), without overflow, accurate near 0",
    time=2,
    parity="even", forward=common_definitions.logcosh,
    vjp=(lambda g, _y, x: g * tanh(x),),
    derivative="g*tanh(x)",
    samples=_ANYWHERE,
)  # fmt: skip


def _asinh_rule(g: Any, _y: Any, x: Any) -> Any:
    if arrays.is_complex(x):
        return g * sqrt(over_one_plus_square(x))
    return divide(g, hypot(x, 1.0))


asinh = elementwise(
    "asinh", "x", "inverse hyperbolic sine",
    numbers="analytic",
    parity="odd",
    vjp=(_asinh_rule,),
    spelling=names_elsewhere("c sql sympy", numpy="arcsinh", polars="arcsinh"),
    derivative="g/sqrt(1 + x**2)",
    aliases=("arcsinh",),
    samples=_ANYWHERE,
)  # fmt: skip

acosh = elementwise(
    "acosh", "x", "inverse hyperbolic cosine",
    numbers="analytic",
    vjp=(lambda g, _y, x: divide(divide(g, sqrt(x - 1.0)), sqrt(x - -1.0)),),
    spelling=names_elsewhere("c sql sympy", numpy="arccosh", polars="arccosh"),
    derivative="g/sqrt(x**2 - 1)",
    domain="x >= 1; smooth where x > 1",
    edges=("acosh'(1) = inf; higher derivatives are infinite there too", "nan outside the domain"),
    aliases=("arccosh",),
    samples=(1.7, [1.2, 3.0]),
)  # fmt: skip

atanh = elementwise(
    "atanh", "x", "inverse hyperbolic tangent",
    numbers="analytic",
    parity="odd",
    vjp=(lambda g, _y, x: divide(g, one_minus_square(x)),),
    spelling=names_elsewhere("c sql sympy", numpy="arctanh", polars="arctanh"),
    derivative="g/(1 - x**2)",
    domain="-1 < x < 1",
    edges=("atanh(1) = inf and atanh(-1) = -inf, with derivative inf",),
    aliases=("arctanh",),
    samples=_INSIDE,
)  # fmt: skip

deg2rad = Composite(
    "deg2rad", "x", "degrees to radians", lambda x: multiply(x, _degree()),
    derivative="g*pi/180",
    aliases=("radians",),
    samples=_ANYWHERE,
)  # fmt: skip

rad2deg = Composite(
    "rad2deg", "x", "radians to degrees", lambda x: multiply(x, _radian()),
    derivative="g*180/pi",
    aliases=("degrees",),
    samples=_ANYWHERE,
)  # fmt: skip


def _sine(xp: Any, x: Any, quarters: int) -> Any:
    """sin(pi*x + quarters*pi/2), accurate near its zeros and for large x."""
    whole = xp.round(xp.real(x) if arrays.is_complex(x) else x)
    rest = math.pi * (x - whole)
    sign = 1.0 - 2.0 * xp.remainder(whole + quarters // 2, 2.0)
    return xp.multiply(sign, xp.cos(rest) if quarters % 2 else xp.sin(rest))


def sinc_derivative(xp: Any, x: Any, *, n: int) -> Any:
    """The nth derivative of sin(pi*x)/(pi*x).

    Near 0 by its Taylor series; elsewhere by the recurrence x*f[n] + n*f[n-1] = pi**(n-1)*sin(pi*x + n*pi/2), which
    follows from differentiating x*sinc(x) n times.
    """
    # The Taylor series cancels near 1, but the recurrence needs larger x as n grows.
    near = xp.less(xp.abs(x), 1.0 if n else 0.5)
    inner, outer = xp.where(near, x, 0.0), xp.where(near, 1.0, x)
    series, is_complex = 0.0 * inner, arrays.is_complex(x)
    for k in reversed(range((n + 1) // 2, n // 2 + 20)):
        power = 2 * k - n
        coefficient = (-1) ** k * math.pi ** (2 * k) / math.factorial(power) / (2 * k + 1)
        if is_complex:
            # By Horner's rule, as libraries have a nan for some powers of a complex 0.
            series = series * (inner * inner) + coefficient
        else:
            series = xp.add(series, xp.multiply(coefficient, xp.pow(inner, float(power))))
    series = series * inner if is_complex and n % 2 else series
    value = xp.divide(_sine(xp, outer, 0), math.pi * outer)
    for order in range(1, n + 1):
        wave = math.pi ** (order - 1) * _sine(xp, outer, order)
        value = xp.divide(wave - order * value, outer)
    return xp.where(near, series, value)


sinc: Primitive = elementwise(
    "sinc", "x", "sin(pi*x)/(pi*x), 1 at 0",
    time=60, surcharge=of_sinc,
    subject="special",
    numbers="analytic",
    forward=sinc_derivative,
    vjp=(lambda g, _y, x, *, n: g * sinc(x, n=n + 1),),
    prepare=lambda x, n=0: ((x,), {"n": n}),
    derivative="g*(cos(pi*x) - sinc(x))/x, 0 at 0",
    edges=(
        "sinc(0) = 1, sinc'(0) = 0, sinc''(0) = -pi**2/3, as the series has them",
        "0 at every other whole number, where PyTorch has the rounding of pi",
    ),
    samples=(0.7, [-1.3, 0.0, 2.2]),
)  # fmt: skip
