"""Elementwise integrals: sine, cosine and exponential integrals, Fresnel, Owen's T function, polylogarithms."""

from __future__ import annotations

import math
from typing import Any

from gradcli.arrays.definitions import integral_definitions as definitions
from gradcli.arrays.host_functions import by_balls, by_scipy
from gradcli.arrays.mathematical_constants import by_formula
from gradcli.primitives.bind import bind
from gradcli.primitives.costs import of_derivative
from gradcli.primitives.entries.arithmetic import divide
from gradcli.primitives.entries.comparisons import equal, where
from gradcli.primitives.entries.elementwise.elementary import cospi, sinpi
from gradcli.primitives.entries.elementwise.trigonometric import cos, cosh, over_one_plus_square, sinc, sinc_derivative
from gradcli.primitives.entries.exponential import exp
from gradcli.primitives.entries.special_functions.numerical_partials import derivative, partial_of_two
from gradcli.primitives.entries.special_functions.special import erf
from gradcli.primitives.families import complex_by_scipy, elementwise, keeping_float32
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_ANYWHERE = (0.7, [-1.0, 2.0])
_POSITIVE = (0.7, [0.4, 2.5])
_two_over_sqrt_pi, _over_pi = by_formula(lambda m: 2.0 / m.sqrt(m.pi)), by_formula(lambda m: 1.0 / m.pi)
_over_2_pi, _sqrt_half = by_formula(lambda m: 1.0 / (2.0 * m.pi)), by_formula(lambda m: m.sqrt(0.5))
_over_2_sqrt_2_pi = by_formula(lambda m: 0.5 / m.sqrt(2.0 * m.pi))


def _of_scipy(name: str) -> Any:
    return keeping_float32(lambda xp, *operands: by_scipy(xp, name, *operands))


erfi = elementwise(
    "erfi", "x", "imaginary error function, 2/sqrt(pi) times the integral of exp(t**2) from 0 to x",
    numbers="analytic", of_complex=complex_by_scipy("erfi"),
    time=5, parity="odd",
    vjp=(lambda g, _y, x: g * (_two_over_sqrt_pi() * exp(x * x)),),
    spelling=names_elsewhere("scipy sympy"),
    derivative="g*2*exp(x**2)/sqrt(pi)",
    samples=_ANYWHERE,
)  # fmt: skip

fresnels = elementwise(
    "fresnels", "x", "Fresnel integral, that of sin(pi*t**2/2) from 0 to x",
    time=10, parity="odd",
    numbers="analytic", of_complex=complex_by_scipy("fresnels"),
    forward=_of_scipy("fresnels"),
    vjp=(lambda g, _y, x: g * sinpi(0.5 * (x * x)),),
    spelling=names_elsewhere("sympy"),
    derivative="g*sin(pi*x**2/2)",
    samples=_ANYWHERE,
)  # fmt: skip

fresnelc = elementwise(
    "fresnelc", "x", "Fresnel integral, that of cos(pi*t**2/2) from 0 to x",
    time=10, parity="odd",
    numbers="analytic", of_complex=complex_by_scipy("fresnelc"),
    forward=_of_scipy("fresnelc"),
    vjp=(lambda g, _y, x: g * cospi(0.5 * (x * x)),),
    spelling=names_elsewhere("sympy"),
    derivative="g*cos(pi*x**2/2)",
    samples=_ANYWHERE,
)  # fmt: skip

fresnel = Composite(
    "fresnel", "x", "both Fresnel integrals, that of the sine first", lambda x: (fresnels(x), fresnelc(x)),
    derivative="those of the two",
    example="'fresnel(x)[0]' x=0.7",
)  # fmt: skip

si = elementwise(
    "si", "x", "sine integral, that of sin(t)/t from 0 to x",
    time=10, parity="odd",
    numbers="analytic", of_complex=complex_by_scipy("si"),
    forward=_of_scipy("si"),
    vjp=(lambda g, _y, x: g * sinc(x * _over_pi()),),
    spelling=names_elsewhere(sympy="Si"),
    derivative="g*sin(x)/x, g at 0",
    aliases=("Si",),
    samples=_ANYWHERE,
)  # fmt: skip

ci = elementwise(
    "ci", "x", "cosine integral, that of -cos(t)/t from x on; of x < 0 that of -x",
    time=10, parity="even",
    numbers="analytic", of_complex=complex_by_scipy("ci"),
    forward=_of_scipy("ci"),
    vjp=(lambda g, _y, x: g * divide(cos(x), x),),
    spelling=names_elsewhere(sympy="Ci"),
    derivative="g*cos(x)/x",
    domain="x != 0",
    aliases=("Ci",),
    samples=_ANYWHERE,
)  # fmt: skip

sici = Composite(
    "sici", "x", "the sine and the cosine integral", lambda x: (si(x), ci(x)),
    derivative="those of the two",
    domain="x != 0",
    example="'sici(x)[1]' x=0.7",
)  # fmt: skip


def _complex_sinhc(xp: Any, x: Any, *, n: int) -> Any:
    """The nth derivative of sinh(x)/x, which is sinc(i*x/pi)."""
    turned = 1j / math.pi
    return turned**n * sinc_derivative(xp, x * turned, n=n)


sinhc: Primitive = elementwise(
    "sinhc", "x", "sinh(x)/x, 1 at 0",
    internal=True, time=60, surcharge=of_derivative(60),
    numbers="analytic", of_complex=_complex_sinhc,
    forward=definitions.sinhc,
    vjp=(lambda g, _y, x, *, n: g * bind(sinhc, (x,), {"n": n + 1}),),
    prepare=lambda x: ((x,), {"n": 0}),
    derivative="g*(cosh(x) - sinh(x)/x)/x, 0 at 0",
    samples=_ANYWHERE,
)  # fmt: skip

shi = elementwise(
    "shi", "x", "hyperbolic sine integral, that of sinh(t)/t from 0 to x",
    time=10, parity="odd",
    numbers="analytic", of_complex=complex_by_scipy("shi"),
    forward=_of_scipy("shi"),
    vjp=(lambda g, _y, x: g * sinhc(x),),
    spelling=names_elsewhere(sympy="Shi"),
    derivative="g*sinh(x)/x, g at 0",
    aliases=("Shi",),
    samples=_ANYWHERE,
)  # fmt: skip

chi = elementwise(
    "chi", "x", "hyperbolic cosine integral; of x < 0 that of -x",
    time=10, parity="even",
    numbers="analytic", of_complex=complex_by_scipy("chi"),
    forward=_of_scipy("chi"),
    vjp=(lambda g, _y, x: g * divide(cosh(x), x),),
    spelling=names_elsewhere(sympy="Chi"),
    derivative="g*cosh(x)/x",
    domain="x != 0",
    aliases=("Chi",),
    samples=_ANYWHERE,
)  # fmt: skip

shichi = Composite(
    "shichi", "x", "the hyperbolic sine and cosine integrals", lambda x: (shi(x), chi(x)),
    derivative="those of the two",
    domain="x != 0",
    example="'shichi(x)[1]' x=0.7",
)  # fmt: skip

owens_t = elementwise(
    "owens_t", "h, a", "Owen's T, the integral of exp(-h**2*(1 + t**2)/2)/(1 + t**2) from 0 to a, over 2*pi",
    time=30,
    forward=_of_scipy("owens_t"),
    vjp=(
        lambda g, _y, h, a: -g * (_over_2_sqrt_2_pi() * exp(-0.5 * (h * h)) * erf(a * h * _sqrt_half())),
        lambda g, _y, h, a: g * (_over_2_pi() * exp(-0.5 * (h * h) * (1.0 + a * a)) * over_one_plus_square(a)),
    ),
    spelling=names_elsewhere("scipy"),
    derivative="-g*exp(-h**2/2)*erf(a*h/sqrt(2))/(2*sqrt(2*pi)), g*exp(-h**2*(1 + a**2)/2)/(2*pi*(1 + a**2))",
    samples=((0.7, 1.3), ([0.4, -2.5], [0.8, 2.0])),
)  # fmt: skip


def _polylog_by_z(g: Any, _y: Any, s: Any, z: Any) -> Any:
    """The rule polylog(s - 1, z)/z; at z = 0 the numerical partial derivative."""
    zero = equal(z, 0)
    at_zero = bind(partial_of_two, (s, where(zero, z, 0.0)), {"function": "polylog", "orders": (0, 1)})
    elsewhere = where(zero, 0.5, z)
    return g * where(zero, at_zero, divide(polylog(s - 1.0, elsewhere), elsewhere))


polylog: Primitive = elementwise(
    "polylog", "s, z", "polylogarithm, the sum of z**k/k**s over k = 1, 2, …",
    time=2000,
    forward=keeping_float32(lambda xp, s, z: by_balls(xp, "polylog", s, z)),
    vjp=(derivative("polylog", 0, 2), _polylog_by_z),
    spelling=names_elsewhere("sympy"),
    derivative="by s computed by itself, g*polylog(s - 1, z)/z",
    domain="z < 1, abs(s) < 100; the derivative by s where abs(z) < 1",
    samples=((2.5, 0.7), (1.5, [0.4, -0.5])),
)  # fmt: skip
