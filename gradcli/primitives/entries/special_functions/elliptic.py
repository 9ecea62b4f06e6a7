"""Elementwise elliptic integrals: incomplete, Carlson's symmetric forms, and SymPy's names; Weierstrass's function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.arrays.mathematical_constants import pi
from gradcli.primitives.bind import bind
from gradcli.primitives.entries.elementwise.trigonometric import sin
from gradcli.primitives.entries.powers import rsqrt, sqrt
from gradcli.primitives.entries.special_functions.integrals import ellipe
from gradcli.primitives.entries.special_functions.numerical_partials import derivative
from gradcli.primitives.families import elementwise
from gradcli.primitives.operation import Composite
from gradcli.primitives.primitive import Primitive, names_elsewhere

SUBJECT = "special"

_PAIRS = ((0.7, 0.4), ([0.4, -1.2], [0.8, -2.5]))
_POSITIVE_PAIRS = ((0.7, 1.3), ([[0.3, 1.2]], [[0.8], [2.5]]))
_TRIPLES = ((0.7, 1.3, 0.4), ([0.3, 1.2], [0.8, 2.5], 0.6))


def _delta_square(phi: Any, m: Any) -> Any:
    sine = sin(phi)
    return 1.0 - m * (sine * sine)


ellipkinc = elementwise(
    "ellipkinc", "phi, m", "incomplete elliptic integral of the first kind, that of 1/sqrt(1 - m*sin(t)**2) from 0 to phi",
    time=40,
    vjp=(lambda g, _y, phi, m: g * rsqrt(_delta_square(phi, m)), derivative("ellipkinc", 1, 2)),
    spelling=names_elsewhere("scipy", sympy="elliptic_f"),
    derivative="g/sqrt(1 - m*sin(phi)**2), by m computed by itself",
    domain="m*sin(phi)**2 < 1",
    aliases=("elliptic_f",),
    samples=_PAIRS,
)  # fmt: skip

ellipeinc = elementwise(
    "ellipeinc", "phi, m", "incomplete elliptic integral of the second kind, that of sqrt(1 - m*sin(t)**2) from 0 to phi",
    time=40,
    vjp=(lambda g, _y, phi, m: g * sqrt(_delta_square(phi, m)), derivative("ellipeinc", 1, 2)),
    spelling=names_elsewhere("scipy", sympy="elliptic_e"),
    derivative="g*sqrt(1 - m*sin(phi)**2), by m computed by itself",
    domain="m*sin(phi)**2 < 1",
    samples=_PAIRS,
)  # fmt: skip

ellipkm1 = elementwise(
    "ellipkm1", "p", "ellipk(1 - p), with every digit where p is near 0",
    time=10,
    vjp=(derivative("ellipkm1", 0, 1),),
    spelling=names_elsewhere("scipy"),
    derivative="computed by itself: g*(p*ellipkm1(p) - ellipe(1 - p))/(2*p*(1 - p))",
    domain="p > 0",
    samples=(0.7, [0.4, 2.5]),
)  # fmt: skip


def _carlson(name: str, signature: str, doc: str, domain: str, samples: Any) -> Primitive:
    count = len(signature.split(", "))
    return elementwise(
        name, signature, doc,
        time=40,
        vjp=tuple(derivative(name, place, count) for place in range(count)),
        spelling=names_elsewhere("scipy"),
        derivative="computed by themselves",
        domain=domain,
        samples=samples,
    )  # fmt: skip


elliprf = _carlson(
    "elliprf", "x, y, z", "Carlson's R_F, half the integral of 1/sqrt((t + x)*(t + y)*(t + z)) over t > 0",
    "x > 0, y > 0, z > 0", _TRIPLES,
)  # fmt: skip
elliprd = _carlson("elliprd", "x, y, z", "Carlson's R_D, elliprj(x, y, z, z)", "x > 0, y > 0, z > 0", _TRIPLES)
elliprg = _carlson(
    "elliprg", "x, y, z", "Carlson's R_G, symmetric and of the second kind", "x > 0, y > 0, z > 0", _TRIPLES
)
elliprc = _carlson("elliprc", "x, y", "Carlson's R_C, elliprf(x, y, y)", "x > 0, y > 0", _POSITIVE_PAIRS)
elliprj = _carlson(
    "elliprj", "x, y, z, p", "Carlson's R_J, 3/2 times the integral of 1/((t + p)*sqrt((t + x)*(t + y)*(t + z))) over t > 0",
    "x > 0, y > 0, z > 0, p > 0", ((0.7, 1.3, 0.4, 0.9), ([0.3, 1.2], [0.8, 2.5], 0.6, 1.1)),
)  # fmt: skip


def _elliptic_e(z: Any, m: Any = None) -> Any:
    return ellipe(z) if m is None else ellipeinc(z, m)


elliptic_e = Composite(
    "elliptic_e", "z, m=None", "complete elliptic integral of the second kind; with m that from 0 to z", _elliptic_e,
    derivative="that of ellipe, or of ellipeinc",
    domain="z < 1, or m*sin(z)**2 < 1",
    samples=(0.7, [0.4, -2.5]),
)  # fmt: skip


# --- Weierstrass's function


def _of_lattice(name: str) -> Callable[..., Any]:
    """A function of a point and the ratio of the periods of a lattice, which must be complex."""

    def of_complex(xp: Any, *operands: Any, **params: Any) -> Any:
        # Imported here, because few programs need it.
        from gradcli.arrays import elliptic_functions

        return getattr(elliptic_functions, name)(xp, *operands, **params)

    return of_complex


def _nowhere(xp: Any, *operands: Any, **_params: Any) -> Any:
    """The result for a real ratio of the periods, which have no lattice."""
    return sum(xp.multiply(x, math.nan) for x in operands)


def _turn() -> Any:
    return pi() * 2j


def _e(tau: Any, k: int) -> Any:
    return bind(eisenstein, (tau,), {"k": k})


def _eta(tau: Any) -> Any:
    """The sum of (m + n*tau)**-2 over the lattice without 0, row by row."""
    return _e(tau, 2) * (pi() * pi() / 3.0)


def _g2(tau: Any) -> Any:
    """The first invariant of the lattice."""
    return _e(tau, 4) * (4.0 * pi() ** 4 / 3.0)


def _second_derivative(p: Any, tau: Any) -> Any:
    """That of Weierstrass's function by z: DLMF 23.3.11."""
    return 6.0 * (p * p) - _g2(tau) / 2.0


# The rules by tau follow from the heat equation of theta, DLMF 20.13.1, and from Ramanujan's equations for the
# Eisenstein series.


def _p_by_tau(g: Any, p: Any, z: Any, tau: Any) -> Any:
    change = 2.0 * (p * p) - 2.0 * (_eta(tau) * p) + theta_slope(z, tau) * elliptic_p_prime(z, tau) - _g2(tau) / 3.0
    return g * (change / _turn())


def _p_prime_by_tau(g: Any, slope: Any, z: Any, tau: Any) -> Any:
    p = elliptic_p(z, tau)
    change = 3.0 * ((p - _eta(tau)) * slope) + theta_slope(z, tau) * _second_derivative(p, tau)
    return g * (change / _turn())


def _theta_slope_by_tau(g: Any, y: Any, z: Any, tau: Any) -> Any:
    change = elliptic_p_prime(z, tau) + 2.0 * (y * (elliptic_p(z, tau) + _eta(tau)))
    return -g * (change / (2.0 * _turn()))


def _eisenstein_by_tau(g: Any, y: Any, tau: Any, *, k: int) -> Any:
    if k == 2:
        change = (y * y - _e(tau, 4)) / 12.0
    elif k == 4:
        change = (_e(tau, 2) * y - _e(tau, 6)) / 3.0
    else:
        change = (_e(tau, 2) * y - _e(tau, 4) * _e(tau, 4)) / 2.0
    return g * (change * _turn())


_POINTS_OF_LATTICES = ((0.3, 0.2 + 1.1j), ([0.4, -0.2], 0.7j))
_LATTICE = "imag(tau) > 0, z is not m + n*tau"

elliptic_p: Primitive = elementwise(
    "elliptic_p", "z, tau", "Weierstrass's elliptic function with the periods 1 and tau",
    numbers="analytic", of_complex=_of_lattice("elliptic_p"), forward=_nowhere,
    time=80,
    vjp=(lambda g, _y, z, tau: g * elliptic_p_prime(z, tau), _p_by_tau),
    spelling=names_elsewhere(latex="wp"),
    derivative="that by z, p', has p'**2 = 4*p**3 - g2*p - g3; by tau from the heat equation of theta functions",
    domain=_LATTICE,
    example="'elliptic_p(z, tau)' z=0.3+0.2j tau=1j",
    samples=_POINTS_OF_LATTICES,
)  # fmt: skip

elliptic_p_prime: Primitive = elementwise(
    "elliptic_p_prime", "z, tau", "the derivative of Weierstrass's elliptic function by z",
    internal="elliptic_p",
    numbers="analytic", of_complex=_of_lattice("elliptic_p_prime"), forward=_nowhere,
    time=80,
    vjp=(lambda g, _y, z, tau: g * _second_derivative(elliptic_p(z, tau), tau), _p_prime_by_tau),
    spelling=names_elsewhere(latex=r"wp'"),
    derivative="g*(6*elliptic_p(z, tau)**2 - g2/2), by tau from the heat equation of theta functions",
    domain=_LATTICE,
    samples=_POINTS_OF_LATTICES,
)  # fmt: skip

theta_slope: Primitive = elementwise(
    "theta_slope", "z, tau", "the derivative by z of the logarithm of the first theta function",
    internal="elliptic_p",
    numbers="analytic", of_complex=_of_lattice("theta_slope"), forward=_nowhere,
    time=80,
    vjp=(lambda g, _y, z, tau: -g * (elliptic_p(z, tau) + _eta(tau)), _theta_slope_by_tau),
    spelling=names_elsewhere(latex=r"partial_z\log\theta_1"),
    derivative="-g*(elliptic_p(z, tau) + eta), by tau from the heat equation of theta functions",
    domain=_LATTICE,
    samples=_POINTS_OF_LATTICES,
)  # fmt: skip

eisenstein: Primitive = elementwise(
    "eisenstein", "tau, k", "the Eisenstein series of weight k = 2, 4 or 6, which is 1 at infinity",
    internal="elliptic_p",
    numbers="analytic", of_complex=_of_lattice("eisenstein"), forward=_nowhere,
    time=30,
    vjp=(_eisenstein_by_tau,),
    prepare=lambda tau, k: ((tau,), {"k": int(k)}),
    spelling=names_elsewhere(latex=r"mathrm{E}"),
    derivative="by Ramanujan's equations",
    domain="imag(tau) > 0",
    samples=((0.2 + 1.1j, 2), ([0.7j, 2.0 + 0.5j], 4), (0.2 + 1.1j, 6)),
)  # fmt: skip
