"""Special functions of complex numbers in ball arithmetic, under the names that the namespace looks up.

The values are those of Arb. On a branch cut it has the value above the cut, which is the limit from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flint import acb, acb_series, arb, fmpz

from gradcli import limits
from gradcli.arrays.flint import flint_analytic, flint_bessel, flint_elementary, flint_special
from gradcli.arrays.flint.balls import Number, precision
from gradcli.arrays.flint.complex_balls import NOWHERE, Complex, as_complex, of_ball
from gradcli.arrays.flint.complex_numbers.flint_complex_functions import Cut, above, below, on_axis, side_of_cut
from gradcli.arrays.flint.flint_numbers import ONE, ZERO, is_finite, known_integer, series_length
from gradcli.errors import EvaluationError

# Where the radius of a real part is 0.4 or more, FLINT's zeta may take minutes beyond a height of 1,000, in vain.
_WIDE = arb(0.35)
# The cost of zeta far from the real axis: units of the root of the height times bits that take an eighth of a step, and
# how many times as much balls take whose imaginary part has a radius above 1.
_TERMS, _TALL = 32, 32


def _never(_x: Number) -> bool:
    """The cut of a function without one."""
    return False


def _analytic(
    of_real: Callable[..., Number], compute: Callable[..., Any], cut: Cut = _never, *, signed: bool = True
) -> Callable[..., Complex]:
    """A function that is real on the real axis off its cut, from those of real numbers and of complex balls.

    A pole has no value. Keywords are parameters of both functions. SciPy's function, unless `signed`, does not look at
    the sign of a zero imaginary part, so that there is no value below the cut.
    """

    def function(z: Any, **params: Any) -> Complex:
        z = as_complex(z)
        if not z.is_finite():
            return NOWHERE
        side = side_of_cut(z, cut)
        if side < 0 and not signed:
            raise _without_side()
        if z.imag == 0 and not side:
            value = of_real(z.real, **params)
            return Complex(value, ZERO) if is_finite(value) else NOWHERE
        value = of_ball(compute(z.ball(), **params))
        return value.conjugate() if side < 0 else value

    return function


def _without_side() -> EvaluationError:
    return EvaluationError(
        "a number is on a branch cut, where this function has the value above the cut alone",
        hint="add 0j for the value above the cut",
    )


erf = _analytic(flint_special.erf, acb.erf)
erfc = _analytic(flint_special.erfc, acb.erfc)
erfi = _analytic(flint_analytic.erfi, acb.erfi)
gamma = _analytic(flint_special.gamma, acb.gamma)
rgamma = _analytic(flint_special.rgamma, acb.rgamma)
digamma = _analytic(flint_special.digamma, acb.digamma)
polygamma = _analytic(flint_special.polygamma, lambda z, n: z.polygamma(n) if n else z.digamma())
lgamma = _analytic(flint_special.lgamma, acb.lgamma, below(0))


def zeta_derivative(z: Any, n: int = 0, q: Any = 1) -> Any:
    """(-1)**n times the nth derivative by z of the Hurwitz zeta function, for complex balls."""
    low, is_tall = z.real.lower(), bool(z.imag.rad() > 1)
    if not z.real.rad() < _WIDE or (is_tall and low > 1 and q == 1):
        return _bound_of_zeta(low, n) if q == 1 else acb("nan")
    # Far from the real axis FLINT sums a number of terms in proportion to the root of the height.
    terms = math.isqrt(_height(z)) * (_TALL if is_tall else 1)
    limits.charge_steps(n * n + (n + 1) * terms * precision() // _TERMS)
    if not n:
        return z.zeta(q)
    with series_length(n + 1):
        return acb_series([z, 1], prec=n + 1).zeta(acb(q))[n] * fmpz.fac_ui(n) * (-1) ** n


def _height(z: Any) -> int:
    return int(abs(z.imag).upper().ceil().unique_fmpz()) if z.imag.is_finite() else 0


def _bound_of_zeta(low: Any, n: int) -> Any:
    """A ball of all values to the right of a real part: the terms of the sum are largest there."""
    if not low > 1:
        return acb("nan")
    first = 0 if n else 1
    rest = (zeta_derivative(acb(low), n).real - first).upper()
    return acb(arb(first, rest), arb(0, rest))


riemann_zeta = _analytic(flint_special.riemann_zeta, zeta_derivative)
_zeta_derivative = _analytic(lambda x, n: flint_special.hurwitz_zeta(x, ONE, n=n), zeta_derivative)


def hurwitz_zeta(z: Any, _one: Any, *, n: int) -> Complex:
    """(-1)**n times the nth derivative of Riemann's zeta function."""
    return _zeta_derivative(z, n=n)


airyai = _analytic(flint_analytic.airyai, acb.airy_ai)
airyaiprime = _analytic(flint_analytic.airyaiprime, lambda z: z.airy_ai(derivative=1))
airybi = _analytic(flint_analytic.airybi, acb.airy_bi)
airybiprime = _analytic(flint_analytic.airybiprime, lambda z: z.airy_bi(derivative=1))
exp1 = _analytic(flint_special.exp1, lambda z: z.expint(1), below(0))


def expi(z: Any) -> Complex:
    """The exponential integral; on its cut it has the mean of both sides, which is real."""
    z = as_complex(z)
    if z.is_finite() and not on_axis(z):
        side_of_cut(z, below(0))
    return _expi(z)


_expi = _analytic(flint_special.expi, acb.ei)

fresnels = _analytic(flint_analytic.fresnels, lambda z: z.fresnel_s())
fresnelc = _analytic(flint_analytic.fresnelc, lambda z: z.fresnel_c())
si = _analytic(flint_analytic.si, acb.si)
shi = _analytic(flint_analytic.shi, acb.shi)
ci = _analytic(flint_analytic.ci, acb.ci, below(0), signed=False)
chi = _analytic(flint_analytic.chi, acb.chi, below(0), signed=False)


def dawsn_derivative(z: Any, n: int) -> Any:
    """The nth derivative of Dawson's integral, for a complex ball."""
    limits.charge_steps(n * n)
    with series_length(n + 1):
        t = acb_series([z, 1], prec=n + 1)
        return ((-t * t).exp() * t.erfi())[n] * arb.pi().sqrt() * fmpz.fac_ui(n) / 2


dawsn = _analytic(flint_special.dawsn, dawsn_derivative)


def _moment(w: Any, n: int) -> Any:
    """The integral of t**n*exp(t*w) over 0 < t < 1."""
    return w.hypgeom_1f1(n + 1, n + 2) / (n + 1)


def sinc_derivative(z: Any, n: int) -> Any:
    """The nth derivative of sin(pi*z)/(pi*z), for a complex ball: the integral of (pi*t)**n*cos(pi*t*z + n*pi/2) over
    0 < t < 1."""
    i, w = acb(0, 1), z * arb.pi() * acb(0, 1)
    return arb.pi() ** n * (i**n * _moment(w, n) + (-i) ** n * _moment(-w, n)) / 2


def sinhc_derivative(z: Any, n: int) -> Any:
    """The nth derivative of sinh(z)/z, for a complex ball."""
    return (_moment(z, n) + (-1) ** n * _moment(-z, n)) / 2


sinc = _analytic(flint_elementary.sinc, sinc_derivative)
sinhc = _analytic(flint_analytic.sinhc, sinhc_derivative)

# --- Bessel functions

bessel_i = _analytic(flint_bessel.bessel_i, lambda z, n: z.bessel_i(n))
bessel_j = _analytic(flint_bessel.bessel_j, lambda z, n: z.bessel_j(n))
y0 = _analytic(flint_bessel.y0, lambda z: z.bessel_y(0), below(0), signed=False)
y1 = _analytic(flint_bessel.y1, lambda z: z.bessel_y(1), below(0), signed=False)
k0 = _analytic(flint_bessel.k0, lambda z: z.bessel_k(0), below(0), signed=False)
k1 = _analytic(flint_bessel.k1, lambda z: z.bessel_k(1), below(0), signed=False)


def _of_order(of_real: Callable[..., Number], compute: Callable[..., Any], *, entire: bool) -> Callable[..., Complex]:
    """A Bessel function of any real order v, from those of real numbers and of complex balls.

    It has a cut along the negative axis, unless v is whole and the function of whole orders is `entire`.
    """

    def function(v: Any, z: Any) -> Complex:
        v, z = as_complex(v), as_complex(z)
        if not (v.is_finite() and z.is_finite()):
            return NOWHERE
        if not on_axis(v):
            raise EvaluationError("a Bessel function of a complex order has no proved digits")
        cut = _never if entire and known_integer(v.real) is not None else below(0)
        bound = _analytic(lambda x: of_real(v.real, x), lambda ball: compute(arb(v.real), ball), cut, signed=False)
        return bound(z)

    return function


jv_of_number = _of_order(flint_bessel.jv_of_number, lambda v, z: z.bessel_j(acb(v)), entire=True)
iv = _of_order(flint_bessel.iv, lambda v, z: z.bessel_i(acb(v)), entire=True)
yv = _of_order(flint_bessel.yv, lambda v, z: z.bessel_y(acb(v)), entire=False)
kv = _of_order(flint_analytic.kv, lambda v, z: z.bessel_k(acb(v)), entire=False)

kve = _of_order(flint_analytic.kve, lambda v, z: z.bessel_k(acb(v), scaled=True), entire=False)

# --- hypergeometric functions


def hyp0f1(b: Any, z: Any) -> Complex:
    return _hypergeometric(lambda b, z: z.hypgeom_0f1(b), b, z)


def hyp1f1(a: Any, b: Any, z: Any) -> Complex:
    return _hypergeometric(lambda a, b, z: z.hypgeom_1f1(a, b), a, b, z)


def hyp2f1(a: Any, b: Any, c: Any, z: Any) -> Complex:
    z = as_complex(z)
    if z.is_finite() and side_of_cut(z, _from_one):
        raise EvaluationError("a number is on the branch cut of 'hyp2f1', where it has no agreed value")
    return _hypergeometric(lambda a, b, c, z: z.hypgeom_2f1(a, b, c), a, b, c, z)


def _from_one(x: Number) -> bool | None:
    """The cut of 2F1, with its end, where the function of a real number may have a value."""
    return above(1)(x)


def _hypergeometric(compute: Callable[..., Any], *operands: Any) -> Complex:
    numbers = [*map(as_complex, operands)]
    if not all(number.is_finite() for number in numbers):
        return NOWHERE
    found = of_ball(compute(*(number.ball() for number in numbers)))
    # The functions of real numbers are real.
    return Complex(found.real, ZERO) if all(number.imag == 0 for number in numbers) else found


# --- Lambert's function


def lambertw(z: Any, *, k: int) -> Complex:
    z = as_complex(z)
    if not z.is_finite():
        return NOWHERE
    if z.real == 0 and z.imag == 0:
        return Complex(ZERO, ZERO) if not k else NOWHERE
    side = side_of_cut(z, _cut_of_lambertw if k == 0 else below(0))
    if side < 0:
        return of_ball(z.ball().lambertw(-k)).conjugate()
    if z.imag == 0 and not side:
        if not k:
            return Complex(flint_special.lambertw(z.real, k=0), ZERO)
        return of_ball(z.ball().lambertw(k))
    found = of_ball(z.ball().lambertw(k))
    if side and k == -1 and _cut_of_lambertw(z.real) is False:
        # Between -1/e and 0 this branch is real on its cut.
        return Complex(found.real, ZERO)
    return found


def _cut_of_lambertw(x: Number) -> bool | None:
    return below(0)(arb(x) + arb(-1).exp())


# --- Weierstrass's elliptic function


def p_of_ball(z: Any, tau: Any) -> Any:
    return z.elliptic_p(tau)


def p_prime_of_ball(z: Any, tau: Any) -> Any:
    with series_length(2):
        return acb_series([z, 1], prec=2).elliptic_p(tau)[1]


def theta_slope_of_ball(z: Any, tau: Any) -> Any:
    """The logarithmic derivative of the first theta function: DLMF 23.6.13."""
    return z.elliptic_zeta(tau) - 2 * (acb(1) / 2).elliptic_zeta(tau) * z


def eisenstein_of_ball(tau: Any, *, k: int) -> Any:
    """The Eisenstein series of weight 2, 4 or 6, from zeta at a half-period and the invariants."""
    pi = arb.pi()
    if k == 2:
        return 6 * (acb(1) / 2).elliptic_zeta(tau) / pi**2
    g2, g3 = tau.elliptic_invariants()
    return 3 * g2 / (4 * pi**4) if k == 4 else 27 * g3 / (8 * pi**6)


def _of_lattice(compute: Callable[..., Any]) -> Callable[..., Complex]:
    """A function of a lattice, whose last operand is the ratio of the periods. A pole has no value, nor has a ratio that
    is not above the real axis."""

    def function(*operands: Any, **params: Any) -> Complex:
        numbers = [as_complex(operand) for operand in operands]
        if not all(number.is_finite() for number in numbers) or arb(numbers[-1].imag) <= 0:
            return NOWHERE
        balls = [number.ball() for number in numbers]
        if len(balls) > 1 and _is_in_lattice(*balls):
            return NOWHERE
        return of_ball(compute(*balls, **params))

    return function


def _is_in_lattice(z: Any, tau: Any) -> bool:
    """Return whether a point is exactly a period."""
    row = z.imag / tau.imag
    return bool(z.is_exact() and tau.is_exact() and row.is_integer() and (z - row * tau).real.is_integer())


elliptic_p, elliptic_p_prime = _of_lattice(p_of_ball), _of_lattice(p_prime_of_ball)
theta_slope, eisenstein = _of_lattice(theta_slope_of_ball), _of_lattice(eisenstein_of_ball)
